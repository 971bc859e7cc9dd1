package blocks

import (
	"parley/agent/excerpt"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// ShowAsk returns an ask of a turn about a call as people are shown it while nobody has answered: without
// secrets, and with invisible characters written as escapes. The caller has to add who asks, where and when.
func ShowAsk(a sessions.Ask, use sessions.ToolUse, redact Redactor) bus.Ask {
	shown := bus.Ask{
		ID: a.ID, Kind: a.Kind, Call: a.Call, Reason: redact.Text(a.Reason), Hash: a.Hash,
		Question: redact.Text(a.Question), Choices: a.Choices, Expires: a.Expires, State: bus.AskOpen,
	}
	if a.Kind != bus.AskApproval {
		return shown
	}
	shown.Tool, shown.Arguments, shown.Approvers = use.Name, use.Args, a.Approvers
	if a.Args != nil {
		shown.Arguments = a.Args
	}
	shown.Arguments = excerpt.EscapeHidden(redact.JSON(shown.Arguments))
	shown.Shown, shown.ShownOf = excerpt.ShowHidden(redact.Text(a.Shown)), a.ShownOf
	return shown
}

// TurnAsks collects what people were asked in one turn, and how each ask ended. The zero value is for a turn
// that has asked nothing.
type TurnAsks struct{ all []bus.Ask }

// Begin adds the asks of an entry that parks the turn. use returns the call with that id. It leaves out what waits
// for sub-agents and nodes. It returns an error if the entry can't be decoded.
func (t *TurnAsks) Begin(e sessions.Entry, use func(call string) sessions.ToolUse, redact Redactor) error {
	waits, err := sessions.Decode[sessions.TurnParked](e)
	for _, a := range waits.Asks {
		if a.Kind != sessions.AskTask && a.Kind != sessions.AskNode {
			ask := ShowAsk(a, use(a.Call), redact)
			ask.Turn, ask.Made = e.Turn, e.At.UTC()
			t.all = append(t.all, ask)
		}
	}
	return err
}

// End records the end of an ask from an entry that says how it ended.
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

// Ended returns the asks that have ended, as watchers are shown them. What it shows of a call is cut like any
// other call. over says that the turn has ended, which also withdraws the asks that nobody has answered.
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
