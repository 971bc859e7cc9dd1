// Package sessioncache keeps sessions that were worked on lately in memory, so that their next
// run need not read their logs.
//
// A journal is kept from the end of a run until the next run of its session begins. That
// run asks the store whether the log is still what the journal holds: in a fleet another
// process may have had the session meanwhile, and something may have been erased.
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

// Bounds says how much is kept, and for how long. A zero field has its default.
type Bounds struct {
	Sessions int           // one for each 8 KB of Bytes, and at least 4,096
	Bytes    int           // 24 MB, roughly; one session may have a quarter of it
	Idle     time.Duration // how long a session is kept that nobody works on: 10 minutes
	// Age is how long ago a session may have been read from its log: one hour. A release
	// that does not mark what it erases may work on the same store.
	Age time.Duration
}

// Journals keeps journals by their sessions, those that were worked on last. Its methods
// may be called at the same time.
type Journals struct {
	bounds Bounds

	mu     sync.Mutex
	byKey  map[string]*list.Element // of a *kept
	order  list.List                // the one that was worked on last comes first
	bytes  int
	clears int         // how often everything was removed
	sweep  *time.Timer // removes what has been idle for too long; nil while nothing is kept
	debts  debts
}

// A keptJournal is a journal that nobody works on.
type keptJournal struct {
	key     string
	fence   int64
	journal *journal.Journal
	size    int
	read    time.Time // from the log
	rested  time.Time
}

// Within returns the bounds for a process that may use so many bytes of memory: a sixteenth of it,
// and at most 512 MB, because what is kept the garbage collector has to look through. If usable is 0,
// the bounds are the default ones.
func Within(usable int64) Bounds {
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
	Journal *journal.Journal

	all    *Journals
	key    string
	fence  int64
	read   time.Time // before the journal was read from the log
	clears int       // when the run began
}

// Begin begins a run: it makes fence, the number of the session's lease, the lowest that
// may write to the session's log. It reads the log, unless a journal is kept that still
// holds the same. If soon is true, the run begins with an append, and that finds out
// whether it does: if not, the append returns sessions.ErrConflict, and the run is begun anew.
func (j *Journals) Begin(ctx context.Context, store sessions.Store, key string, fence int64, soon bool, logger *slog.Logger) (*Run, error) {
	r := j.take(key)
	r.fence = fence
	if r.Journal != nil {
		still, err := reopen(ctx, r.Journal, fence, soon, logger)
		if err != nil || still {
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

// peek reads the log as its last holder has left it, and opens it as if it had been kept: so a
// session that is not kept costs no other writes than one that is. It returns false if the log has
// changed in between, or if there is none yet.
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

// reopen opens the log of a journal that was read before, at once or, if soon is true and nothing
// speaks against it, with the first append. It returns false if the log has changed since.
func reopen(ctx context.Context, j *journal.Journal, fence int64, soon bool, logger *slog.Logger) (bool, error) {
	if soon {
		if still, err := j.ReopenLater(fence, logger); err != nil || still {
			return still, err
		}
	}
	return j.Reopen(ctx, fence, logger)
}

// take removes the journal of a session, if it is kept and was not read too long ago.
func (j *Journals) take(key string) *Run {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := &Run{all: j, key: key, clears: j.clears}
	at, ok := j.byKey[key]
	if !ok {
		return r
	}
	if k := j.remove(at); time.Since(k.read) < j.bounds.Age {
		r.Journal, r.read = k.journal, k.read
	}
	return r
}

// End ends a run after which the journal holds what the log does. The journal is kept for
// the next run, unless something was erased meanwhile.
func (r *Run) End() {
	r.all.debts.add(r.Journal)
	if size, ok := r.Journal.Rest(); ok {
		r.all.keep(r.clears, &keptJournal{key: r.key, fence: r.fence, journal: r.Journal, size: size, read: r.read, rested: time.Now()})
	}
}

// Fail ends a run whose journal is not kept.
func (r *Run) Fail() { r.all.debts.add(r.Journal) }

// PayAll writes what ended runs have left to be written with the next append (journal.Owe). It is
// for a process that ends.
func (j *Journals) PayAll(ctx context.Context) { j.debts.payAll(ctx) }

// keep keeps a journal for its session's next run, and removes the journals for which there
// is no room any more. clears is how often Clear had been called when the run began: if it
// was called since, the journal may hold what was erased, and is not kept.
func (j *Journals) keep(clears int, k *keptJournal) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if clears != j.clears || k.size > j.bounds.Bytes/4 {
		return
	}
	if at, ok := j.byKey[k.key]; ok { // a run that had lost its lease ends after the next one
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

// removeIdle removes the journals that have been idle for too long, and calls itself
// again when the next one will be.
func (j *Journals) removeIdle() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sweep = nil
	for at := j.order.Back(); at != nil; at = j.order.Back() {
		k := at.Value.(*keptJournal) //nolint:forcetypeassert // the list holds nothing else
		if left := time.Until(k.rested.Add(j.bounds.Idle)); left > 0 {
			j.sweep = time.AfterFunc(left, j.removeIdle)
			return
		}
		j.remove(at)
	}
}

// Clear removes all journals. Those of runs that have begun already are not kept either.
func (j *Journals) Clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	clear(j.byKey)
	j.order.Init()
	j.bytes, j.clears = 0, j.clears+1
	if j.sweep != nil {
		j.sweep.Stop()
		j.sweep = nil
	}
}

// Size returns how many journals are kept, and roughly how much memory they take.
func (j *Journals) Size() (n, bytes int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.order.Len(), j.bytes
}
