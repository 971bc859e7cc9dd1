// Package lines exchanges JSON-RPC messages with a child process, one per line, and drops lines
// that would make the MCP library end the connection.
//
// Programs print banners and warnings among their messages, and some messages are too long or
// invalid. The SDK ends the connection at the first of these. This package drops such a line; if
// it was an answer that is too long, the caller that waits for it gets an error instead.
package lines

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// MaxLine limits one message, in bytes.
	MaxLine = 8 << 20
	// edgeBytes is how many bytes are kept of the beginning and of the end of a line that is too
	// long, because its id is in one of them.
	edgeBytes = 512
	// maxBatch limits the number of messages in one line.
	maxBatch = 1000
	// Between two results, a child may send maxUnsolicitedMessages messages and maxUnsolicitedBytes, plus an
	// allowance for each second. Without a limit, a flood would keep a processor busy forever.
	maxUnsolicitedMessages       = 20_000
	maxUnsolicitedBytes          = 128 << 20
	maxUnsolicitedPerSecond      = 200
	maxUnsolicitedBytesPerSecond = 1 << 20
	// writeTime is how long a child may take to read a message that it is sent.
	writeTime = 20 * time.Second
)

// A Wire is the connection to one child. It implements mcp.Transport, for a single connection, and
// is also that connection.
type Wire struct {
	in  *os.File // the child's standard input
	out *os.File // its standard output

	read    *bufio.Reader
	waiting []json.RawMessage // the remaining messages of a line that held several
	dropped atomic.Int64
	heard   atomic.Int64 // how many messages have arrived from the child
	flood   flood
	flooded atomic.Bool
	kill    func() // ends the child at once

	write sync.Mutex
	asked sync.Map // the ids of the requests that were sent and not answered yet
	close sync.Once
	err   error // from closing
}

// New makes a Wire from the ends of two pipes; Close closes them. kill ends the child, and so its
// output, without waiting for that.
func New(in, out *os.File, kill func()) *Wire {
	return &Wire{in: in, out: out, read: bufio.NewReaderSize(out, 64<<10), kill: kill}
}

// Flooded reports whether the child was killed because it sent too much that nobody had asked for.
func (w *Wire) Flooded() bool { return w.flooded.Load() }

// Connect implements mcp.Transport: it returns the Wire itself.
func (w *Wire) Connect(context.Context) (mcp.Connection, error) { return w, nil }

// SessionID implements mcp.Connection: it returns "", because a child has no sessions.
func (w *Wire) SessionID() string { return "" }

// Dropped returns how many lines were not messages, or were too long.
func (w *Wire) Dropped() int64 { return w.dropped.Load() }

// Received returns how many messages have arrived.
func (w *Wire) Received() int64 { return w.heard.Load() }

// Close implements mcp.Connection: it closes the pipes, so that a child that waits for more input
// reads the end of it.
func (w *Wire) Close() error {
	w.close.Do(func() { w.err = errors.Join(w.in.Close(), w.out.Close()) })
	return w.err
}

// Write implements mcp.Connection: it sends the child a message. If the child reads nothing for
// writeTime, the connection ends.
func (w *Wire) Write(_ context.Context, m jsonrpc.Message) error {
	raw, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	if r, is := m.(*jsonrpc.Request); is && r.IsCall() {
		w.asked.Store(r.ID, nil)
	}
	w.write.Lock()
	defer w.write.Unlock()
	if err := w.in.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	if _, err = w.in.Write(append(raw, '\n')); err != nil {
		return errors.Join(err, w.Close()) // half a message may have been written
	}
	return nil
}

// Read implements mcp.Connection: it waits for the next message.
func (w *Wire) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for len(w.waiting) > 0 {
			raw := w.waiting[0]
			w.waiting = w.waiting[1:]
			m, err := jsonrpc.DecodeMessage(raw)
			if err != nil {
				w.dropped.Add(1)
				m, err = unreadableError(raw)
			}
			if err == nil {
				w.heard.Add(1)
				if r, is := m.(*jsonrpc.Response); is {
					if _, awaited := w.asked.LoadAndDelete(r.ID); awaited {
						w.flood = flood{}
					}
				}
				return m, nil
			}
		}
		line, long, err := w.readLine()
		if err != nil {
			return nil, err
		}
		if w.flood.add(len(line), time.Now()) {
			w.flooded.Store(true)
			w.kill()
			_, err := io.Copy(io.Discard, w.read) // this ends when the child does
			return nil, errors.Join(err, io.EOF)
		}
		if long != nil {
			w.dropped.Add(1)
			if line = long.errorInstead(); line == nil {
				continue
			}
		}
		w.enqueue(line)
	}
}

