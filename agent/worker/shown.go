package worker

import (
	"parley/agent/turn"
	"parley/bus"
)

// showSaid tells watchers what people have said that was written to the log since the turn was folded.
func (s lifecycle) showSaid(before *turn.Turn) error {
	t, err := s.Fold(before.ID)
	if err != nil {
		return err
	}
	s.ShowFrom(t, before.Blocks.Next())
	return nil
}

// showAgain tells watchers of the newest step of a turn that was cut off, as the log has it: whoever
// wrote it may have died before watchers knew.
func (s lifecycle) showAgain(t *turn.Turn) {
	if t.Suspended { // then they know all of it
		return
	}
	from := t.Blocks.Newest()
	s.Emit(t, bus.Event{Type: bus.BlockReset, Block: from})
	s.ShowFrom(t, from)
}

// showOperators tells watchers what an operator has said in the conversation, once the log has it.
func showOperators(s *turn.Session, items ...*item) {
	for _, it := range items {
		if it.isOperators() {
			s.ShowOperators(noticeOf(&it.in))
		}
	}
}
