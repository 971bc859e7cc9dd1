package asks

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/agent/excerpt"
	"parley/bus"
)

// A View is an ask as people see it in their chats.
type View struct {
	bus.Ask
	// SubAgent is the name of the sub-agent that asks; "" if the conversation's own agent
	// does.
	SubAgent string
	// ShowsAll, if set, reports whether a text of any length is shown whole on a channel.
	ShowsAll func(channel string) bool
	// Presses, if set, reports whether people on a channel press buttons. Where they do, the message doesn't
	// list the commands.
	Presses func(channel string) bool
}

// Excerpt returns the call that the ask is about, in the form that people are shown.
func (v View) Excerpt() excerpt.Call {
	return excerpt.Call{Shown: v.Shown, Of: v.ShownOf, Arguments: v.Arguments}
}

// GetsFileAt reports whether people at an address get the whole call as a file. They do where they are asked to
// approve a call that is too long for a message, unless their channel shows texts of any length.
func (v View) GetsFileAt(at bus.Address) bool {
	return v.Kind == bus.AskApproval && v.Filed && v.isAskedAt(at) && (v.ShowsAll == nil || !v.ShowsAll(at.Channel))
}

// File returns the file that shows people the whole call.
func (v View) File() *bus.File {
	about := fmt.Sprintf("Request %s: %s needs approval.\n", v.ID, excerpt.ShowHidden(v.Tool))
	if v.Reason != "" {
		about += "Why: " + excerpt.ShowHidden(v.Reason) + "\n"
	}
	return &bus.File{Name: v.fileName(), Data: []byte(about + "\n" + v.Excerpt().File())}
}

// fileName returns the name of the file that shows the whole call.
func (v View) fileName() string { return "call-" + v.ID + ".txt" }

// ToldAddresses returns all addresses that are told about the ask. The conversation is one of them, unless it
// is deserted, which means that no person takes part in it.
func (v View) ToldAddresses(deserted bool) []bus.Address {
	places := []bus.Address{v.At}
	if deserted {
		places = nil
	}
	for _, to := range v.Asked {
		if to != v.At {
			places = append(places, to)
		}
	}
	return places
}

// isAskedAt reports whether people at an address are asked themselves, and not only told that others are.
func (v View) isAskedAt(at bus.Address) bool {
	if len(v.Asked) == 0 {
		return at == v.At
	}
	return slices.Contains(v.Asked, at)
}

