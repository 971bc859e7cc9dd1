package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// maxGroup bounds how many writes share one commit, so that none waits long for
// those behind it.
const maxGroup = 256

// A write is a function that waits to run in a transaction.
type write struct {
	fn   func(*Tx) error
	done chan error // buffered; nil if nobody waits
}

// A writer is the one goroutine that writes to a SQLite database. It commits writes
// in groups: what queues up during one commit shares the next, and so the disk flush.
type writer struct {
	tx            *Tx
	writes        chan write
	betweenGroups chan func(*sql.Conn) // run between two groups, outside of transactions
	stop          chan struct{}
	stopped       chan struct{}
	once          sync.Once
	mu            sync.RWMutex // enqueue holds it for reading, so that nothing is queued after close
	closed        bool
}

func startWriter(conn *sql.Conn) *writer {
	w := &writer{
		tx:            &Tx{conn: conn, stmts: map[string]*sql.Stmt{}},
		writes:        make(chan write, maxGroup),
		betweenGroups: make(chan func(*sql.Conn)),
		stop:          make(chan struct{}),
		stopped:       make(chan struct{}),
	}
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

// single joins a group like every other write, as SQLite has no round trip to save.
func (w *writer) single(ctx context.Context, st *statement) error { return w.write(ctx, st.runIn) }

func (w *writer) group(ctx context.Context, st *statement) error { return w.write(ctx, st.runIn) }

func (w *writer) start(fn func(*Tx) error) { w.enqueue(write{fn: fn}) }

// enqueue queues a write; it returns false if the writer is closed.
func (w *writer) enqueue(wr write) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return false
	}
	w.writes <- wr
	return true
}

func (w *writer) close() error {
	w.once.Do(func() {
		w.mu.Lock()
		w.closed = true
		w.mu.Unlock()
		close(w.stop)
	})
	<-w.stopped
	// SQLite does not close a connection that has open statements, and would leave its
	// WAL file behind.
	var errs []error
	for _, s := range w.tx.stmts {
		errs = append(errs, s.Close())
	}
	clear(w.tx.stmts)
	return errors.Join(append(errs, w.tx.conn.Close())...)
}

func (w *writer) run() {
	defer close(w.stopped)
	var group []write
	for {
		select {
		case wr := <-w.writes:
			// Callers that the last commit woke may write again at once. Yielding
			// lets them queue, so that they share this commit.
			runtime.Gosched()
			group = gather(w.writes, append(group[:0], wr))
		case do := <-w.betweenGroups:
			do(w.tx.conn)
			continue
		case <-w.stop:
			group = gather(w.writes, group[:0])
			if len(group) == 0 {
				return
			}
		}
		w.commit(group)
		clear(group)
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

// commit runs a group in one transaction. If a write fails, the transaction is rolled
// back; that write gets its error, and the others run again without it.
func (w *writer) commit(group []write) {
	for len(group) > 0 {
		failed, err := w.tryGroup(group)
		if failed < 0 {
			for _, wr := range group {
				wr.report(err)
			}
			return
		}
		group[failed].report(err)
		group = append(group[:failed], group[failed+1:]...)
	}
}

// report gives the write's caller its outcome.
func (wr write) report(err error) {
	if wr.done != nil {
		wr.done <- err
	}
}

// tryGroup runs a group once. It returns the index and the error of the write that
// failed, or -1 and the outcome of the whole group.
func (w *writer) tryGroup(group []write) (int, error) {
	ctx := context.Background()
	if _, err := w.tx.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return -1, fmt.Errorf("begin: %w", err)
	}
	for i, wr := range group {
		if err := wr.fn(w.tx); err != nil {
			if _, undo := w.tx.conn.ExecContext(ctx, "ROLLBACK"); undo != nil {
				err = errors.Join(err, fmt.Errorf("roll back: %w", undo))
			}
			return i, err
		}
	}
	if _, err := w.tx.conn.ExecContext(ctx, "COMMIT"); err != nil {
		_, undo := w.tx.conn.ExecContext(ctx, "ROLLBACK")
		return -1, errors.Join(fmt.Errorf("commit: %w", err), undo)
	}
	return -1, nil
}
