// Package lines speaks JSON-RPC with a child process, a message a line, and keeps from the conversation whatever would end it.
//
// Programs print banners and warnings among their messages, and some messages are too
// long or no messages at all. The SDK ends the connection at the first of these. Here such
// a line is dropped, and of a message that is too long whoever waits for it is told so.
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
	// MaxLine bounds one message, in bytes.
	MaxLine = 8 << 20
	// ends is how much is kept of the beginning and of the end of a line that is too long:
	// its id stands there.
	ends = 512
	// maxBatch bounds the messages of one line.
	maxBatch = 1000
	// writeTime is how long a child may take to read what it is sent.
	writeTime = 20 * time.Second
)

// A Wire is the conversation with one child. It is an mcp.Transport that connects once, and
// the connection that it makes.
type Wire struct {
	in  *os.File // the child's standard input
	out *os.File // its standard output

	read    *bufio.Reader
	waiting []json.RawMessage // the rest of a line that held several messages
	dropped atomic.Int64
	heard   atomic.Int64 // messages

	write sync.Mutex
	close sync.Once
	err   error // of closing
}

// New makes a wire of the ends of two pipes, which it closes.
func New(in, out *os.File) *Wire {
	return &Wire{in: in, out: out, read: bufio.NewReaderSize(out, 64<<10)}
}

// Connect implements mcp.Transport.
func (w *Wire) Connect(context.Context) (mcp.Connection, error) { return w, nil }

// SessionID implements mcp.Connection: a child has none.
func (w *Wire) SessionID() string { return "" }

// Dropped counts the lines that were no messages, or too long.
func (w *Wire) Dropped() int64 { return w.dropped.Load() }

// Heard counts the messages that have come.
func (w *Wire) Heard() int64 { return w.heard.Load() }

// Close implements mcp.Connection. A child that waits for more reads the end.
func (w *Wire) Close() error {
	w.close.Do(func() { w.err = errors.Join(w.in.Close(), w.out.Close()) })
	return w.err
}

// Write implements mcp.Connection. A child that reads nothing for long loses the
// conversation.
func (w *Wire) Write(_ context.Context, m jsonrpc.Message) error {
	raw, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	w.write.Lock()
	defer w.write.Unlock()
	if err := w.in.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	if _, err = w.in.Write(append(raw, '\n')); err != nil {
		return errors.Join(err, w.Close()) // what was written may be half a message
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
				m, err = unreadable(raw)
			}
			if err == nil {
				w.heard.Add(1)
				return m, nil
			}
		}
		line, long, err := w.line()
		if err != nil {
			return nil, err
		}
		if long != nil {
			w.dropped.Add(1)
			if line = long.instead(); line == nil {
				continue
			}
		}
		w.take(line)
	}
}

// unreadable is an error in place of a result that cannot be read, such as one that is
// nested too deep.
func unreadable(raw []byte) (jsonrpc.Message, error) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if err := json.Unmarshal(raw, &m); err != nil || m.ID == nil || m.Method != "" {
		return nil, errors.New("it is no result")
	}
	return jsonrpc.DecodeMessage([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32603,"message":"the answer cannot be read, or is nested too deep"}}`))
}

// take puts the messages of a line into the queue. Older releases of the protocol allow
// several of them.
func (w *Wire) take(line []byte) {
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

// line reads one line. Of one that is too long it gives the ends.
func (w *Wire) line() ([]byte, *long, error) {
	var line []byte
	var l *long
	for {
		part, err := w.read.ReadSlice('\n')
		switch {
		case l != nil:
			l.add(part)
		case len(line)+len(part) > MaxLine:
			l = &long{head: bytes.Clone(line[:min(len(line), ends)])}
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

// A long is a line that is too long: its ends.
type long struct{ head, tail []byte }

func (l *long) add(part []byte) {
	l.tail = append(l.tail, part[max(0, len(part)-ends):]...)
	l.tail = l.tail[max(0, len(l.tail)-ends):]
}

// instead is an error in place of a result that is too long: whoever waits for it is not
// to wait for nothing. It is nil where the line is no result, as far as can be seen.
func (l *long) instead() []byte {
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
