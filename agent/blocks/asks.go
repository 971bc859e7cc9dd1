package blocks

import (
	"parley/agent/excerpt"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// Asked returns how people are shown what a turn asks them about a call, while nobody has answered: without
// secrets, and with the characters that nobody can see as escapes. Who asks, where and when is for the caller to add.
func Asked(a sessions.Ask, use sessions.ToolUse, redact Redactor) bus.Ask {
	shown := bus.Ask{
		ID: a.ID, Kind: a.Kind, Call: a.Call, Reason: redact.Text(a.Reason), Hash: a.Hash,
		Question: redact.Text(a.Question), Choices: a.Choices, Expires: a.Expires, State: bus.AskOpen,
	}
	if a.Kind != bus.AskApproval {
		return shown
	}
	shown.Tool, shown.Arguments = use.Name, use.Args
	if a.Args != nil {
		shown.Arguments = a.Args
	}
	shown.Arguments = excerpt.EscapeHidden(redact.JSON(shown.Arguments))
	shown.Shown, shown.ShownOf = excerpt.ShowHidden(redact.Text(a.Shown)), a.ShownOf
	return shown
}

// TurnAsks collects what people were asked in one turn, and how that has ended. The zero value is that of a turn that
// has asked nothing.
type TurnAsks struct{ all []bus.Ask }

// Begin takes the entry with which the turn begins to wait for people. use returns the call with that id.
func (t *TurnAsks) Begin(e sessions.Entry, use func(call string) sessions.ToolUse, redact Redactor) error {
	waits, err := sessions.Decode[sessions.TurnParked](e)
	for _, a := range waits.Asks {
		if a.Kind != sessions.AskTask {
			ask := Asked(a, use(a.Call), redact)
			ask.Turn, ask.Made = e.Turn, e.At.UTC()
			t.all = append(t.all, ask)
		}
	}
	return err
}

// End takes the entry that says how one of them has ended.
func (t *TurnAsks) End(e sessions.Entry, redact Redactor) error {
	end, err := sessions.Decode[sessions.AskEnded](e)
	for i, a := range t.all {
		if a.ID == end.Ask {
			a.State, a.Answer = end.State, bus.Answer{Text: redact.Text(end.Answer), By: bus.Person{ID: e.Person}}
			t.all[i] = a
		}
	}
	return err
}

// Ended returns those that have ended as watchers are shown them: of a call no more than of any other. over says that
// the turn has ended, and with it what nobody has answered.
func (t *TurnAsks) Ended(over bool) []bus.Ask {
	var ended []bus.Ask
	for _, a := range t.all {
		if over && a.State == bus.AskOpen {
			a.State = bus.AskWithdrawn
		}
		if a.State == bus.AskOpen {
			continue
		}
		if a.Arguments != nil {
			a.Arguments, _ = tools.Shorten(tools.AsJSON(a.Arguments), MostOfCall, "")
		}
		a.Shown = tools.Beginning(a.Shown, MostOfCall)
		ended = append(ended, a)
	}
	return ended
}
