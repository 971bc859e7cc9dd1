package journal

import (
	"context"
	"errors"
	"time"

	"parley/sessions"
)

// Owe adds an entry to the journal and lets the next append write it, before the append's own entries, so it
// costs no write of its own. The log doesn't contain the entry until that append, or until Pay writes it. Owe
// returns false, and does nothing, if the log can't be kept open for another append.
func (j *Journal) Owe(e sessions.Entry) (bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, ok := j.log.(sessions.ReopenableLog); !ok {
		return false, nil
	}
	e.N, e.At = j.next+int64(len(j.owed)), time.Now().UTC().Truncate(time.Microsecond)
	r, err := Decode(e)
	if err != nil {
		return false, err
	}
	j.makeRoom(1)
	j.records, j.owed = append(j.records, r), append(j.owed, e)
	return true, nil
}

// Owes reports whether some of the records are not in the log yet.
func (j *Journal) Owes() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.owed) > 0
}

// Pay writes what is owed. If another holder has the session by now, it does nothing, because that holder works
// without these entries. It returns an error if the result was still uncertain when ctx ended; then the entries
// are still owed.
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
