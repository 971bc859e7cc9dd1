package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"parley/sessions"
)

// A record is an entry with its data decoded: one of the shapes of package
// sessions, or nil for kinds without any.
type record struct {
	sessions.Entry
	data any
}

// A journal is a session's log with what has been read from and written to it,
// decoded once. Calls that run side by side write to it at the same time.
type journal struct {
	log  sessions.Log
	slog *slog.Logger

	mu      sync.Mutex
	next    int64
	records []record
}

func openJournal(log sessions.Log, logger *slog.Logger) (*journal, error) {
	j := &journal{log: log, slog: logger, next: log.Next()}
	for _, e := range log.Entries() {
		r, err := decode(e)
		if err != nil {
			return nil, err
		}
		j.records = append(j.records, r)
	}
	return j, nil
}

// append writes entries and keeps them. While the store cannot tell it tries
// the same again: the log takes the same entries at the same place twice.
func (j *journal) append(ctx context.Context, entries ...sessions.Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	wait := 50 * time.Millisecond
	for tries := 0; ; tries++ {
		err := j.log.Append(ctx, j.next, entries...)
		if err == nil {
			break
		}
		if _, seen := errors.AsType[*sessions.SeenError](err); seen ||
			errors.Is(err, sessions.ErrFenced) || errors.Is(err, sessions.ErrConflict) {
			return err
		}
		if tries == 0 {
			j.slog.Warn("the store does not take entries; trying again", slog.Any("error", err))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
		wait = min(2*wait, 5*time.Second)
	}
	for i, e := range entries {
		e.N = j.next + int64(i)
		r, err := decode(e)
		if err != nil { // it was encoded a moment ago
			return err
		}
		j.records = append(j.records, r)
	}
	j.next += int64(len(entries))
	return nil
}

// all is what the journal holds now.
func (j *journal) all() []record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clip(j.records)
}

// newest is the number of the last entry.
func (j *journal) newest() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.next - 1
}

// forget drops records that a summary covers.
func (j *journal) forget(covers int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	kept := make([]record, 0, len(j.records))
	for _, r := range j.records {
		if r.N > covers {
			kept = append(kept, r)
		}
	}
	j.records = kept
}

// knows tells whether a message has an entry among the records.
func (j *journal) knows(cause string) (record, bool) {
	for _, r := range j.all() {
		if r.Cause == cause {
			return r, true
		}
	}
	return record{}, false
}

func decode(e sessions.Entry) (record, error) {
	var v any
	var err error
	switch e.Kind {
	case sessions.KindUser:
		v, err = sessions.Decode[sessions.User](e)
	case sessions.KindThinking:
		v, err = sessions.Decode[sessions.Thinking](e)
	case sessions.KindText:
		v, err = sessions.Decode[sessions.Text](e)
	case sessions.KindToolUse:
		v, err = sessions.Decode[sessions.ToolUse](e)
	case sessions.KindToolResult:
		v, err = sessions.Decode[sessions.ToolResult](e)
	case sessions.KindSummary:
		v, err = sessions.Decode[sessions.Summary](e)
	case sessions.KindNotice:
		v, err = sessions.Decode[sessions.Notice](e)
	case sessions.KindTurnStarted:
		v, err = sessions.Decode[sessions.TurnStarted](e)
	case sessions.KindToolStarted:
		v, err = sessions.Decode[sessions.ToolStarted](e)
	case sessions.KindUsage:
		v, err = sessions.Decode[sessions.Usage](e)
	case sessions.KindTurnDone:
		v, err = sessions.Decode[sessions.TurnDone](e)
	case sessions.KindCommand:
		v, err = sessions.Decode[sessions.Command](e)
	case sessions.KindResumed, sessions.KindSuspended, sessions.KindPublished: // no data
	default:
		return record{}, &foreignError{what: "entry", id: strconv.FormatInt(e.N, 10), kind: string(e.Kind)}
	}
	return record{Entry: e, data: v}, err
}

// entry is NewEntry for the shapes of package sessions, which always encode.
func entry(turn string, kind sessions.Kind, data any) sessions.Entry {
	e, err := sessions.NewEntry(turn, kind, data)
	if err != nil {
		panic(fmt.Sprintf("agent: %v", err))
	}
	return e
}
