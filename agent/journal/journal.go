// Package journal holds a session's log in memory while the session is worked on: the log is read and decoded
// once, and written through the journal.
package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/sessions"
	"parley/tools/plainjson"
)

// A Record is an entry with its data decoded. Thousands of sessions may be in memory with all their records, so
// a record has no more fields than it needs. Each field is the one of sessions.Entry with that name.
type Record struct {
	N      int64
	Turn   string
	Kind   sessions.Kind
	Cause  string
	Person string
	Call   string
	Data   any        // a type of package sessions; nil for a kind without data
	Size   int        // size of the entry's Data as JSON, in bytes
	micros int64      // when the entry was appended, in microseconds since 1970
	cache  *cacheSlot // what was made from the record; nil for kinds for which nothing is cached
}

// NewRecord makes the record of an entry whose data is already decoded.
func NewRecord(e sessions.Entry, data any) Record {
	return Record{N: e.N, Turn: e.Turn, Kind: e.Kind, Cause: e.Cause, Person: e.Person, Call: e.Call, Data: data, Size: len(e.Data), micros: e.At.UnixMicro(), cache: newCacheSlot(e.Kind)}
}

// At returns when the entry was appended.
func (r Record) At() time.Time { return time.UnixMicro(r.micros).UTC() }

// entry returns the entry that the record was made from.
func (r Record) entry() (sessions.Entry, error) {
	raw, err := plainjson.Marshal(r.Data)
	if err != nil {
		return sessions.Entry{}, fmt.Errorf("encode entry %d: %w", r.N, err)
	}
	return sessions.Entry{N: r.N, Turn: r.Turn, Kind: r.Kind, At: r.At(), Cause: r.Cause, Person: r.Person, Call: r.Call, Data: raw}, nil
}

// A Journal is a session's log together with the decoded entries that were read from it and written to it. It
// is safe for concurrent use, because tool calls that run in parallel write to it.
type Journal struct {
	log  sessions.Log
	slog *slog.Logger

	mu              sync.Mutex
	next            int64
	records         []Record
	finished        finishedPrefix
	fence           int64                          // the fence of the last call of ReopenLater
	unconfirmed     bool                           // nobody has checked yet whether the log still matches the records
	owed            []sessions.Entry               // the newest records, which the next append writes first; see Owe
	replacedResults map[string]sessions.ToolResult // by call: the logged results that ShowResult has replaced
}

// Open reads a log. It returns an *UnknownKindError if a newer release has written an entry of a kind that this
// release doesn't know.
func Open(log sessions.Log, logger *slog.Logger) (*Journal, error) {
	j := &Journal{log: log, slog: logger, next: log.Next()}
	entries := log.Entries()
	j.records = make([]Record, 0, len(entries)+roomForTurn)
	for _, e := range entries {
		r, err := Decode(e)
		if err != nil {
			return nil, err
		}
		j.records = append(j.records, r)
	}
	j.records = withoutProgress(j.records, 0)
	j.finished.grow(j.records)
	return j, nil
}

// Append writes entries to the log and adds them to the records. If the result is uncertain, Append tries again
// until ctx ends: the store accepts the same entries at the same position twice, and doesn't write an append that
// already arrived a second time. Append holds the lock meanwhile, so other writers wait. It returns at once if the
// store has refused the entries for good, as with sessions.ErrFenced, and after openTries if nothing was appended
// since ReopenLater.
func (j *Journal) Append(ctx context.Context, entries ...sessions.Entry) error {
	return j.AppendBy(ctx, func(ctx context.Context, log sessions.Log, at int64, entries []sessions.Entry) error {
		return log.Append(ctx, at, entries...)
	}, entries...)
}

// maxFlushDelay is how long entries may wait to share a flush with those that follow.
const maxFlushDelay = 10 * time.Millisecond

// Soon returns a view of the log for appends that don't need to wait for the disk: their entries become durable
// together with the next ones that are appended, or a moment later. A log that can't do that is returned
// unchanged; see [sessions.SoonLog].
func Soon(log sessions.Log) sessions.Log {
	if s, ok := log.(sessions.SoonLog); ok {
		return s.Soon(maxFlushDelay)
	}
	return log
}

