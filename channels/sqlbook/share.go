package sqlbook

import (
	"context"
	"fmt"
	"time"

	"parley/channels"
	"parley/sessions/sqldb"
)

// BeginShare returns, as a share, what Begin would write for a send, so that it can be part of the write that
// publishes the message. If that write recorded the send, the first Begin with the same id in this process writes
// nothing and returns the send as fresh, because nothing of it has been sent. BeginShare returns false if so many
// sends are already waiting for their Begin that this one should rather be recorded by its own.
func (s *sends) BeginShare(send channels.Send) (sqldb.Share, bool) {
	if !s.early.hasRoom() {
		return nil, false
	}
	return &beginShare{sends: s, send: send}, true
}

// A beginShare is the Begin of a send in a transaction that another component has begun.
type beginShare struct {
	sends *sends
	send  channels.Send
	known channels.Send // the send as the last Write recorded it
	fresh bool          // whether the last Write recorded the send
}

// Write implements sqldb.Share: it records the send, unless its id is known. The send begins now, and not when the
// share was made: an erasure would assume that an older send whose message is not on the bus will never be sent.
func (s *beginShare) Write(tx *sqldb.Tx) (refused, err error) {
	now := time.Now()
	s.known = recordOf(s.send, now)
	s.fresh, err = begin(tx, s.known, now)
	return nil, err
}

// End implements sqldb.Share: it keeps the send for Begin.
func (s *beginShare) End(durable bool) {
	if durable && s.fresh {
		s.sends.early.add(s.known)
		s.sends.pruneSends(s.known.At)
	}
}

// forgetErased forgets the early sends that an erasure has erased. Their messages were taken off the bus before
// that.
func (s *sends) forgetErased(ctx context.Context) {
	for _, id := range s.early.ids() {
		if _, err := s.Lookup(ctx, id); err != nil { // if the send exists after all, it counts as cut off
			s.early.take(id)
		}
	}
}

// requeueEarly records that nothing of the early sends has been sent, for the process that opens the book next.
func (s *sends) requeueEarly(ctx context.Context) error {
	ids := s.early.ids()
	if len(ids) == 0 {
		return nil
	}
	err := s.db.Write(ctx, func(tx *sqldb.Tx) error {
		for _, id := range ids {
			_, err := tx.Exec(`UPDATE parts SET state = 'queued' WHERE send = ? AND part = 0 AND state = 'sending'`, sqldb.Text(id))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record that %d messages were not sent: %w", len(ids), err)
	}
	return nil
}
