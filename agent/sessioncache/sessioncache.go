// Package sessioncache keeps recently used sessions in memory, so that their next run doesn't have to read
// their logs.
//
// A journal is kept from the end of a run until the next run of its session begins. That run asks the store
// whether the log still matches the journal: in a fleet, another process may have worked on the session in the
// meantime, and something may have been erased.
package sessioncache

import (
	"cmp"
	"container/list"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"parley/agent/journal"
	"parley/sessions"
)

// Bounds says how much is kept, and for how long. A zero field stands for its default.
type Bounds struct {
	Sessions int           // default: one for each 8 KB of Bytes, and at least 4,096
	Bytes    int           // roughly; default: 24 MB; one session may take a quarter of it
	Idle     time.Duration // how long an idle session is kept; default: 10 minutes
	// Age is how long ago a session may have been read from its log; default: one hour. It is limited because
	// a release that doesn't mark what it erases may be using the same store.
	Age time.Duration
}

// Journals keeps the journals of the sessions that were used most recently. Its methods may be called
// concurrently.
type Journals struct {
	bounds Bounds

	mu         sync.Mutex
	byKey      map[string]*list.Element // of a *keptJournal
	order      list.List                // most recently used first
	bytes      int
	clearCount int         // how often everything was removed
	sweep      *time.Timer // removes journals that have been idle for too long; nil while none is kept
	debts      unwrittenJournals
}

// A keptJournal is a journal that nobody is working on.
type keptJournal struct {
	key       string
	fence     int64
	journal   *journal.Journal
	size      int
	read      time.Time // from the log
	idleSince time.Time
}

// BoundsFor returns the bounds for a process that may use that many bytes of memory: a sixteenth of it, and at
// most 512 MB, because the garbage collector has to scan what is kept. If usable is 0, the bounds are the
// defaults.
func BoundsFor(usable int64) Bounds {
	if usable <= 0 {
		return Bounds{}
	}
	const least, most = 2 << 20, 512 << 20
	return Bounds{Bytes: int(max(least, min(usable/16, most)))}
}

// New makes an empty Journals.
func New(b Bounds) *Journals {
	b.Bytes = cmp.Or(b.Bytes, 24<<20)
	b.Sessions = cmp.Or(b.Sessions, max(4096, b.Bytes>>13))
	b.Idle, b.Age = cmp.Or(b.Idle, 10*time.Minute), cmp.Or(b.Age, time.Hour)
	return &Journals{bounds: b, byKey: map[string]*list.Element{}}
}

// A Run is the work on one session under one fence.
type Run struct {
	Journal    *journal.Journal
	FromMemory bool // the journal was kept, and not read again

	all        *Journals
	key        string
	fence      int64
	read       time.Time // before the journal was read from the log
	clearCount int       // when the run began
}

// Begin begins a run: fence, the number of the session's lease, becomes the lowest that may write to the
// session's log. Begin reads the log, unless a kept journal still matches it. If soon is true, the check is
// left to the run's first append: if the journal doesn't match, the append returns sessions.ErrConflict, and
// the run has to begin again.
func (j *Journals) Begin(ctx context.Context, store sessions.Store, key string, fence int64, soon bool, logger *slog.Logger) (*Run, error) {
	r := j.take(key)
	r.fence = fence
	if r.Journal != nil {
		still, err := reopen(ctx, r.Journal, fence, soon, logger)
		if r.FromMemory = err == nil && still; err != nil || still {
			return r, err
		}
	}
	r.read = time.Now()
	if peeker, ok := store.(sessions.Peeker); ok {
		still, err := r.peek(ctx, peeker, soon, logger)
		if err != nil || still {
			return r, err
		}
	}
	log, err := store.Open(ctx, key, fence)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	r.Journal, err = journal.Open(log, logger)
	return r, err
}

// peek reads the log as its last holder left it, and opens it as if it had been kept, so that a session that is
// not in the cache needs no more writes than one that is. It returns false if the log has changed in between,
// or if there is none yet.
func (r *Run) peek(ctx context.Context, store sessions.Peeker, soon bool, logger *slog.Logger) (bool, error) {
	log, ok, err := store.Peek(ctx, r.key)
	if err != nil {
		return false, fmt.Errorf("read the log: %w", err)
	}
	if !ok {
		return false, nil
	}
	if r.Journal, err = journal.Open(log, logger); err != nil {
		return false, err
	}
	return reopen(ctx, r.Journal, r.fence, soon, logger)
}

