package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/bus"
)

// maxShown is how much of a call's arguments people are shown in a chat, in bytes.
// Over HTTP and by the command line they see all.
const maxShown = 2500

// askMessage is what people read who are asked, or told that others are.
func (s *session) askMessage(t *turn, a *ask, to bus.Address) bus.Outbound {
	out := bus.Outbound{To: to, Turn: t.id, Subject: a.ID, Expires: a.Expires}
	if to == t.route.At {
		out.ReplyTo = t.route.ReplyTo
	}
	p := s.commandPrefix(to)
	until := "until " + a.Expires.UTC().Format("2006-01-02 15:04 UTC")
	switch {
	case a.Kind == bus.AskQuestion:
		out.Text = s.askText(t, a, to) + "\n\n" + fmt.Sprintf("_(Your next words here are the answer, or %sanswer %s WORDS anywhere, %s.)_", p, a.ID, until)
		for i, choice := range a.Choices {
			out.Buttons = append(out.Buttons, bus.Button{Label: s.redactor().Text(choice), Says: fmt.Sprintf("/%s %s %d", cmdAnswer, a.ID, i+1)})
		}
	case !s.isAskedAt(t, a, to):
		out.Text = s.askText(t, a, to) + "\n\n" + "_(Those who may approve it are asked elsewhere, " + until + ".)_"
	default:
		out.Text = s.askText(t, a, to) + "\n\n" + fmt.Sprintf("Owners and approvers decide, %s, also from other chats:\n\n- `%sapprove %s`\n- `%sapprove %s session`: also when exactly this is called again in this conversation\n- `%sdeny %s REASON`",
			until, p, a.ID, p, a.ID, p, a.ID)
		out.Buttons = []bus.Button{
			{Label: "Approve", Says: fmt.Sprintf("/%s %s", cmdApprove, a.ID)},
			{Label: "For this conversation", Says: fmt.Sprintf("/%s %s %s", cmdApprove, a.ID, bus.ApproveSession)},
			{Label: "Deny", Says: fmt.Sprintf("/%s %s", cmdDeny, a.ID)},
		}
	}
	return out
}

// askText says what is asked, without how to answer. In another chat than the
// conversation it says whose it is.
func (s *session) askText(t *turn, a *ask, to bus.Address) string {
	if a.Kind == bus.AskQuestion {
		var b strings.Builder
		b.WriteString(a.Question)
		for i, choice := range a.Choices {
			fmt.Fprintf(&b, "\n%d. %s", i+1, choice)
		}
		return b.String()
	}
	of := s.describe(t, a)
	if !s.isAskedAt(t, a, to) {
		return fmt.Sprintf("I wait for somebody to approve `%s`.", of.Tool)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**`%s` needs an approval**", of.Tool)
	if to != t.route.At {
		fmt.Fprintf(&b, ", for `%s` in `%s`", unquoted(t.person), unquoted(t.route.At.String()))
	}
	if a.Reason != "" {
		fmt.Fprintf(&b, " (%s)", a.Reason)
	}
	b.WriteString(":\n\n" + fenced(cutShown(string(of.Arguments))))
	return b.String()
}

// cutShown is as much of a text as is shown, and says how much is not.
func cutShown(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxShown {
		return text
	}
	kept := strings.ToValidUTF8(text[:maxShown], "")
	return fmt.Sprintf("%s\n… and %d bytes more, which `parley approvals list` shows", kept, len(text)-len(kept))
}

// fenced is a text as a block of code, with a fence longer than any in it.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + "\n" + fence
}

// unquoted is a text that can stand in backquotes.
func unquoted(text string) string { return strings.ReplaceAll(text, "`", "'") }

// showEnd tells people how an ask has ended, where they were asked: the question's
// buttons go, and it says who has decided.
func (s *session) showEnd(ctx context.Context, t *turn, a *ask, of bus.Ask) error {
	of.Kind = a.Kind
	for i, to := range s.places(t, a) {
		out := bus.Outbound{
			ID: fmt.Sprintf("%s#ended/%d", a.ID, i), To: to, Turn: t.id, Subject: a.ID,
			Text: s.askText(t, a, to) + "\n\n**" + capital(of.Ending()) + ".**",
		}
		if reason := of.Answer.Reason; reason != "" {
			out.Text += "\n\n> " + strings.ReplaceAll(strings.ToValidUTF8(reason, "\uFFFD"), "\n", "\n> ")
		}
		if err := s.publish(ctx, out); err != nil && !errors.Is(err, bus.ErrInvalid) {
			return err
		}
	}
	s.point("ask:shown")
	e := bus.Event{Type: bus.AskResolved, Call: a.Call, Tool: a.call.use.Name, Ask: &of}
	s.emit(t, e)
	return nil
}

func capital(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// awaited says in words what a turn waits for.
func (s *session) awaited(t *turn, at bus.Address) string {
	p := s.commandPrefix(at)
	var waits []string
	for _, a := range t.openAsks() {
		if a.Kind == bus.AskQuestion {
			waits = append(waits, fmt.Sprintf("an answer to my question (`%sanswer %s WORDS`)", p, a.ID))
		} else {
			waits = append(waits, fmt.Sprintf("an approval of `%s` (`%sapprove %s` or `%sdeny %s`, by owners and approvers)", a.call.use.Name, p, a.ID, p, a.ID))
		}
	}
	return strings.Join(waits, ", and for ")
}

// waited is how long a turn has waited so far.
func (t *turn) waited() time.Duration {
	if t.parked {
		return t.parkedFor + time.Since(t.parkedAt)
	}
	return t.parkedFor
}
