package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
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

// append writes entries and keeps them. While the store gives no clear answer it
// tries the same again, until ctx ends: the store accepts the same entries at the
// same place twice, so an append that did arrive is not written a second time. The
// lock is held meanwhile, which makes other writers wait for their place.
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

// entries are what the journal holds now. The caller must not change them.
func (j *journal) entries() []record {
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

// forget drops records that a summary covers, from memory only: the log keeps them.
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

// find gives the entry that a message has caused, if there is one.
func (j *journal) find(cause string) (record, bool) {
	for _, r := range j.entries() {
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
		return record{}, &unknownKindError{what: "entry", id: strconv.FormatInt(e.N, 10), kind: string(e.Kind)}
	}
	return record{Entry: e, data: v}, err
}

// An unknownKindError says that a session holds something of a kind that this
// release does not know: a newer one does, so the session is left to it.
type unknownKindError struct{ what, id, kind string }

// Error names it and its kind.
func (e *unknownKindError) Error() string {
	return fmt.Sprintf("%s %s is of the unknown kind %q", e.what, e.id, e.shortKind())
}

// shortKind is the kind as a log shows it.
func (e *unknownKindError) shortKind() string {
	const most = 64 // bytes
	return strings.ToValidUTF8(e.kind[:min(len(e.kind), most)], "")
}

// entry is NewEntry for the shapes of package sessions, which always encode.
func entry(turn string, kind sessions.Kind, data any) sessions.Entry {
	e, err := sessions.NewEntry(turn, kind, data)
	if err != nil {
		panic(fmt.Sprintf("agent: %v", err))
	}
	return e
}
