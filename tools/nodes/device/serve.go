package device

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Serve serves links on connections that others have opened, beginning with first. There is one link at a time: a new
// connection ends the link before. Serve returns once there is neither a link nor a connection, and no call waits or
// runs; outcomes that were not sent are in the journal for a later link. When ctx ends, the running calls are ended,
// and their outcomes recorded. Its errors are those of Run.
func (n Node) Serve(ctx context.Context, first net.Conn, others <-chan net.Conn) (err error) {
	n.Timing = n.Timing.withDefaults()
	if n.Point == nil {
		n.Point = func(string) {}
	}
	j, err := openJournal(n.Journal, time.Now)
	if err != nil {
		_ = first.Close() // the other end sees that no node is here
		return err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r := newRunner(n, j)
	r.serveLinks(ctx, first, others)
	stop()
	if !r.wait(n.Timing.StopGrace) {
		err = errors.Join(err, ErrStuck)
	}
	return err
}

// serveLinks serves links until there is nothing left to do, or ctx ends.
func (r *runner) serveLinks(ctx context.Context, first net.Conn, others <-chan net.Conn) {
	l := r.begin(ctx, first)
	defer func() { l.end() }()
	gone := l.ended // nil once the end of the link was seen
	for {
		select {
		case conn := <-others:
			l.end()
			l = r.begin(ctx, conn)
			gone = l.ended
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

// isIdle reports whether no call waits or runs. Without a link, no call can arrive.
func (r *runner) isIdle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.workers+r.jobs == 0 && len(r.waiting) == 0
}

// A servedLink is a link on a connection that somebody else has opened.
type servedLink struct {
	cancel context.CancelFunc
	ended  <-chan struct{} // closed once it has ended
}

// end ends the link, and waits until it has.
func (l *servedLink) end() {
	l.cancel()
	<-l.ended
}

// begin serves a link on a connection, until end is called, or the connection or ctx ends.
func (r *runner) begin(ctx context.Context, conn net.Conn) *servedLink {
	linked, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() { // serveLinks waits for it
		defer close(gone)
		defer cancel()
		r.node.Log.Info("a link has ended", slog.Any("error", r.serveOn(ctx, linked, conn)))
	}()
	return &servedLink{cancel, gone}
}

// serveOn serves a link on a connection until linked ends. Calls run until ctx ends.
func (r *runner) serveOn(ctx, linked context.Context, conn net.Conn) error {
	stop := context.AfterFunc(linked, func() { _ = conn.Close() })
	defer stop()
	defer func() { _ = conn.Close() }() // an error loses nothing that isn't lost already
	opening := r.node.Link
	opening.OpenConn = func(context.Context) (net.Conn, error) { return conn, nil }
	link, err := opening.Dial(linked)
	if err != nil {
		return fmt.Errorf("begin the link: %w", err)
	}
	return r.serve(ctx, link)
}
