package turn

import (
	"context"
	"encoding/json"
	"sort"

	"parley/agent/attached"
	"parley/agent/blocks"
	"parley/bus"
	"parley/sessions"
)

// ShowResult tells watchers the result of a call, which is already in the log with that content.
func (s *Session) ShowResult(t *Turn, c *Call, content json.RawMessage, o *Outcome) {
	number, ok := t.Blocks.Result(c.ID)
	if !ok {
		return
	}
	b, _ := blocks.Show(o.Logged(content), s.Redactor())
	b.Number, b.Call, b.Tool = number, c.ID, c.Use.Name
	b.Emit(func(e bus.Event) { s.Emit(t, e) })
}

// ShowFrom shows watchers those blocks of a turn that are in the log and are numbered from or higher.
func (s *Session) ShowFrom(t *Turn, from int) {
	records := s.Journal.LoggedRecords()
	records = records[sort.Search(len(records), func(i int) bool { return records[i].N >= t.FirstEntry }):]
	var numbers blocks.Numbering
	names := map[string]string{} // of tools, by call
	for _, r := range records {
		if r.Turn != t.ID {
			continue
		}
		if d, ok := r.Data.(sessions.ToolUse); ok {
			names[r.Call] = d.Name
		}
		number, ok := numbers.Add(r.Kind, r.Call)
		if !ok || number < from {
			continue
		}
		b, ok := blocks.Show(r.Data, s.Redactor())
		if !ok {
			continue
		}
		b.Number, b.Call, b.Tool, b.Cause = number, r.Call, names[r.Call], r.Cause
		b.Emit(func(e bus.Event) { s.Emit(t, e) })
	}
}

// A Place is where watchers see a message: its turn, and its number there. The zero Place means that they don't
// see it.
type Place struct {
	turn, message string
	block         int
}

// Trace returns what the session's log knows about a message, and where watchers see it. It reads the log once.
func (s *Session) Trace(ctx context.Context, message string) (attached.Trace, Place, error) {
	var at Place
	numbers := map[string]*blocks.Numbering{} // by turn, up to the message
	trace, err := attached.TraceOf(func(yield func(sessions.Entry, error) bool) {
		for e, err := range s.Config.Store.Read(ctx, s.Key(), 1) {
			if err == nil && at.message == "" {
				n := numbers[e.Turn]
				if n == nil {
					n = new(blocks.Numbering)
					numbers[e.Turn] = n
				}
				if number, ok := n.Add(e.Kind, e.Call); ok && e.Cause == message {
					at = Place{turn: e.Turn, message: message, block: number}
				}
			}
			if !yield(e, err) {
				return
			}
		}
	}, message)
	return trace, at, err
}

// ShowDeleted shows watchers a message that somebody has deleted, as it is in the log now. Those who begin to
// watch later see that in the log.
func (s *Session) ShowDeleted(at Place) {
	if at == (Place{}) {
		return
	}
	left, _ := sessions.DataAfterDeletion(sessions.Entry{Kind: sessions.KindUser, Cause: at.message}, at.message)
	b, _ := blocks.Show(left, s.Redactor())
	b.Number, b.Cause = at.block, at.message
	b.Emit(func(event bus.Event) { s.Emit(&Turn{ID: at.turn}, event) })
}

// ShowOperators shows watchers what an operator has said in the conversation, once it is in the log. They
// recognize it by the message's id, so it does no harm to tell them again.
func (s *Session) ShowOperators(n sessions.Notice) {
	s.showMessage(blocks.ShowOperator(n, s.Redactor()))
}

// ShowTold does what ShowOperators does for what the agent has said in the conversation on somebody's behalf. notice
// is the id of the notice.
func (s *Session) ShowTold(notice string, n sessions.Notice) {
	s.showMessage(blocks.ShowTold(notice, n, s.Redactor()))
}

func (s *Session) showMessage(said blocks.Block) {
	s.Config.Events.Emit(bus.Event{
		Type: bus.Spoken, Session: s.Key(), Kind: said.Kind, Call: said.Call, Delta: said.Text,
		Detail: &bus.Detail{Name: said.Name, Cut: said.Cut},
	})
}
