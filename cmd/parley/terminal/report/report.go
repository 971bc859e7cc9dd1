// Package report prints the answers of the server's API as tables and lines for people.
//
// report.go prints the server's state and what it has done; fleet.go the processes of a fleet; work.go what it is working on; why.go what became of
// messages; lists.go what it stores for agents and is waiting for; found.go what a search has found.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"parley/cmd/parley/api"
	"parley/cmd/parley/doctor"
	"parley/cmd/parley/terminal"
	"parley/sessions"
	"parley/sessions/bill"
)

// A Status is the answer to GET /v1/status.
type Status struct {
	Version  string  `json:"version"`
	Role     string  `json:"role"`
	Uptime   float64 `json:"uptime_seconds"`
	Channels []struct {
		Name   string `json:"name"`
		Up     bool   `json:"up"`
		Reason string `json:"reason"`
	} `json:"channels"`
	Topics []struct {
		Topic   string  `json:"topic"`
		Waiting int     `json:"waiting"`
		Leased  int     `json:"leased"`
		Delayed int     `json:"delayed"`
		Dead    int     `json:"dead"`
		Oldest  float64 `json:"oldest_seconds"`
	} `json:"topics"`
	Tools         []api.ToolCount         `json:"tools"`
	Subscriptions []api.SubscriptionState `json:"subscriptions"`
	Fleet         *api.Fleet              `json:"fleet"` // nil if there is no fleet
	api.CurrentWork
}

// PrintServer prints the state of a running server and of its channels.
func (s Status) PrintServer(out io.Writer) {
	fmt.Fprintf(out, "parley %s, %s, up %s\n", s.Version, s.Role, seconds(s.Uptime))
	for _, c := range s.Channels {
		how := "connected"
		if !c.Up {
			how = "not connected"
		}
		if c.Reason != "" {
			how += " (" + c.Reason + ")"
		}
		fmt.Fprintf(out, "channel %s: %s\n", c.Name, how)
	}
	for _, one := range s.Subscriptions {
		how := fmt.Sprintf("events waiting: %d", one.Waiting)
		if one.Failing != nil {
			how += ", none accepted since " + moment(*one.Failing) + " (" + terminal.Cell(one.Problem) + ")"
		}
		if one.Dropped > 0 {
			how += fmt.Sprintf(", %d dropped", one.Dropped)
		}
		fmt.Fprintf(out, "subscription %s: %s\n", one.Name, how)
	}
}

// PrintTopics prints how much mail is waiting, being worked on, delayed, and given up.
func (s Status) PrintTopics(out io.Writer) error {
	w := table(out, "TOPIC", "WAITING", "IN PROGRESS", "DELAYED", "DEAD", "OLDEST")
	for _, t := range s.Topics {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\n", terminal.Cell(t.Topic), t.Waiting, t.Leased, t.Delayed, t.Dead, seconds(t.Oldest))
	}
	return w.Flush()
}

// PrintTools prints for each tool how often it was called, and how the calls ended.
func (s Status) PrintTools(out io.Writer) error {
	if len(s.Tools) == 0 {
		return printLine(out, "no tool has been called since the server started")
	}
	w := table(out, "TOOL", "CALLS", "FAILED", "TIMEOUTS", "AVERAGE", "LAST ERROR")
	for _, t := range s.Tools {
		last := ""
		if t.LastAt != nil {
			last = t.LastError + ", " + moment(*t.LastAt)
		}
		average := time.Duration(t.Seconds / float64(t.Calls) * float64(time.Second)).Round(time.Millisecond)
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%s\n", terminal.Cell(t.Tool), t.Calls, t.Failed, t.Timeouts, average, last)
	}
	return w.Flush()
}