// A flood counts what a child has sent since its last result that somebody was waiting for.
type flood struct {
	lines, bytes int
	since        time.Time
}

// add counts a line, and reports whether the limit is exceeded.
func (f *flood) add(size int, now time.Time) bool {
	if f.since.IsZero() {
		f.since = now
	}
	f.lines, f.bytes = f.lines+1, f.bytes+size
	passed := now.Sub(f.since).Seconds()
	return f.lines > maxUnsolicitedMessages+int(passed*maxUnsolicitedPerSecond) || f.bytes > maxUnsolicitedBytes+int(passed*maxUnsolicitedBytesPerSecond)
}

// unreadableError returns an error message in place of a result that cannot be read, for example
// because it is nested too deeply, so that the caller does not wait in vain.
func unreadableError(raw []byte) (jsonrpc.Message, error) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if err := json.Unmarshal(raw, &m); err != nil || m.ID == nil || m.Method != "" {
		return nil, errors.New("it is not a result")
	}
	return jsonrpc.DecodeMessage([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32603,"message":"the answer cannot be read, or is nested too deep"}}`))
}

// enqueue adds the messages of a line to the queue. Older versions of the protocol allow several in
// one line.
func (w *Wire) enqueue(line []byte) {
	line = bytes.TrimSpace(line)
	switch {
	case len(line) == 0:
	case line[0] == '{' && json.Valid(line):
		w.waiting = append(w.waiting, line)
	case line[0] == '[' && json.Unmarshal(line, &w.waiting) == nil && len(w.waiting) <= maxBatch:
	default:
		w.waiting = nil
		w.dropped.Add(1)
	}
}

// readLine reads one line. If the line is too long, it returns its beginning and end instead.
func (w *Wire) readLine() ([]byte, *longLine, error) {
	var line []byte
	var l *longLine
	for {
		part, err := w.read.ReadSlice('\n')
		switch {
		case l != nil:
			l.add(part)
		case len(line)+len(part) > MaxLine:
			l = &longLine{head: bytes.Clone(line[:min(len(line), edgeBytes)])}
			l.add(line)
			l.add(part)
			line = nil
		default:
			line = append(line, part...)
		}
		switch {
		case err == nil:
			return line, l, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, os.ErrClosed):
			return nil, nil, io.EOF
		default:
			return nil, nil, err
		}
	}
}

// A longLine holds the beginning and the end of a line that is too long.
type longLine struct{ head, tail []byte }

func (l *longLine) add(part []byte) {
	l.tail = append(l.tail, part[max(0, len(part)-edgeBytes):]...)
	l.tail = l.tail[max(0, len(l.tail)-edgeBytes):]
}

// errorInstead returns an error message in place of a result that is too long, so that the caller
// does not wait in vain. It returns nil if the line doesn't look like a result.
func (l *longLine) errorInstead() []byte {
	const id = `"id"\s*:\s*(\d+|"[^"\\]{1,100}")`
	first := regexp.MustCompile(`^\s*\{\s*("jsonrpc"\s*:\s*"2.0"\s*,\s*)?` + id + `\s*,\s*"(result|error)"`)
	last := regexp.MustCompile(id + `\s*(,\s*"jsonrpc"\s*:\s*"2.0"\s*)?\}\s*$`)
	found := ""
	if m := first.FindSubmatch(l.head); m != nil {
		found = string(m[2])
	} else if m := last.FindSubmatch(l.tail); m != nil && regexp.MustCompile(`^\s*\{\s*("jsonrpc"\s*:\s*"2.0"\s*,\s*)?"result"`).Match(l.head) {
		found = string(m[1])
	}
	if found == "" {
		return nil
	}
	return []byte(`{"jsonrpc":"2.0","id":` + found + `,"error":{"code":-32603,"message":"the answer is longer than 8 MB, the most that one may have: ask for less"}}`)
}
