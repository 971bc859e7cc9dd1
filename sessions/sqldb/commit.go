package sqldb

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// A commitGroup collects the writes that share the next commit of a SQLite database. Only the writer's
// goroutine uses it.
//
// If a caller waits for the commit of a write, the group is committed at once. The other writes wait for
// such a write, or until they are due, so that a disk flush that nobody waits for is shared with one that
// somebody waits for. Nevertheless, writes of Soon run at once, in a transaction that stays open
// meanwhile; those of Start run with the next write that runs.
type commitGroup struct {
	tx            *Tx
	writes        []write
	inTransaction bool        // whether the transaction has begun
	ranCount      int         // how many of the writes have run in the transaction
	dueTimer      *time.Timer // fires when the commit may not wait any longer
	dueAt         time.Time   // when due fires; zero if it is not set

	log          *fileLog                                    // the log that the commits fill
	lastWrite    atomic.Pointer[time.Time]                   // when the last group ended that wrote something
	pending      *atomic.Int64                               // the writer's count of queued writes
	lostReporter atomic.Pointer[func(writes int, err error)] // see OnLost; nil if nobody wants to know
}

// add adds writes to the group, and runs and commits those that may not wait.
func (g *commitGroup) add(writes []write) {
	run, commit := false, false
	now := time.Now()
	for _, wr := range writes {
		g.writes = append(g.writes, wr)
		run = run || wr.done != nil
		commit = commit || wr.maxDelay == 0
		if at := now.Add(wr.maxDelay); g.dueAt.IsZero() || at.Before(g.dueAt) {
			g.dueAt = at
			g.dueTimer.Reset(wr.maxDelay)
		}
	}
	switch {
	case commit || len(g.writes) >= maxGroup:
		g.commit()
	case run:
		g.run()
	}
}

// commit runs the writes that have not run, and commits all. If that fails, nothing was written. It
// begins the next group even if nothing is left of this one.
func (g *commitGroup) commit() {
	if !g.run() {
		return
	}
	var err error
	if g.inTransaction {
		_, err = g.tx.Exec("COMMIT")
		if err != nil {
			err = errors.Join(fmt.Errorf("commit: %w", err), g.rollBack())
		}
	}
	g.end(err)
}

// run runs the writes that have not run, and tells the callers of Soon that they have. If a write
// fails, the transaction is rolled back; that write gets its error, and the others run again
// without it. It returns false if the transaction cannot be begun.
func (g *commitGroup) run() bool {
	for g.ranCount < len(g.writes) {
		if !g.inTransaction {
			if _, err := g.tx.Exec("BEGIN IMMEDIATE"); err != nil {
				g.end(fmt.Errorf("begin: %w", err))
				return false
			}
			g.inTransaction = true
		}
		wr := &g.writes[g.ranCount]
		if err := wr.fn(g.tx); err != nil {
			g.pending.Add(-1)
			err = errors.Join(err, g.rollBack())
			g.reportLost([]write{*wr}, err)
			wr.report(err)
			g.writes = append(g.writes[:g.ranCount], g.writes[g.ranCount+1:]...)
			g.ranCount = 0
			continue
		}
		g.ranCount++
	}
	for i := range g.writes {
		if g.writes[i].maxDelay > 0 {
			g.writes[i].report(nil)
		}
	}
	return true
}

// rollBack undoes the transaction.
func (g *commitGroup) rollBack() error {
	g.inTransaction = false
	_, err := g.tx.Exec("ROLLBACK")
	if err = ignoreAlreadyEnded(err); err != nil {
		return fmt.Errorf("roll back: %w", err)
	}
	return nil
}

// end reports the commit's outcome to all callers that wait, and begins the next group.
func (g *commitGroup) end(err error) {
	g.pending.Add(-int64(len(g.writes)))
	if len(g.writes) > 0 {
		now := time.Now()
		g.lastWrite.Store(&now)
	}
	if err != nil {
		g.reportLost(g.writes, err)
	}
	for i := range g.writes {
		g.writes[i].report(err)
	}
	clear(g.writes)
	g.writes, g.inTransaction, g.ranCount, g.dueAt = g.writes[:0], false, 0, time.Time{}
	g.dueTimer.Stop()
	g.log.groupEnded()
}

// handlePause is called when nobody has written for a moment, and moves the log's pages. If a
// transaction is open nevertheless, the log waits for another moment after its end.
func (g *commitGroup) handlePause() {
	if !g.inTransaction {
		g.log.move()
	}
}

// reportLost reports the failed writes whose callers do not learn the outcome.
func (g *commitGroup) reportLost(failed []write, err error) {
	n := 0
	for i := range failed {
		if !failed[i].isUnawaited() {
			continue
		}
		n++
		if failed[i].onLost != nil {
			failed[i].onLost(err)
		}
	}
	if report := g.lostReporter.Load(); n > 0 && report != nil {
		(*report)(n, err)
	}
}