// SpokenLine returns an entry of a session's log as text for a person to read: what somebody said, or the name of a
// tool that was called; "" for all other entries, such as tool results.
func SpokenLine(e sessions.Entry) string {
	var said struct {
		Text    string          `json:"text"`
		Name    string          `json:"name"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(e.Data, &said); err != nil && len(e.Data) > 0 {
		return ""
	}
	switch e.Kind {
	case sessions.KindUser:
		return e.Person + ": " + said.Text
	case sessions.KindText:
		return "parley: " + said.Text
	case sessions.KindToolUse:
		return "· " + said.Name
	case sessions.KindNotice:
		if e.MarksMemory() || e.IsEpisode() {
			return ""
		}
		return "! " + said.Text
	case sessions.KindSummary:
		return "(summary) " + said.Text
	}
	return ""
}

// AuditHeader is the header of a table whose lines AuditLine returns.
const AuditHeader = "TIME\tKIND\tWHO\tSESSION\tTOOL\tRESULT\tTOOK\tABOUT"

// maxAbout is how many characters are printed of what an audit record is about.
const maxAbout = 120

// AuditLine returns a record as a line of a table, its cells separated by tabs.
func AuditLine(r sessions.AuditRecord) string {
	about, took := r.Detail, ""
	switch r.Kind {
	case sessions.AuditTool:
		about, took = string(r.Arguments), (time.Duration(r.Elapsed) * time.Millisecond).String()
	case sessions.AuditJudgement:
		about, took = r.Verdict, (time.Duration(r.Elapsed) * time.Millisecond).String()
	case sessions.AuditTurn:
		about, took = strings.Trim(Used(r.Used)+", "+r.Detail, ", "), (time.Duration(r.Elapsed) * time.Millisecond).String()
	case sessions.AuditRefusal:
		about = refused(r)
	}
	if all := []rune(about); len(all) > maxAbout {
		about = string(all[:maxAbout]) + "…"
	}
	result := r.Result
	if r.ExitCode != nil {
		result = fmt.Sprintf("%s (%d)", result, *r.ExitCode)
	}
	cells := []string{moment(r.At), r.Kind, r.By, cmp.Or(r.Session, r.Address), r.Tool, result, took, about}
	for i := range cells {
		cells[i] = terminal.Cell(cells[i])
	}
	return strings.Join(cells, "\t")
}

// Used returns in words what a turn has used; "" for nil.
func Used(u *sessions.AuditUse) string {
	if u == nil {
		return ""
	}
	said := []string{}
	if u.Model != "" {
		said = append(said, u.Model)
	}
	said = append(said, count(int64(u.ModelCalls), "model call"), count(int64(u.Calls), "tool call"), bill.Grouped(u.Input)+" tokens in", bill.Grouped(u.Output)+" out")
	if u.Cost != nil {
		said = append(said, bill.Dollars(*u.Cost))
	}
	return strings.Join(said, ", ")
}

// refused returns in words which messages were refused.
func refused(r sessions.AuditRecord) string {
	newest := r.Turn
	if len(r.Messages) > 0 {
		newest = r.Messages[len(r.Messages)-1]
	}
	if r.Count < 2 {
		return newest
	}
	return fmt.Sprintf("%s, the newest %s", count(r.Count, "message"), newest)
}

// count returns a number of things in words.
func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return bill.Grouped(n) + " " + what + "s"
}

// A Usage is the answer to GET /v1/usage.
type Usage struct {
	Usage  []bill.Sum      `json:"usage"`
	Caps   []bill.CapState `json:"caps"`
	Prices string          `json:"prices"` // the date of the price list
}

// Print prints what models have used and cost, summed up by "day", "person", "session", "agent" or "model".
func (u Usage) Print(out io.Writer, by string) error {
	if len(u.Usage) == 0 {
		fmt.Fprintln(out, "no model was used in that time")
		return u.printCaps(out)
	}
	w := table(out, strings.ToUpper(by), "CALLS", "INPUT", "CACHED", "OUTPUT", "REASONING", "COST")
	var unpriced, estimated int64
	costs := make([]int64, len(u.Usage))
	for i, s := range u.Usage {
		costs[i] = s.Microdollars
	}
	dollars := bill.DollarsAlike(costs...)
	for i, s := range u.Usage {
		cost := dollars[i]
		if s.Unpriced == s.Calls {
			cost = "unknown"
		} else if s.Unpriced+s.Estimated > 0 {
			cost += " *"
		}
		unpriced, estimated = unpriced+s.Unpriced, estimated+s.Estimated
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%s\n", terminal.Cell(cmp.Or(s.Key, "(erased)")), s.Calls, s.Input, s.Cached, s.Output, s.Reasoning, cost)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if unpriced > 0 {
		fmt.Fprintf(out, "* calls whose cost isn't known: %d; docs/models.md says how to set a price\n", unpriced)
	}
	if estimated > 0 {
		fmt.Fprintf(out, "* calls whose tokens are estimated, because the provider didn't count them: %d\n", estimated)
	}
	fmt.Fprintln(out, "days are in UTC; prices are as of "+u.Prices)
	return u.printCaps(out)
}

// printCaps prints how much of each cost cap is used now.
func (u Usage) printCaps(out io.Writer) error {
	if len(u.Caps) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	var amounts []int64
	for _, c := range u.Caps {
		amounts = append(amounts, c.Spent, c.Reserved, c.Limit)
	}
	dollars := bill.DollarsAlike(amounts...)
	w := table(out, "NOW", "PER", "SPENT", "SET ASIDE", "AT MOST", "SETTING")
	for i, c := range u.Caps {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", terminal.Cell(c.Of), c.Span, dollars[3*i], dollars[3*i+1], dollars[3*i+2], terminal.Cell(c.Setting))
	}
	return w.Flush()
}

// Findings prints doctor's findings, each with its remedy below it.
func Findings(out io.Writer, found []doctor.Finding) error {
	for _, f := range found {
		if _, err := fmt.Fprintf(out, "%-6s %s: %s\n", f.State, f.Part, f.Detail); err != nil {
			return err
		}
		if f.Remedy != "" {
			if err := printLine(out, "       → "+f.Remedy); err != nil {
				return err
			}
		}
	}
	return nil
}

// table begins a table with its header.
func table(out io.Writer, head ...string) *tabwriter.Writer {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(head, "\t"))
	return w
}

func printLine(out io.Writer, text string) error {
	_, err := fmt.Fprintln(out, text)
	return err
}

// moment formats a time for tables, in the reader's own time zone.
func moment(at time.Time) string { return at.Local().Format(time.DateTime) }

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Second)
}
