package sqldb

import (
	"context"
	"database/sql"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// maxGroup bounds how many writes share one commit, so that none waits long for
// those behind it.
const maxGroup = 256

// startFlushTime is how long a write of Start may wait for another write whose commit it shares.
const startFlushTime = 200 * time.Millisecond

// A write is a function that runs in a transaction.
type write struct {
	fn   func(*Tx) error
	done chan error // gets the outcome; buffered; nil if nobody waits
	// maxDelay is how long the commit may wait for others that share it. If it is 0, done gets the
	// outcome of the commit; otherwise done gets fn's error as soon as fn has run.
	maxDelay time.Duration
	reported bool        // whether done has received the outcome
	onLost   func(error) // called if the write fails and nobody waits for it; nil if nobody wants to know
}

// isUnawaited reports whether nobody waits for the write's outcome, or no longer does.
func (wr *write) isUnawaited() bool { return wr.done == nil || wr.reported }

// report gives the write's caller the outcome, once.
func (wr *write) report(err error) {
	if wr.done != nil && !wr.reported {
		wr.reported = true
		wr.done <- err
	}
}

// A writer is the one goroutine that writes to a SQLite database. It commits writes
// in groups: what queues up during one commit shares the next, and so the disk flush.
type writer struct {
	tx            *Tx
	nextGroup     commitGroup
	pending       atomic.Int64 // how many writes are queued, or taken from the queue for the next group
	writes        chan write
	betweenGroups chan func(*sql.Conn) // run between two groups, outside of transactions
	stop          chan struct{}
	stopped       chan struct{}
	once          sync.Once
	mu            sync.RWMutex // locked for reading by enqueue, so that nothing is queued after close
	closed        bool
}

func startWriter(conn *sql.Conn, logPages int) *writer {
	tx := &Tx{conn: conn}
	w := &writer{
		tx:            tx,
		nextGroup:     commitGroup{tx: tx, dueTimer: time.NewTimer(time.Hour), log: newFileLog(tx, logPages)},
		writes:        make(chan write, maxGroup),
		betweenGroups: make(chan func(*sql.Conn)),
		stop:          make(chan struct{}),
		stopped:       make(chan struct{}),
	}
	w.nextGroup.pending = &w.pending
	go w.run()
	return w
}

func (w *writer) write(ctx context.Context, fn func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	if !w.enqueue(write{fn: fn, done: done}) {
		return ErrClosed
	}
	return <-done
}

// single joins a group like any other write, because SQLite has no round trip to save.
func (w *writer) single(ctx context.Context, st *statement) error { return w.write(ctx, st.runIn) }

func (w *writer) group(ctx context.Context, st *statement) error { return w.write(ctx, st.runIn) }

func (w *writer) soon(ctx context.Context, within time.Duration, fn func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	if !w.enqueue(write{fn: fn, done: done, maxDelay: within}) {
		return ErrClosed
	}
	return <-done
}

func (w *writer) start(fn func(*Tx) error, lost func(error)) {
	w.enqueue(write{fn: fn, maxDelay: startFlushTime, onLost: lost})
}

func (w *writer) onLost(report func(writes int, err error)) { w.nextGroup.lostReporter.Store(&report) }

func (w *writer) lastWrite() time.Time {
	if at := w.nextGroup.lastWrite.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

func (w *writer) flush() {
	if w.pending.Load() > 0 {
		_ = w.write(context.Background(), func(*Tx) error { return nil }) // the callers of these writes learn the outcome themselves
	}
}

// runBetweenGroups runs do on the writer's connection, between two groups and outside of a transaction.
func (w *writer) runBetweenGroups(ctx context.Context, do func(*sql.Conn) error) error {
	done := make(chan error, 1)
	select {
	case w.betweenGroups <- func(conn *sql.Conn) { done <- do(conn) }:
		return <-done
	case <-w.stopped:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enqueue queues a write; it returns false if the writer is closed.
func (w *writer) enqueue(wr write) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return false
	}
	w.pending.Add(1)
	w.writes <- wr
	return true
}

func (w *writer) close() (err error) {
	w.once.Do(func() {
		w.mu.Lock()
		w.closed = true
		w.mu.Unlock()
		close(w.stop)
		<-w.stopped
		err = w.tx.conn.Close()
	})
	return err
}

func (w *writer) run() {
	defer close(w.stopped)
	var taken []write
	for {
		select {
		case wr := <-w.writes:
			// Callers that the last commit woke may write again at once. Yielding lets them queue, so
			// that they share this commit.
			runtime.Gosched()
			taken = gather(w.writes, append(taken[:0], wr))
			w.nextGroup.add(taken)
			clear(taken)
		case <-w.nextGroup.dueTimer.C:
			w.nextGroup.commit()
		case <-w.nextGroup.log.pauseTimer.C:
			w.nextGroup.handlePause()
		case do := <-w.betweenGroups:
			w.nextGroup.commit()
			do(w.tx.conn)
		case <-w.stop:
			for taken = gather(w.writes, taken[:0]); len(taken) > 0; taken = gather(w.writes, taken[:0]) {
				w.nextGroup.add(taken)
			}
			w.nextGroup.commit()
			return
		}
	}
}

// gather adds to a group the items that wait in the queue, up to maxGroup in all.
func gather[T any](queue <-chan T, group []T) []T {
	for len(group) < maxGroup {
		select {
		case one := <-queue:
			group = append(group, one)
		default:
			return group
		}
	}
	return group
}
