package plainhttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

const (
	maxHeader       = 1 << 20  // bytes of the header of a response
	maxHeaders      = 5        // headers that are read for one request: the response's, after those of interim (1xx) responses
	writeBufferSize = 32 << 10 // bytes of a request that are sent at once
	// earlyAnswerWait is how long to wait for a response to a request that could not be sent completely.
	earlyAnswerWait = time.Second
)

// A conn is a connection to a server. It is used by one request at a time.
type conn struct {
	net.Conn
	t         *Transport
	address   string
	reused    bool      // it has served a request before
	idleSince time.Time // since when it has been idle

	first        [1]byte // the first byte of the response
	hasFirst     bool    // the first byte was read, and is returned next
	bytesAllowed int64   // how many more bytes may be read
}

// close closes the connection.
func (c *conn) close() { _ = c.Conn.Close() } // nothing more is expected from it

// send sends a request and reads the header of the response. It closes the connection if that fails. From then on until
// the response's body has been read or closed, the connection is also closed when the request's context ends. It
// returns errUnanswered if the server sent not one byte. Before anything is written, it reports the connection to the
// request's trace (net/http/httptrace).
func (c *conn) send(req *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{Conn: c.Conn, Reused: c.reused})
	}
	unwatch := context.AfterFunc(req.Context(), c.close)
	failed := c.write(req)
	if failed != nil { // the server may wait for the rest
		_ = c.SetReadDeadline(time.Now().Add(earlyAnswerWait)) // fails if the connection is closed
	}
	if err := c.awaitAnswer(); err != nil {
		unwatch()
		c.close()
		if failed != nil {
			err = fmt.Errorf("%w: %w", errUnanswered, failed)
		}
		return nil, err
	}
	_ = c.SetReadDeadline(time.Time{}) // it was set if the request was not sent completely
	in := c.newReader()
	resp, err := c.readHeader(in, req)
	if err != nil {
		unwatch()
		c.close()
		return nil, err
	}
	b := &body{in: in, content: resp.Body, conn: c, req: req, unwatch: unwatch}
	b.reusable = failed == nil && !resp.Close && !req.Close && resp.StatusCode != http.StatusSwitchingProtocols
	if resp.Body == http.NoBody {
		b.end(b.reusable)
		return resp, nil
	}
	resp.Body = b
	return resp, nil
}

// write writes a request, header and body together if they are short. A server may answer and close the connection
// without having read all of the request, so its response takes precedence over an error.
func (c *conn) write(req *http.Request) error {
	out, ok := c.t.writers.Get().(*bufio.Writer)
	if !ok {
		out = bufio.NewWriterSize(nil, writeBufferSize)
	}
	defer c.t.writers.Put(out)
	defer out.Reset(nil)
	// Hide the other methods: a connection that reads the body by itself allocates memory for that.
	out.Reset(struct{ io.Writer }{c.Conn})
	// Given a *bufio.Writer, req.Write would send the header at once, and the body in a packet of its own.
	if err := req.Write(struct{ *bufio.Writer }{out}); err != nil {
		return fmt.Errorf("send the request: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("send the request: %w", err)
	}
	return nil
}

// awaitAnswer waits for the first byte of a response. It needs no buffer for that.
func (c *conn) awaitAnswer() error {
	if _, err := c.Conn.Read(c.first[:]); err != nil {
		return fmt.Errorf("%w: %w", errUnanswered, err)
	}
	c.hasFirst = true
	return nil
}

// newReader returns a reader of the response.
func (c *conn) newReader() *bufio.Reader {
	in, ok := c.t.readers.Get().(*bufio.Reader)
	if !ok {
		in = bufio.NewReader(nil)
	}
	in.Reset(connReader{c})
	return in
}

// readHeader reads the header of a response, skipping interim (1xx) responses.
func (c *conn) readHeader(in *bufio.Reader, req *http.Request) (*http.Response, error) {
	c.bytesAllowed = maxHeader
	for range maxHeaders {
		resp, err := http.ReadResponse(in, req)
		if err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		if resp.StatusCode >= http.StatusOK || resp.StatusCode == http.StatusSwitchingProtocols {
			c.bytesAllowed = math.MaxInt64
			return resp, nil
		}
	}
	return nil, fmt.Errorf("read the answer: more than %d announce it", maxHeaders)
}

// A connReader reads from a conn. It first returns the byte that awaitAnswer read ahead, and fails once a header
// exceeds its budget.
type connReader struct{ *conn }

// Read implements io.Reader.
func (r connReader) Read(p []byte) (int, error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case r.bytesAllowed <= 0:
		return 0, errHeader
	}
	n := 0
	if r.hasFirst {
		r.hasFirst, p[0], n = false, r.first[0], 1
		if len(p) == 1 {
			return 1, nil
		}
	}
	more, err := r.Conn.Read(p[n:])
	r.bytesAllowed -= int64(n + more)
	if n > 0 {
		err = nil // the next read returns the error again
	}
	return n + more, err
}

// A body is the body of a response. Once it has been read to its end, its connection is kept for another request;
// if it is closed before, so is the connection.
type body struct {
	content  io.ReadCloser
	conn     *conn
	req      *http.Request // its context cancels the response
	unwatch  func() bool   // stops watching the context; returns false if the connection was closed because of it
	reusable bool          // the server accepts another request afterwards

	once sync.Once
	in   *bufio.Reader // the reader that content reads from; used by Read only
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.content.Read(p)
	if err == nil {
		return n, nil
	}
	b.end(errors.Is(err, io.EOF) && b.reusable)
	if cause := context.Cause(b.req.Context()); cause != nil && !errors.Is(err, io.EOF) {
		err = cause
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.end(false)
	return nil
}

// end releases the connection: another request may use it if reuse is true.
func (b *body) end(reuse bool) {
	b.once.Do(func() {
		if open := b.unwatch(); !reuse || !open || b.in.Buffered() > 0 {
			b.conn.close()
			return
		}
		b.in.Reset(nil)
		b.conn.t.readers.Put(b.in)
		b.conn.t.keep(b.conn)
	})
}
