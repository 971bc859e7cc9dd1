package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"parley/bus"
	"parley/cmd/parley/api"
	"parley/cmd/parley/server/mcpservers"
	"parley/cmd/parley/server/skillfolders"
	"parley/cmd/parley/terminal"
)

// Asks prints the approvals and questions that turns are waiting for.
func Asks(out io.Writer, asks []api.Ask) error {
	if len(asks) == 0 {
		return printLine(out, textNothingWaits)
	}
	w := table(out, "ID", "KIND", "FOR", "SESSION", "EXPIRES", "WHAT")
	for _, a := range asks {
		what := a.Question
		if a.Kind == bus.AskApproval {
			what = a.Tool + " " + string(a.Arguments)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", a.ID, a.Kind, terminal.Cell(a.Person), terminal.Cell(a.Session), moment(a.Expires), terminal.Cell(what))
	}
	return w.Flush()
}

// Schedules prints what agents are to be told later, and when.
func Schedules(out io.Writer, all []api.Schedule) error {
	if len(all) == 0 {
		return printLine(out, textNoSchedules)
	}
	w := table(out, "ID", "NEXT", "WHEN", "FOR", "SESSION", "WHAT")
	for _, s := range all {
		next := "paused"
		if s.Next != nil {
			next = moment(*s.Next)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.ID, next, terminal.Cell(s.When), terminal.Cell(s.Person), terminal.Cell(s.Session), terminal.Cell(s.Text))
	}
	return w.Flush()
}

// Servers prints MCP servers with their tools, and the tools that wait to be accepted.
func Servers(out io.Writer, all []mcpservers.Server) error {
	if len(all) == 0 {
		return printLine(out, textNoServers)
	}
	w := table(out, "SERVER", "TOOL", "STATE", "DESCRIPTION")
	for _, s := range all {
		if s.Error != "" {
			fmt.Fprintf(w, "%s\t\tcan't be reached\t%s\n", s.Name, terminal.Cell(s.Error))
		}
		for _, t := range s.Tools {
			fmt.Fprintf(w, "%s\t%s\taccepted\t%s\n", s.Name, terminal.Cell(t.Name), terminal.Cell(t.Description))
		}
		for _, t := range s.Aside {
			fmt.Fprintf(w, "%s\t%s\tNOT ACCEPTED YET\t%s\n", s.Name, terminal.Cell(t.Name), terminal.Cell(t.Description))
		}
	}
	return w.Flush()
}

// Skills prints the operator's skills, and which agents have them.
func Skills(out io.Writer, found *skillfolders.Catalog) error {
	all := found.List()
	if len(all) == 0 {
		return printLine(out, textNoSkills)
	}
	w := table(out, "SKILL", "VERSION", "AGENTS", "TRUSTED", "TOOLS", "FOLDER", "DESCRIPTION")
	for _, s := range all {
		trusted := "no"
		if s.Trusted {
			trusted = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Name, cmp.Or(s.Version, "-"), cmp.Or(strings.Join(s.Agents, ", "), "none"), trusted, strings.Join(s.Tools, ", "), terminal.Cell(s.Folder), terminal.Cell(s.Description))
	}
	return w.Flush()
}

// Proposals prints the skills that agents propose.
func Proposals(out io.Writer, all []skillfolders.Proposal) error {
	if len(all) == 0 {
		return printLine(out, textNoProposals)
	}
	w := table(out, "SKILL", "SESSION", "FROM STRANGERS")
	for _, p := range all {
		strangers := "no"
		if p.Strangers {
			strangers = "maybe"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", terminal.Cell(p.Name), terminal.Cell(p.Session), strangers)
	}
	return w.Flush()
}

// Proposal prints a skill that an agent proposes, with all its files.
func Proposal(out io.Writer, p skillfolders.ShownProposal) error {
	warning := ""
	if p.Strangers {
		warning = textFromStrangers
	}
	if _, err := fmt.Fprintf(out, textProposal, terminal.Cell(p.Name), terminal.Cell(p.Session), warning); err != nil {
		return err
	}
	for _, f := range p.Files {
		kind := ""
		if f.Executable {
			kind = textProgram
		}
		if _, err := fmt.Fprintf(out, "\n--- %s%s\n%s\n", terminal.Cell(f.Path), kind, terminal.Hanging(f.Text)); err != nil {
			return err
		}
	}
	return nil
}

// Pairings prints the people who may talk to the bot, and those who ask to.
func Pairings(out io.Writer, all []api.Pairing) error {
	if len(all) == 0 {
		return printLine(out, textNobodyPaired)
	}
	w := table(out, "PERSON", "NAME", "STATE", "CODE", "SINCE")
	for _, p := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", terminal.Cell(p.Person), terminal.Cell(p.Name), p.State, p.Code, moment(p.At))
	}
	return w.Flush()
}

// Chats prints the chats in which people have spoken to the bot.
func Chats(out io.Writer, all []api.Chat) error {
	if len(all) == 0 {
		return printLine(out, textNobodyTalked)
	}
	w := table(out, "ADDRESS", "NAME", "SESSION", "SINCE")
	for _, ch := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", terminal.Cell(ch.Address), terminal.Cell(ch.Name), terminal.Cell(ch.Session), moment(ch.Since))
	}
	return w.Flush()
}

