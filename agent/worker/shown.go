package worker

import (
	"parley/agent/turn"
	"parley/bus"
)

// showSaid shows watchers what people have said that was written to the log since the turn was folded.
func (s lifecycle) showSaid(before *turn.Turn) error {
	t, err := s.Fold(before.ID)
	if err != nil {
		return err
	}
	s.ShowFrom(t, before.Blocks.Next())
	return nil
}

// showAgain shows watchers the newest step of a turn that was cut off, as it is in the log: the process that
// wrote it may have died before watchers knew.
func (s lifecycle) showAgain(t *turn.Turn) {
	if t.Suspended { // then they know all of it
		return
	}
	from := t.Blocks.Newest()
	s.Emit(t, bus.Event{Type: bus.BlockReset, Block: from})
	s.ShowFrom(t, from)
}

// showSaidByOthers shows watchers what an operator has said in the conversation, or the agent on somebody's behalf,
// once it is in the log. It skips other items.
func showSaidByOthers(s *turn.Session, items ...*item) {
	for _, it := range items {
		switch {
		case it.isOperators():
			s.ShowOperators(noticeOf(&it.in))
		case it.isKind(bus.Notice) && isSaidThroughBot(&it.in):
			s.ShowTold(it.in.ID, noticeOf(&it.in))
		}
	}
}
