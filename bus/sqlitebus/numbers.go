package sqlitebus

import (
	"sync/atomic"
	"time"

	"parley/sessions/sqldb"
)

// How far ahead of use numbers are reserved on disk: a crash loses at most so
// many, and a write is needed only so often.
const (
	clockAhead = 30 * time.Second
	seqAhead   = 1 << 16
)

// A clock gives microseconds that only grow, also where the wall clock goes
// back. A number below reserved is safe over a crash.
type clock struct {
	last     atomic.Int64
	reserved atomic.Int64
}

func newClock(last int64) *clock {
	c := &clock{}
	c.last.Store(last)
	c.reserved.Store(last + clockAhead.Microseconds())
	return c
}

func (c *clock) next() int64 {
	for {
		last := c.last.Load()
		v := max(time.Now().UnixMicro(), last+1)
		if c.last.CompareAndSwap(last, v) {
			return v
		}
	}
}

// A sequence numbers messages, in the order in which they are committed: only
// the database's writer takes numbers. One sequence serves all mailboxes, so
// that an empty one has nothing to remember.
type sequence struct {
	last     int64
	reserved atomic.Int64
}

func newSequence(last int64) *sequence {
	s := &sequence{last: last}
	s.reserved.Store(last + seqAhead)
	return s
}

// next takes a number within tx. The reserve is raised by whoever finds it used
// up until one of them is known to be durable and says so to committed.
func (s *sequence) next(tx *sqldb.Tx) (int64, error) {
	s.last++
	if s.last > s.reserved.Load() {
		if _, err := tx.Exec(raiseMeta, metaSeq, s.last+seqAhead); err != nil {
			return 0, err
		}
	}
	return s.last, nil
}

// committed is told each number that has become durable.
func (s *sequence) committed(seq int64) {
	if reserved := s.reserved.Load(); seq > reserved {
		s.reserved.CompareAndSwap(reserved, seq+seqAhead)
	}
}

// reserve is told up to where numbers are reserved on disk.
func (c *clock) reserve(upto int64) {
	for {
		old := c.reserved.Load()
		if old >= upto || c.reserved.CompareAndSwap(old, upto) {
			return
		}
	}
}
