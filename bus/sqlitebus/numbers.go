package sqlitebus

import (
	"sync/atomic"
	"time"

	"parley/sessions/sqldb"
)

// These constants are how far ahead of their use numbers are reserved on disk. With a reserve, a write is needed only
// when the reserve is used up, and a crash skips at most that many numbers.
const (
	clockAhead = 30 * time.Second
	seqAhead   = 1 << 16
)

// These are the names in table meta.
const (
	metaClock = "clock" // no fence above this number was ever given out
	metaSeq   = "seq"   // the highest sequence number that may have been given out
)

const (
	setMeta   = `INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`
	raiseMeta = `INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)`
	// getNumbers reads two of the values.
	getNumbers = `SELECT coalesce((SELECT value FROM meta WHERE name = ?), 0), coalesce((SELECT value FROM meta WHERE name = ?), 0)`
)

// A clock gives out microseconds that only grow, even if the wall clock is set back. Numbers below
// reserved are not given out again after a crash.
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

// next gives out the next number.
func (c *clock) next() int64 {
	for {
		last := c.last.Load()
		v := max(time.Now().UnixMicro(), last+1)
		if c.last.CompareAndSwap(last, v) {
			return v
		}
	}
}

// A sequence numbers messages in the order in which they are committed: only the database's
// writer takes numbers. One sequence serves all mailboxes, so that nothing needs to be
// stored for an empty one.
type sequence struct {
	last     int64
	reserved atomic.Int64
}

func newSequence(last int64) *sequence {
	s := &sequence{last: last}
	s.reserved.Store(last + seqAhead)
	return s
}

// next takes a number within tx. Once the reserve is used up, each caller raises it in its own
// transaction, until recordCommit learns that one of these has become durable: a transaction that
// only began may still be rolled back.
func (s *sequence) next(tx *sqldb.Tx) (int64, error) {
	s.last++
	if s.last > s.reserved.Load() {
		if _, err := tx.Exec(raiseMeta, metaSeq, s.last+seqAhead); err != nil {
			return 0, err
		}
	}
	return s.last, nil
}

// recordCommit records that a number has become durable, and with it the reserve that was
// raised for it.
func (s *sequence) recordCommit(seq int64) {
	if reserved := s.reserved.Load(); seq > reserved {
		s.reserved.CompareAndSwap(reserved, seq+seqAhead)
	}
}

// recordReserve records that all numbers up to last are reserved on disk.
func (c *clock) recordReserve(last int64) {
	for {
		old := c.reserved.Load()
		if old >= last || c.reserved.CompareAndSwap(old, last) {
			return
		}
	}
}
