// Package journal is a session's log while it is worked on: read once, decoded, and written to.
package journal

import (
	"context"
	"encoding/json"
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

// A Record is an entry with its data decoded: one of the shapes of package
// sessions, or nil for kinds without any.
type Record struct {
	sessions.Entry
	Data any
}

// A Journal is a session's log with what has been read from and written to it,
// decoded once. Calls that run side by side write to it at the same time.
type Journal struct {
	log  sessions.Log
	slog *slog.Logger

	mu      sync.Mutex
	next    int64
	records []Record
	kept    map[string]sessions.ToolResult // what the log has of results that are shown otherwise, by call
}

// Open reads a log. Its error is an *UnknownKindError where a newer release has
// written to it.
func Open(log sessions.Log, logger *slog.Logger) (*Journal, error) {
	j := &Journal{log: log, slog: logger, next: log.Next()}
	for _, e := range log.Entries() {
		r, err := decode(e)
		if err != nil {
			return nil, err
		}
		j.records = append(j.records, r)
	}
	return j, nil
}

// Append writes entries and keeps them. While the store gives no clear answer it
// tries the same again, until ctx ends: the store accepts the same entries at the
// same place twice, so an append that did arrive is not written a second time. The
// lock is held meanwhile, which makes other writers wait for their place.
func (j *Journal) Append(ctx context.Context, entries ...sessions.Entry) error {
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

// Blank empties what was said with that cause, in the log and here.
func (j *Journal) Blank(ctx context.Context, cause string) error {
	log, ok := j.log.(sessions.Blanker)
	if !ok {
		return fmt.Errorf("blank what was said: %w", errors.ErrUnsupported)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := log.Blank(ctx, cause); err != nil {
		return err
	}
	blanked := slices.Clone(j.records) // others read the old ones
	for i, r := range blanked {
		data, is := sessions.Blanked(r.Entry, cause)
		if !is {
			continue
		}
		raw, err := json.Marshal(data)
		if err != nil {
			return fmt.Errorf("blank entry %d: %w", r.N, err)
		}
		r.Entry.Data = raw
		if blanked[i], err = decode(r.Entry); err != nil {
			return err
		}
	}
	j.records = blanked
	return nil
}

// Records are what the journal holds now. The caller must not change them.
func (j *Journal) Records() []Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clip(j.records)
}

// ShowResult has Records show the result of a call otherwise than the log keeps it, until
// HideResults. Whoever reads the log after a crash sees what it keeps.
func (j *Journal) ShowResult(call string, content json.RawMessage) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.records = slices.Clone(j.records) // others read the former ones
	for i, r := range j.records {
		if d, ok := r.Data.(sessions.ToolResult); ok && r.Call == call {
			if j.kept == nil {
				j.kept = map[string]sessions.ToolResult{}
			}
			j.kept[call] = d
			d.Content = content
			j.records[i].Data = d
		}
	}
}

// HideResults has Records show all results as the log keeps them.
func (j *Journal) HideResults() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.kept == nil {
		return
	}
	j.records = slices.Clone(j.records)
	for i, r := range j.records {
		if d, shown := j.kept[r.Call]; shown && r.Kind == sessions.KindToolResult {
			j.records[i].Data = d
		}
	}
	j.kept = nil
}

// Newest is the number of the last entry.
func (j *Journal) Newest() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.next - 1
}

// Forget drops records that a summary hides, from memory only: the log keeps them.
// Those of a turn that has not ended stay, as they do when a log is read.
func (j *Journal) Forget(s sessions.Summary) {
	j.mu.Lock()
	defer j.mu.Unlock()
	open := map[string]bool{}
	for _, r := range j.records {
		switch r.Kind {
		case sessions.KindTurnStarted:
			open[r.Turn] = true
		case sessions.KindTurnDone:
			delete(open, r.Turn)
		}
	}
	kept := make([]Record, 0, len(j.records))
	for _, r := range j.records {
		if !s.Hides(r.N) || open[r.Turn] {
			kept = append(kept, r)
		}
	}
	j.records = kept
}

// Find gives the entry that a message has caused, if there is one.
func (j *Journal) Find(cause string) (Record, bool) {
	for _, r := range j.Records() {
		if r.Cause == cause {
			return r, true
		}
	}
	return Record{}, false
}

func decode(e sessions.Entry) (Record, error) {
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
	case sessions.KindTurnParked:
		v, err = sessions.Decode[sessions.TurnParked](e)
	case sessions.KindAskEnded:
		v, err = sessions.Decode[sessions.AskEnded](e)
	case sessions.KindPicture:
		v, err = sessions.Decode[sessions.Picture](e)
	case sessions.KindAttached:
		v, err = sessions.Decode[sessions.Attached](e)
	case sessions.KindFetched:
		v, err = sessions.Decode[sessions.Fetched](e)
	case sessions.KindResumed, sessions.KindSuspended, sessions.KindPublished, sessions.KindTurnUnparked: // no data
	default:
		return Record{}, &UnknownKindError{What: "entry", ID: strconv.FormatInt(e.N, 10), Kind: string(e.Kind)}
	}
	return Record{Entry: e, Data: v}, err
}

// An UnknownKindError says that a session holds something of a kind that this
// release does not know: a newer one does, so the session is left to it.
type UnknownKindError struct{ What, ID, Kind string }

// Error names it and its kind.
func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("%s %s is of the unknown kind %q", e.What, e.ID, e.ShortKind())
}

// ShortKind is the kind as a log shows it.
func (e *UnknownKindError) ShortKind() string {
	const most = 64 // bytes
	return strings.ToValidUTF8(e.Kind[:min(len(e.Kind), most)], "")
}

// NewEntry is sessions.NewEntry for the shapes of package sessions, which always encode.
func NewEntry(turn string, kind sessions.Kind, data any) sessions.Entry {
	e, err := sessions.NewEntry(turn, kind, data)
	if err != nil {
		panic(fmt.Sprintf("agent: %v", err))
	}
	return e
}