// Publishing returns a view of the log whose appends also publish mail, in the same write. It returns the log itself,
// and false, if the log can't do that; see [sessions.Publisher].
func Publishing(log sessions.Log, mail ...sessions.Mail) (sessions.Log, bool) {
	if p, ok := log.(sessions.Publisher); ok {
		return p.Publishing(mail...)
	}
	return log, false
}

// Publishes reports whether the journal's log can publish mail; see Publishing.
func (j *Journal) Publishes() bool {
	_, ok := Publishing(j.log)
	return ok
}

// AppendSoon does what Append does, but returns before the entries are durable; see Soon. It is for entries
// whose loss in a crash would do no harm, because only the work of this process depends on them so far.
func (j *Journal) AppendSoon(ctx context.Context, entries ...sessions.Entry) error {
	return j.AppendBy(ctx, func(ctx context.Context, log sessions.Log, at int64, entries []sessions.Entry) error {
		return Soon(log).Append(ctx, at, entries...)
	}, entries...)
}

// openTries is how often an append that opens the log is tried again. If the log can't be opened, there is no
// point in holding the session: its mail can wait on the bus.
const openTries = 3

// AppendBy does what Append does, but calls write to write the entries, and those owed before them, to the log
// in its own way. write may be called more than once, like the log's Append.
func (j *Journal) AppendBy(ctx context.Context, write func(ctx context.Context, log sessions.Log, at int64, entries []sessions.Entry) error, entries ...sessions.Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.appendBy(ctx, write, entries)
}

// appendBy does what AppendBy does. The caller holds the lock.
func (j *Journal) appendBy(ctx context.Context, write func(ctx context.Context, log sessions.Log, at int64, entries []sessions.Entry) error, entries []sessions.Entry) error {
	owed := len(j.owed)
	if owed > 0 {
		entries = slices.Concat(j.owed, entries)
	}
	wait := 50 * time.Millisecond
	for tries := 0; ; tries++ {
		err := write(ctx, j.log, j.next, entries)
		if err == nil {
			break
		}
		if _, seen := errors.AsType[*sessions.SeenError](err); seen ||
			errors.Is(err, sessions.ErrFenced) || errors.Is(err, sessions.ErrConflict) || errors.Is(err, sessions.ErrUnpublished) ||
			j.unconfirmed && tries == openTries {
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
	j.next += int64(owed)
	j.owed, j.unconfirmed = nil, false
	return j.add(entries[owed:])
}

// add adds entries that are in the log to the records. The caller holds the lock.
func (j *Journal) add(entries []sessions.Entry) error {
	j.makeRoom(len(entries))
	for i, e := range entries {
		e.N = j.next + int64(i)
		r, err := Decode(e)
		if err != nil { // it was encoded a moment ago
			return err
		}
		j.records = append(j.records, r)
	}
	j.next += int64(len(entries))
	return nil
}

// makeRoom makes room for n more records, and for what a turn without tools still writes after its first
// append. The room that Go's append would make could double the memory that a journal takes, and thousands may
// be held at once. The caller holds the lock.
func (j *Journal) makeRoom(n int) {
	if need := len(j.records) + n; need > cap(j.records) {
		j.records = append(make([]Record, 0, need+roomForTurn+len(j.records)/16), j.records...)
	}
}

// roomForTurn is how many records a turn without tools adds.
const roomForTurn = 6

// SetTitle gives the conversation a title, which is shown instead of the first words of entry n. The entry stays as
// it is. See [sessions.Titler] for when SetTitle does nothing. It returns errors.ErrUnsupported if the log knows no
// titles.
func (j *Journal) SetTitle(ctx context.Context, n int64, title string) error {
	log, ok := j.log.(sessions.Titler)
	if !ok {
		return fmt.Errorf("give a session its title: %w", errors.ErrUnsupported)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return log.SetTitle(ctx, n, title)
}

// EraseMessage empties the texts of a deleted message, in the log and in the records. cause is the message's id. It
// returns errors.ErrUnsupported if the log can't do that.
func (j *Journal) EraseMessage(ctx context.Context, cause string) error {
	log, ok := j.log.(sessions.MessageEraser)
	if !ok {
		return fmt.Errorf("blank what was said: %w", errors.ErrUnsupported)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := log.EraseMessage(ctx, cause); err != nil {
		return err
	}
	j.unconfirmed = false
	blanked := slices.Clone(j.records) // others still read the old slice
	for i, r := range blanked {
		e, err := r.entry()
		if err != nil {
			return err
		}
		data, is := sessions.DataAfterDeletion(e, cause)
		if !is {
			continue
		}
		if e.Data, err = plainjson.Marshal(data); err != nil {
			return fmt.Errorf("blank entry %d: %w", r.N, err)
		}
		if blanked[i], err = Decode(e); err != nil {
			return err
		}
	}
	j.records, j.finished = blanked, finishedPrefix{}
	return nil
}

// Records returns all records. The caller must not change them.
func (j *Journal) Records() []Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clip(j.records)
}

// Current returns the records of all turns that have not ended, or that ended since the log was read or
// KeepForReopen was last called. It may also return some records before these. The caller must not change them.
func (j *Journal) Current() []Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clip(j.records[j.finished.count:])
}

// Since returns the records from entry n on. The caller must not change them.
func (j *Journal) Since(n int64) []Record {
	records := j.Records()
	return records[sort.Search(len(records), func(i int) bool { return records[i].N >= n }):]
}

// Newest returns the number of the newest entry, even if it's still owed; 0 if there is none.
func (j *Journal) Newest() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.next - 1 + int64(len(j.owed))
}

// Forget removes the records that a summary hides from memory; the log keeps them. Records of a turn that has
// not ended stay, just as they do when a log is read.
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
	j.records, j.finished = kept, finishedPrefix{}
}