// A DeadLetter is a message that was given up, as listed by GET /v1/dead-letters.
type DeadLetter struct {
	Topic    string    `json:"topic"`
	ID       string    `json:"id"`
	Key      string    `json:"key"`
	Reason   string    `json:"reason"`
	Attempts int       `json:"attempts"`
	BuriedAt time.Time `json:"buried_at"`
}

// DeadLetters prints messages that were given up.
func DeadLetters(out io.Writer, all []DeadLetter) error {
	if len(all) == 0 {
		return printLine(out, textNoDeadLetters)
	}
	w := table(out, "ID", "TOPIC", "FOR", "REASON", "GIVEN UP")
	for _, d := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", terminal.Cell(d.ID), terminal.Cell(d.Topic), terminal.Cell(d.Key), terminal.Cell(d.Reason), moment(d.BuriedAt))
	}
	return w.Flush()
}

// leftOut returns why tools of an MCP server cannot be used, with the names of the first ones.
func leftOut(why mcpservers.ReasonCount) string {
	var names []string
	for _, name := range why.Names {
		names = append(names, terminal.Cell(name))
	}
	switch more := why.Tools - len(names); {
	case len(names) == 0:
		return why.Reason
	case more > 0:
		return fmt.Sprintf("%s (%s, and %d more)", why.Reason, strings.Join(names, ", "), more)
	}
	return why.Reason + " (" + strings.Join(names, ", ") + ")"
}

// Trial prints the tools that an MCP server has listed, and why some of them cannot be used.
func Trial(out io.Writer, t mcpservers.Trial) {
	fmt.Fprintf(out, "%s answered in %d ms. Tools listed: %d; the agents that have them: %s.\n", t.Name, t.Milliseconds, t.Listed, cmp.Or(strings.Join(t.Agents, ", "), "none"))
	for _, tool := range t.Tools {
		fmt.Fprintf(out, "  %s\n", terminal.Cell(tool.Name))
	}
	for _, tool := range t.Aside {
		fmt.Fprintf(out, "  %s NOT ACCEPTED YET: parley mcp accept %s\n", terminal.Cell(tool.Name), t.Name)
	}
	for _, why := range t.Unusable {
		fmt.Fprintf(out, "  %d left out: %s\n", why.Tools, leftOut(why))
	}
}

// SignIns prints the browsers where people are signed in to the web page.
func SignIns(out io.Writer, all []api.SignIn) error {
	if len(all) == 0 {
		return printLine(out, textNobodySignedIn)
	}
	w := table(out, "ID", "WHO", "BROWSER", "SINCE", "SEEN")
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.ID, terminal.Cell(s.Caller), terminal.Cell(s.Device), moment(s.Began), moment(s.Seen))
	}
	return w.Flush()
}
