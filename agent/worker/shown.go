package worker

import (
	"parley/agent/turn"
	"parley/bus"
)

// showNewMessages shows watchers the people's messages that were written to the log since the turn was folded.
func (s lifecycle) showNewMessages(before *turn.Turn) error {
	t, err := s.Fold(before.ID)
	if err != nil {
		return err
	}
	s.ShowFrom(t, before.Blocks.Next())
	return nil
}

// showNewestStepAgain shows watchers the newest step of a turn that was cut off, as the log has it: the process that
// wrote it may have died before it told them.
func (s lifecycle) showNewestStepAgain(t *turn.Turn) {
	if t.Suspended { // then watchers know all of the turn
		return
	}
	from := t.Blocks.Newest()
	s.Emit(t, bus.Event{Type: bus.BlockReset, Block: from})
	s.ShowFrom(t, from)
}

// showSaidByOthers shows watchers the messages in the log that an operator has sent in the conversation, or the agent
// on somebody's behalf. It skips other items.
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
