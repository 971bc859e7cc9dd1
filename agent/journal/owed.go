package journal

import (
	"context"
	"errors"
	"time"

	"parley/sessions"
)

// Owe adds an entry to the journal, and leaves it to the next append to write it, before the entries
// of that append: so it costs no write of its own. The log does not have it until then, or until Pay
// writes it. Owe returns false, and does nothing, if the log cannot be held open for a next append.
func (j *Journal) Owe(e sessions.Entry) (bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, ok := j.log.(sessions.Reopener); !ok {
		return false, nil
	}
	e.N, e.At = j.next+int64(len(j.owed)), time.Now().UTC().Truncate(time.Microsecond)
	r, err := decode(e)
	if err != nil {
		return false, err
	}
	j.makeRoom(1)
	j.records, j.owed = append(j.records, r), append(j.owed, e)
	return true, nil
}

// Owes reports whether the log does not have all of the records yet.
func (j *Journal) Owes() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.owed) > 0
}

// Pay writes what is owed, if the session has no other holder by now: that one does without it. It
// returns an error if the store gave no clear answer by the time ctx has ended; what is owed stays
// owed then.
func (j *Journal) Pay(ctx context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.owed) == 0 {
		return nil
	}
	err := j.appendBy(ctx, func(ctx context.Context, log sessions.Log, at int64, entries []sessions.Entry) error {
		return Soon(log).Append(ctx, at, entries...)
	}, nil)
	if errors.Is(err, sessions.ErrFenced) || errors.Is(err, sessions.ErrConflict) {
		return nil
	}
	return err
}
