package device

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Serve serves links on connections that others have opened, first of all on that one. There is one at a time: the next one ends
// the one before. Serve returns once there is neither a link nor a connection, and no call waits or runs: their outcomes are in the
// journal for a later link. When ctx ends, the running calls are ended, and their outcomes recorded. The error is that of Run.
func (n Node) Serve(ctx context.Context, first net.Conn, others <-chan net.Conn) (err error) {
	n.Timing = n.Timing.orUsual()
	if n.Point == nil {
		n.Point = func(string) {}
	}
	j, err := openJournal(n.Journal, time.Now)
	if err != nil {
		_ = first.Close() // its other end sees that nobody is here
		return err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r := newRunner(n, j)
	r.takeLinks(ctx, first, others)
	stop()
	if !r.wait(n.Timing.Stop) {
		err = errors.Join(err, ErrStuck)
	}
	return err
}

// takeLinks serves links until there is nothing left to do, or ctx ends.
func (r *runner) takeLinks(ctx context.Context, first net.Conn, others <-chan net.Conn) {
	l := r.begin(ctx, first)
	defer func() { l.end() }()
	gone := l.gone // nil once it is known that it is
	for {
		select {
		case conn := <-others:
			l.end()
			l = r.begin(ctx, conn)
			gone = l.gone
		case <-gone:
			gone = nil
		case <-r.ended:
		case <-ctx.Done():
			return
		}
		if gone == nil && r.isIdle() {
			return
		}
	}
}

// isIdle reports whether no call waits or runs. Without a link, this stays so.
func (r *runner) isIdle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.workers+r.jobs == 0 && len(r.waiting) == 0
}

// A taken is a link on a connection that somebody else has opened.
type taken struct {
	cancel context.CancelFunc
	gone   <-chan struct{} // closed once it has ended
}

// end ends the link, and waits until it has.
func (l *taken) end() {
	l.cancel()
	<-l.gone
}

// begin serves a link on a connection, until end is called, or the connection or ctx ends.
func (r *runner) begin(ctx context.Context, conn net.Conn) *taken {
	linked, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() { // takeLinks waits for it
		defer close(gone)
		defer cancel()
		r.node.Log.Info("a link has ended", slog.Any("error", r.serveOn(ctx, linked, conn)))
	}()
	return &taken{cancel, gone}
}

// serveOn serves a link on a connection until linked ends. Calls run until ctx ends.
func (r *runner) serveOn(ctx, linked context.Context, conn net.Conn) error {
	stop := context.AfterFunc(linked, func() { _ = conn.Close() })
	defer stop()
	defer func() { _ = conn.Close() }() // nothing is lost that was not lost before
	opening := r.node.Link
	opening.Open = func(context.Context) (net.Conn, error) { return conn, nil }
	link, err := opening.Dial(linked)
	if err != nil {
		return fmt.Errorf("begin the link: %w", err)
	}
	return r.serve(ctx, link)
}
