package device

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"parley/tools/nodes"
	"parley/tools/plainjson"
)

// A DamagedError says that a journal cannot be read, so that it is unknown which calls have run.
type DamagedError struct {
	File string
	Line int // the first one that is wrong
	Err  error
}

// Error names the file and the line.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("the journal %s is damaged in line %d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns what is wrong with the line.
func (e *DamagedError) Unwrap() error { return e.Err }

const (
	journalFile = "calls.jsonl"
	// rememberAcknowledged is how long an acknowledged call is remembered, so that a late duplicate is not run. The
	// last alwaysRemembered calls are remembered even if the clock says that they are older, because some devices have
	// no clock of their own.
	rememberAcknowledged = 24 * time.Hour
	alwaysRemembered     = 1000
	// minRewrite is the size below which a journal is not worth rewriting, in bytes.
	minRewrite = 256 << 10
)

// A record is a line of the journal. It has one of the three ids.
type record struct {
	At           int64          `json:"at"` // Unix time in seconds
	Started      string         `json:"started,omitempty"`
	Pure         bool           `json:"pure,omitempty"` // of started: the call changes nothing
	Ended        string         `json:"ended,omitempty"`
	Outcome      *nodes.Outcome `json:"outcome,omitempty"`
	Acknowledged string         `json:"acknowledged,omitempty"`
}

// A stage is how far a call has got.
type stage int

const (
	stageUnknown stage = iota
	stageStarted
	stageEnded        // the outcome is waiting to be acknowledged
	stageAcknowledged // the server has the outcome
)

// An entry is the place of a call's last line in the journal, which contains everything that matters about the call.
type entry struct {
	stage  stage
	pure   bool
	at     int64
	offset int64
	length int
	// outcome is set only while it could not be written.
	outcome *nodes.Outcome
}

// A journal records which calls have begun, how they have ended, and which outcomes the server has. So no call runs
// twice, and no outcome is lost. The beginning or end of a call is on the disk before anything else happens; that the
// server has the outcome need not be. The journal is one file, in which each line is a record; a line at its end that a
// crash has cut off is ignored.
type journal struct {
	path string
	now  func() time.Time

	mu        sync.Mutex
	file      *os.File
	size      int64
	needed    int64 // bytes of the lines that a rewrite would keep
	rewritten time.Time
	broken    error // set if the file's content is unknown
	calls     map[string]*entry
}

// openJournal opens the journal in a folder, and creates both if needed. It returns a *DamagedError if it cannot be
// read.
func openJournal(dir string, now func() time.Time) (*journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the journal's folder: %w", err)
	}
	j := &journal{path: filepath.Join(dir, journalFile), now: now, calls: map[string]*entry{}, rewritten: now()}
	file, err := os.OpenFile(j.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	j.file = file
	err = j.load()
	if err == nil {
		err = file.Truncate(j.size) // what follows was cut off by a crash
	}
	if err == nil {
		err = errors.Join(file.Sync(), plainjson.SyncDir(dir))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the journal: %w", err), file.Close())
	}
	return j, nil
}

// load reads all whole lines.
func (j *journal) load() error {
	in := bufio.NewReader(j.file)
	for line := 1; ; line++ {
		raw, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the journal: %w", err)
		}
		var r record
		if err := decode(raw, &r); err != nil {
			if _, more := in.Peek(1); errors.Is(more, io.EOF) {
				return nil
			}
			return &DamagedError{j.path, line, err}
		}
		j.note(r, j.size, len(raw))
		j.size += int64(len(raw))
	}
}

func decode(raw []byte, r *record) error {
	if err := json.Unmarshal(raw, r); err != nil {
		return err //nolint:wrapcheck // the caller adds the place
	}
	if r.Started == "" && r.Acknowledged == "" && (r.Ended == "" || r.Outcome == nil) {
		return errors.New("it says nothing about a call")
	}
	return nil
}

// note updates the calls for a line that is in the file.
func (j *journal) note(r record, offset int64, length int) {
	next := &entry{at: r.At, offset: offset, length: length}
	id := r.Started
	switch {
	case r.Started != "":
		next.stage, next.pure = stageStarted, r.Pure
	case r.Ended != "":
		id, next.stage = r.Ended, stageEnded
	default:
		id, next.stage = r.Acknowledged, stageAcknowledged
	}
	if before := j.calls[id]; before != nil {
		j.needed -= int64(before.length)
	}
	j.needed += int64(length)
	j.calls[id] = next
}

// append writes a line, and waits until it is on the disk if durable is set. If it fails, the file is as before.
func (j *journal) append(r record, durable bool) error {
	if j.broken != nil {
		return j.broken
	}
	r.At = j.now().Unix()
	raw, err := plainjson.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode a line of the journal: %w", err)
	}
	raw = append(raw, '\n')
	_, err = j.file.WriteAt(raw, j.size)
	if err == nil && durable {
		err = j.file.Sync()
	}
	if err != nil {
		err = fmt.Errorf("write the journal: %w", err)
		if undone := errors.Join(j.file.Truncate(j.size), j.file.Sync()); undone != nil {
			j.broken = err // the next line could follow an incomplete one
		}
		return err
	}
	j.note(r, j.size, len(raw))
	j.size += int64(len(raw))
	return nil
}