// reopen opens the log of a journal that was read before: at once or, if soon is true and that is possible,
// with the first append. It returns false if the log has changed since.
func reopen(ctx context.Context, j *journal.Journal, fence int64, soon bool, logger *slog.Logger) (bool, error) {
	if soon {
		if still, err := j.ReopenLater(fence, logger); err != nil || still {
			return still, err
		}
	}
	return j.Reopen(ctx, fence, logger)
}

// take returns a run with the journal of a session, which it removes from the cache. The run has no journal if none is
// kept, or if the log was read too long ago.
func (j *Journals) take(key string) *Run {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := &Run{all: j, key: key, clearCount: j.clearCount}
	at, ok := j.byKey[key]
	if !ok {
		return r
	}
	if k := j.remove(at); time.Since(k.read) < j.bounds.Age {
		r.Journal, r.read = k.journal, k.read
	}
	return r
}

// End ends a run whose journal matches the log. The journal is kept for the next run, unless something was erased in
// the meantime, the journal is too large, or its log can't be opened again.
func (r *Run) End() {
	r.all.debts.add(r.Journal)
	if size, ok := r.Journal.KeepForReopen(); ok {
		r.all.keep(r.clearCount, &keptJournal{key: r.key, fence: r.fence, journal: r.Journal, size: size, read: r.read, idleSince: time.Now()})
	}
}

// Fail ends a run whose journal must not be kept.
func (r *Run) Fail() { r.all.debts.add(r.Journal) }

// WriteOwed writes the entries that ended runs have left for the next append (journal.Owe). A process that is about to
// end calls it.
func (j *Journals) WriteOwed(ctx context.Context) { j.debts.writeAll(ctx) }

// keep keeps a journal for its session's next run, and removes the journals for which there is no more room. clears is
// how often Clear had been called when the run began: if it was called since then, the journal may contain erased
// texts, and is not kept. Neither is a journal that takes more than a quarter of the room.
func (j *Journals) keep(clears int, k *keptJournal) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if clears != j.clearCount || k.size > j.bounds.Bytes/4 {
		return
	}
	if at, ok := j.byKey[k.key]; ok { // a run that lost its lease may end after the next one
		if other := at.Value.(*keptJournal); other.fence >= k.fence { //nolint:forcetypeassert // the list holds nothing else
			return
		}
		j.remove(at)
	}
	j.byKey[k.key] = j.order.PushFront(k)
	j.bytes += k.size
	for j.order.Len() > j.bounds.Sessions || j.bytes > j.bounds.Bytes {
		j.remove(j.order.Back())
	}
	if j.sweep == nil {
		j.sweep = time.AfterFunc(j.bounds.Idle, j.removeIdle)
	}
}

// remove removes a journal and returns it. The caller holds j.mu.
func (j *Journals) remove(at *list.Element) *keptJournal {
	k := j.order.Remove(at).(*keptJournal) //nolint:forcetypeassert // the list holds nothing else
	delete(j.byKey, k.key)
	j.bytes -= k.size
	return k
}

// removeIdle removes the journals that have been idle for too long, and schedules its next call for the time
// at which the next journal will have been idle for as long.
func (j *Journals) removeIdle() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sweep = nil
	for at := j.order.Back(); at != nil; at = j.order.Back() {
		k := at.Value.(*keptJournal) //nolint:forcetypeassert // the list holds nothing else
		if left := time.Until(k.idleSince.Add(j.bounds.Idle)); left > 0 {
			j.sweep = time.AfterFunc(left, j.removeIdle)
			return
		}
		j.remove(at)
	}
}

// Clear removes all journals. Journals of runs that are in progress are not kept either.
func (j *Journals) Clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	clear(j.byKey)
	j.order.Init()
	j.bytes, j.clearCount = 0, j.clearCount+1
	if j.sweep != nil {
		j.sweep.Stop()
		j.sweep = nil
	}
}

// Size returns how many journals are kept, and roughly how much memory they use.
func (j *Journals) Size() (n, bytes int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.order.Len(), j.bytes
}