// Text returns what an address is told about the ask, without instructions for answering. The text of an
// approval names the person and the conversation if people are asked elsewhere.
func (v View) Text(to bus.Address) string {
	if v.Kind == bus.AskQuestion {
		var b strings.Builder
		if v.SubAgent != "" {
			fmt.Fprintf(&b, "The sub-agent `%s` asks:\n\n", v.SubAgent)
		}
		b.WriteString(v.Question)
		for i, choice := range v.Choices {
			fmt.Fprintf(&b, "\n%d. %s", i+1, choice)
		}
		return b.String()
	}
	if !v.isAskedAt(to) {
		return fmt.Sprintf("I'm waiting for somebody to approve `%s`.", v.Tool)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**`%s` needs approval**", v.Tool)
	if v.SubAgent != "" {
		fmt.Fprintf(&b, ", for the sub-agent `%s`", v.SubAgent)
	}
	if to != v.At {
		fmt.Fprintf(&b, ", for `%s` in `%s`", excerpt.Inline(v.Person), excerpt.Inline(v.At.String()))
	}
	if v.Reason != "" {
		fmt.Fprintf(&b, " (%s)", excerpt.Words(v.Reason))
	}
	b.WriteString(":\n\n")
	if v.GetsFileAt(to) {
		b.WriteString(excerpt.BeginningAndEnd(v.Excerpt().Text()))
	} else {
		b.WriteString(v.Excerpt().Markdown())
	}
	return b.String()
}

// Message returns the text and the buttons of the ask's message at an address. The text includes how to answer, or
// says that others are asked; then there are no buttons. prefix begins a command there; clean takes secrets out of
// what the model has written on a button.
func (v View) Message(to bus.Address, prefix string, clean func(string) string) (text string, buttons []bus.Button) {
	until := "until " + v.until()
	switch {
	case v.Kind == bus.AskQuestion:
		how := fmt.Sprintf("_(Your next message here counts as the answer, or you can say `%s%s %s WORDS` anywhere, %s.)_", prefix, Answer, v.ID, until)
		if v.SubAgent != "" { // words here are for the agent that has handed out the task
			how = fmt.Sprintf("_(Say `%s%s %s WORDS`, here or anywhere else, %s.)_", prefix, Answer, v.ID, until)
		}
		for i, choice := range v.Choices {
			buttons = append(buttons, bus.Button{Label: clean(choice), Says: fmt.Sprintf("/%s %s %d", Answer, v.ID, i+1)})
		}
		return v.Text(to) + "\n\n" + how, buttons
	case !v.isAskedAt(to):
		return v.Text(to) + "\n\n" + "_(In another chat, I've asked the people who can approve it; they have " + until + ".)_", nil
	}
	text = v.Text(to) + "\n\n"
	if v.GetsFileAt(to) {
		text += fmt.Sprintf("The whole call is in the file `%s` above.\n\n", v.fileName())
	}
	text += v.howToDecide(text, to, prefix)
	return text, []bus.Button{
		{Label: "Approve", Says: fmt.Sprintf("/%s %s", Approve, v.ID)},
		{Label: "For this conversation", Says: fmt.Sprintf("/%s %s %s", Approve, v.ID, bus.ApproveSession)},
		v.denyButton(),
	}
}

// maxTextWithButtons is the number of bytes up to which a text certainly fits into one message on every platform. A
// longer text may be split, and then it has no buttons.
const maxTextWithButtons = 1800

// howToDecide returns the line below a text at an address that says who decides, until when, and with which
// commands. It leaves the commands out if people press buttons there, and the text is short enough to have some.
func (v View) howToDecide(text string, to bus.Address, prefix string) string {
	from := "here or in any other chat"
	if v.Filed {
		from = "but only where the whole call is shown"
	}
	if v.Presses != nil && v.Presses(to.Channel) && len(text) <= maxTextWithButtons {
		return fmt.Sprintf("_(Request `%s`: owners and approvers can decide, %s, until %s.)_", v.ID, from, v.until())
	}
	return fmt.Sprintf("Owners and approvers can decide until %s, %s:\n\n- `%sapprove %s`\n- `%sapprove %s session`: also approves this exact call if it comes up again in this conversation\n- `%sdeny %s REASON`",
		v.until(), from, prefix, v.ID, prefix, v.ID, prefix, v.ID)
}

// Unshown returns the text and the button of an ask at an address where the file that shows the whole call
// could not be delivered: people there can only deny the call.
func (v View) Unshown(to bus.Address, prefix string) (text string, buttons []bus.Button) {
	text = v.Text(to) + "\n\n" + fmt.Sprintf("**You can't approve it here:** I couldn't send the file that shows the whole call. "+
		"On the machine I run on, `parley approvals list` shows the whole call, and `parley approvals approve %s` approves it, until %s. You can also approve it over HTTP (`/v1/asks`), or in another chat where I asked and showed all of it.",
		v.ID, v.until())
	if v.Presses == nil || !v.Presses(to.Channel) {
		text += fmt.Sprintf("\n\n- `%s%s %s REASON` works here, too", prefix, Deny, v.ID)
	}
	return text, []bus.Button{v.denyButton()}
}

// until returns the time at which the ask expires.
func (v View) until() string { return v.Expires.UTC().Format("2006-01-02 15:04 UTC") }

// denyButton returns the button that denies the call.
func (v View) denyButton() bus.Button {
	return bus.Button{Label: "Deny", Says: fmt.Sprintf("/%s %s", Deny, v.ID)}
}

// EndText returns the words that are added below an ask's message once the ask has ended: how it ended, who
// decided, and the reason.
func EndText(of bus.Ask) string {
	more := "\n\n**" + capitalize(of.Ending()) + ".**"
	if reason := of.Answer.Reason; reason != "" {
		more += "\n\n" + excerpt.Reason(reason)
	}
	return more
}

// StaleApprovalText returns the words that are added below the message of an approved ask whose call does not run
// because something has changed.
func StaleApprovalText(of bus.Ask) string {
	return "\n\n**" + capitalize(of.Ending()) + ", but I didn't run it:** a file, the directory, the arguments or the tool itself has changed since I asked."
}

// capitalize returns a text with its first letter as a capital.
func capitalize(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// Parse returns the id of the ask that a command answers, and the answer. The id is "" if
// the command names none.
func Parse(in bus.Inbound) (id string, answer bus.Answer) {
	id, words, _ := strings.Cut(strings.TrimSpace(in.Args), " ")
	id, words = strings.ToLower(strings.Trim(id, "`")), strings.TrimSpace(words)
	answer = bus.Answer{By: in.From, Cause: in.ID, At: in.At}
	switch in.Text {
	case Approve:
		answer.Text = bus.Approve
		if strings.EqualFold(words, bus.ApproveSession) {
			answer.Text = bus.ApproveSession
		}
	case Deny:
		answer.Text, answer.Reason = bus.Deny, words
	default:
		answer.Text = words
	}
	return id, answer
}

// RefusalText tells the person who answered the ask with that id why the answer does not count. err is the
// error with which the answer was refused; for any other error RefusalText returns "". prefix begins a command
// where the person is.
func RefusalText(err error, id string, of bus.Ask, prefix string) string {
	switch {
	case errors.Is(err, bus.ErrNoAsk):
		return fmt.Sprintf("I don't know of any request `%s`: check its id.", excerpt.Inline(id))
	case errors.Is(err, bus.ErrMayNotAnswer) && of.Kind == bus.AskQuestion:
		return "You can't answer this: only the person I asked or an owner can."
	case errors.Is(err, bus.ErrMayNotAnswer):
		if of.Approvers != nil {
			return "You can't decide this: only owners and the people who approve the calls of that node can."
		}
		return "You can't decide this: only owners and approvers can."
	case errors.Is(err, bus.ErrBadAnswer) && of.Kind == bus.AskQuestion:
		return fmt.Sprintf("This is a question: say `%s%s %s WORDS`.", prefix, Answer, of.ID)
	case errors.Is(err, bus.ErrBadAnswer):
		return fmt.Sprintf("This isn't a question: say `%[1]s%[2]s %[4]s` or `%[1]s%[3]s %[4]s REASON`.", prefix, Approve, Deny, of.ID)
	case errors.Is(err, bus.ErrNotShown):
		return fmt.Sprintf("You can't approve request `%[1]s` here: it's too long for a message, and I didn't show all of it here. "+
			"You can approve it where I asked (%[4]s), if I showed all of it there. On the machine I run on, `parley approvals list` shows all of it, and `parley approvals approve %[1]s` approves it. You can also approve it over HTTP (`/v1/asks`). `%[2]s%[3]s %[1]s` denies it here.",
			of.ID, prefix, Deny, askedPlaces(of))
	case errors.Is(err, bus.ErrDecided):
		return fmt.Sprintf("Request `%s` has already been decided: %s.", of.ID, of.Ending())
	}
	return ""
}

// askedPlaces returns a list of the addresses where people are asked, in words.
func askedPlaces(of bus.Ask) string {
	var names []string
	for _, at := range of.AskedAt() {
		names = append(names, "`"+excerpt.Inline(at.String())+"`")
	}
	return strings.Join(names, ", ")
}