// stageOf returns how far a call has got, and whether it began as a pure one.
func (j *journal) stageOf(id string) (s stage, pure bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.calls[id]
	if e == nil {
		return stageUnknown, false
	}
	return e.stage, e.pure
}

// start records that a call is about to run. If it returns an error, the call must not run.
func (j *journal) start(id string, pure bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.append(record{Started: id, Pure: pure}, true)
}

// end records how a call has ended. If that fails, this process still remembers the outcome.
func (j *journal) end(id string, out nodes.Outcome) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.append(record{Ended: id, Outcome: &out}, true)
	if err != nil {
		e := j.calls[id]
		if e == nil {
			e = &entry{}
			j.calls[id] = e
		}
		e.stage, e.outcome = stageEnded, &out
	}
	return err
}

// acknowledge records that the server has an outcome. It does not wait for the disk: if the line is lost, the server
// gets the outcome once more.
func (j *journal) acknowledge(id string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e := j.calls[id]; e == nil || e.stage != stageEnded {
		return nil
	}
	if err := j.append(record{Acknowledged: id}, false); err != nil {
		return err
	}
	if j.size > minRewrite && (j.needed < j.size/2 || j.now().Sub(j.rewritten) > rememberAcknowledged) {
		return j.rewrite()
	}
	return nil
}

// outcome returns how a call has ended; false if it has not ended, or if the outcome was acknowledged.
func (j *journal) outcome(id string) (nodes.Outcome, bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.calls[id]
	switch {
	case e == nil || e.stage != stageEnded:
		return nodes.Outcome{}, false, nil
	case e.outcome != nil:
		return *e.outcome, true, nil
	}
	raw := make([]byte, e.length)
	var r record
	if _, err := j.file.ReadAt(raw, e.offset); err != nil {
		return nodes.Outcome{}, false, fmt.Errorf("read the journal: %w", err)
	}
	if err := decode(raw, &r); err != nil || r.Ended != id {
		return nodes.Outcome{}, false, fmt.Errorf("read the journal: not the outcome of this call: %w", errors.Join(err, os.ErrInvalid))
	}
	return *r.Outcome, true, nil
}

// unacknowledged returns the calls whose outcomes the server may not have, the oldest first.
func (j *journal) unacknowledged() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.sorted(func(e *entry) bool { return e.stage == stageEnded })
}

// sorted returns the calls that match, in the order of their lines.
func (j *journal) sorted(match func(*entry) bool) []string {
	var ids []string
	for id, e := range j.calls {
		if match(e) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(j.calls[a].offset, j.calls[b].offset) })
	return ids
}

// rewrite replaces the file with one that has only the last line about each call, and no lines about calls that were
// acknowledged long ago. If it fails, the old file stays in use.
func (j *journal) rewrite() error {
	keep := j.toKeep()
	path := j.path + ".new"
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("rewrite the journal: %w", err)
	}
	var size int64
	for _, id := range keep {
		n, err := io.Copy(io.NewOffsetWriter(file, size), io.NewSectionReader(j.file, j.calls[id].offset, int64(j.calls[id].length)))
		if err != nil {
			return errors.Join(fmt.Errorf("rewrite the journal: %w", err), file.Close())
		}
		size += n
	}
	err = file.Sync()
	if err == nil {
		err = os.Rename(path, j.path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("rewrite the journal: %w", err), file.Close())
	}
	// From now on the new file is the journal. If the folder is not on the disk at a power failure, the old file comes
	// back, without the lines that were written to the new one: nothing more may be written until the folder is on the
	// disk.
	if err := plainjson.SyncDir(filepath.Dir(j.path)); err != nil {
		j.broken = fmt.Errorf("rewrite the journal: %w", err)
	}
	_ = j.file.Close() // the file was replaced
	j.adoptFile(file, size, keep)
	return j.broken
}

// toKeep returns the calls that the file must remember, in the order of their lines.
func (j *journal) toKeep() []string {
	forget := j.now().Add(-rememberAcknowledged).Unix()
	known := 0
	keep := j.sorted(func(e *entry) bool { return e.length > 0 })
	for i, id := range slices.Backward(keep) {
		if e := j.calls[id]; e.stage == stageAcknowledged {
			if known++; known > alwaysRemembered && e.at < forget {
				keep[i] = ""
			}
		}
	}
	return slices.DeleteFunc(keep, func(id string) bool { return id == "" })
}

// adoptFile makes a file with the lines about these calls, in that order, the journal.
func (j *journal) adoptFile(file *os.File, size int64, kept []string) {
	calls := make(map[string]*entry, len(kept))
	var offset int64
	for _, id := range kept {
		e := j.calls[id]
		e.offset = offset
		offset += int64(e.length)
		calls[id] = e
	}
	for id, e := range j.calls {
		if e.outcome != nil { // this outcome is in no file
			calls[id] = e
		}
	}
	j.file, j.size, j.needed, j.calls, j.rewritten = file, size, size, calls, j.now()
}

// close closes the file. Nothing may be written after it.
func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.broken = os.ErrClosed
	return j.file.Close() //nolint:wrapcheck // it says what it did
}