// Find returns the first entry that a message caused, given the message's id; false if no entry that was read
// has it.
func (j *Journal) Find(cause string) (Record, bool) {
	records := j.Records()
	for i := range records {
		if records[i].Cause == cause {
			return records[i], true
		}
	}
	return Record{}, false
}

// Decode decodes an entry's data into the Go type for its kind. It returns an *UnknownKindError if a newer release
// wrote the entry.
func Decode(e sessions.Entry) (Record, error) {
	if len(e.Data) == 0 { // sessions.Peeker leaves it out
		switch e.Kind {
		case sessions.KindTurnStarted:
			return NewRecord(e, FinishedTurn{}), nil
		case sessions.KindTurnDone:
			return NewRecord(e, sessions.TurnDone{}), nil
		}
	}
	v, known, err := sessions.DecodeAny(e)
	if !known {
		return Record{}, &UnknownKindError{What: "entry", ID: strconv.FormatInt(e.N, 10), Kind: string(e.Kind)}
	}
	return NewRecord(e, v), err
}

// An UnknownKindError is returned for a session that holds an entry or message of a kind that this release
// doesn't know. Only a newer release does, so the session is left to that release.
type UnknownKindError struct{ What, ID, Kind string }

// Error says which entry or message is of the unknown kind, and what the kind is.
func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("%s %s has the unknown kind %q", e.What, e.ID, e.ShortKind())
}

// ShortKind returns the kind as logs show it: at most 64 bytes.
func (e *UnknownKindError) ShortKind() string {
	const most = 64 // bytes
	return strings.ToValidUTF8(e.Kind[:min(len(e.Kind), most)], "")
}

// NewEntry is sessions.NewEntry for data of a type of package sessions, which can always be encoded. It panics for data
// that can't.
func NewEntry(turn string, kind sessions.Kind, data any) sessions.Entry {
	e, err := sessions.NewEntry(turn, kind, data)
	if err != nil {
		panic(fmt.Sprintf("agent: %v", err))
	}
	return e
}
