package audit

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/sessions"
)

const (
	noteDelay      = time.Second      // how soon a record given to Note is written
	noteRetryDelay = 10 * time.Second // how soon again after a failure
	maxTurns       = 4096             // how many records of turns may wait to be written
	maxRefusals    = 256              // how many different refusals may wait
	maxNotForBot   = 64               // how many of these may concern messages that were not meant for the bot
	// flushTime limits the last write of a process that ends.
	flushTime = 5 * time.Second
)

// notes holds the records of turns and refusals that wait to be written together. So neither a turn nor a
// message waits for its record, and a flood of refused messages costs only one write a second.
type notes struct {
	mu        sync.Mutex
	turns     []sessions.AuditRecord
	refusals  map[refusal]sessions.AuditRecord
	notForBot int           // how many of refusals name no person, because their messages were not meant for the bot
	dropped   int           // how many other refusals had no room
	wake      chan struct{} // signals that something waits
}

// A refusal identifies one record of refusals: those of a person's messages by a rule at an address.
type refusal struct{ rule, address, person string }

func newNotes() *notes {
	return &notes{refusals: map[refusal]sessions.AuditRecord{}, wake: make(chan struct{}, 1)}
}

// add adds a record. It returns false if there is no room for a turn's record.
func (n *notes) add(r sessions.AuditRecord) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch like := (refusal{r.Result, r.Address, r.By}); {
	case r.Kind == sessions.AuditRefusal:
		earlier, known := n.refusals[like]
		switch notForBot := r.By == ""; {
		case known:
		case notForBot && n.notForBot >= maxNotForBot: // there is no limit on how much people talk to each other
			return true
		case len(n.refusals) >= maxRefusals:
			n.dropped++
			return true
		case notForBot:
			n.notForBot++
		}
		n.refusals[like] = merge(earlier, r)
	case len(n.turns) >= maxTurns:
		return false
	default:
		n.turns = append(n.turns, r)
	}
	select {
	case n.wake <- struct{}{}:
	default:
	}
	return true
}

// merge returns the record of a refusal, with the content of another one added. A record that could not
// be written is added again after newer ones, though it is older.
func merge(earlier, r sessions.AuditRecord) sessions.AuditRecord {
	if r.At.Before(earlier.At) {
		earlier, r = r, earlier
	}
	r.Count = countOf(earlier) + countOf(r)
	r.Messages = slices.Concat(earlier.Messages, r.Messages)
	r.Messages = r.Messages[max(0, len(r.Messages)-sessions.MaxRefusedIDs):]
	return r
}

// countOf returns how many messages the record of a refusal counts.
func countOf(r sessions.AuditRecord) int64 { return cmp.Or(r.Count, int64(len(r.Messages))) }

// take removes all records, in the order of their times, and the number of refusals that were dropped.
func (n *notes) take() (records []sessions.AuditRecord, dropped int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	records, dropped = n.turns, n.dropped
	for _, r := range n.refusals {
		records = append(records, r)
	}
	n.turns, n.notForBot, n.dropped = nil, 0, 0
	clear(n.refusals)
	slices.SortStableFunc(records, func(a, b sessions.AuditRecord) int { return a.At.Compare(b.At) })
	return records, dropped
}

// Note has the record of a turn or a refusal written within a second, and does not wait for it. Refusals
// are only written to the store, and a process that dies suddenly loses the records of its last moment.
func (t *Trail) Note(r sessions.AuditRecord) {
	if r.At.IsZero() {
		r.At = time.Now()
	}
	if !t.notes.add(r) {
		t.lost()
	}
}

// lost reports that a record is lost.
func (t *Trail) lost() {
	if t.cfg.OnLost != nil {
		t.cfg.OnLost()
	}
}

// writeNotes writes the waiting records. Those that the store does not accept are added again.
func (t *Trail) writeNotes(ctx context.Context) error {
	records, dropped := t.notes.take()
	if dropped > 0 {
		t.cfg.Log.Warn("more was refused at once than can be recorded", slog.Int("refusals", dropped))
	}
	if len(records) == 0 {
		return nil
	}
	// A write that was begun is finished: if it were interrupted, nobody would know whether it took
	// effect.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	if err := t.cfg.Store.AuditNotes(ctx, records); err != nil {
		for _, r := range records {
			r.MayBeRecorded = true // the write may have succeeded, and only its answer have been lost
			if !t.notes.add(r) {
				t.lost()
			}
		}
		return err
	}
	var err error
	for _, r := range records {
		if t.cfg.File != nil && r.Kind != sessions.AuditRefusal {
			err = errors.Join(err, t.cfg.File.Write(r))
		}
	}
	return err
}

// runNotes writes the records given to Note until ctx is done, and then the rest.
func (t *Trail) runNotes(ctx context.Context) {
	for {
		select {
		case <-t.notes.wake:
		case <-ctx.Done():
			t.flush()
			return
		}
		next := noteDelay
		for next > 0 {
			select {
			case <-time.After(next):
			case <-ctx.Done():
				t.flush()
				return
			}
			next = 0
			if err := t.writeNotes(ctx); err != nil && ctx.Err() == nil {
				next = noteRetryDelay
				t.cfg.Log.Error("turns and refusals are not in the audit; trying again", slog.Any("error", err))
			}
		}
	}
}

// flush writes the waiting records before the process ends. What it cannot write is lost.
func (t *Trail) flush() {
	if err := t.writeNotes(context.Background()); err != nil {
		t.lost()
		t.cfg.Log.Error("the last turns and refusals are not in the audit", slog.Any("error", err))
	}
}
