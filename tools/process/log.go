package process

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// How much of one line is stored: the rest of a longer message is left out, and so are all fields if they are
// longer.
const (
	longestMessage = 2 << 10
	longestFields  = 16 << 10
	lineOverhead   = 128 // the approximate number of bytes that a line takes in memory besides its texts
)

// A Line is a record in the process's log.
type Line struct {
	ID      int64 // grows from line to line, and from one process to the next
	At      time.Time
	Level   slog.Level
	Message string
	Fields  json.RawMessage // a JSON object
}

func (l Line) size() int { return len(l.Message) + len(l.Fields) + lineOverhead }

// A Log stores the newest lines of the process's log, so that people can view them from elsewhere. Its size is
// limited in bytes.
type Log struct {
	most int

	mu    sync.Mutex
	lines []Line // the oldest first
	bytes int
	last  int64         // the id of the newest line
	fresh chan struct{} // closed at the next line
	form  bytes.Buffer  // the handler writes a line's fields here
}

// NewLog makes a Log that stores at most that many bytes.
func NewLog(most int) *Log {
	return &Log{most: most, last: time.Now().UnixMicro(), fresh: make(chan struct{})}
}

// Beside returns a handler that does what h does, and also stores each record in the log.
func (l *Log) Beside(h slog.Handler) slog.Handler {
	return &besideHandler{h, slog.NewJSONHandler(&l.form, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: fieldOf}), l}
}

// fieldOf removes the attributes that a Line stores separately from its fields, and writes durations the way people
// do.
func fieldOf(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
		return slog.Attr{}
	}
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().String())
	}
	return a
}

// A besideHandler passes records on, and writes them to a Log.
type besideHandler struct {
	slog.Handler
	form slog.Handler // writes the fields to the log's buffer
	log  *Log
}

// Handle implements slog.Handler.
func (h *besideHandler) Handle(ctx context.Context, r slog.Record) error {
	h.log.add(ctx, h.form, r)
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *besideHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &besideHandler{h.Handler.WithAttrs(attrs), h.form.WithAttrs(attrs), h.log}
}

// WithGroup implements slog.Handler.
func (h *besideHandler) WithGroup(name string) slog.Handler {
	return &besideHandler{h.Handler.WithGroup(name), h.form.WithGroup(name), h.log}
}

// add adds a record, whose fields form writes, and drops the oldest lines if there is no room for them.
func (l *Log) add(ctx context.Context, form slog.Handler, r slog.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.form.Reset()
	fields := json.RawMessage("{}")
	if err := form.Handle(ctx, r); err == nil && l.form.Len() <= longestFields {
		fields = bytes.Clone(bytes.TrimSpace(l.form.Bytes()))
	}
	if l.form.Cap() > 2*longestFields { // so that one long line doesn't keep that much forever
		l.form = bytes.Buffer{}
	}
	message := r.Message
	if len(message) > longestMessage {
		message = message[:longestMessage] + "…"
	}
	l.last++
	line := Line{l.last, r.Time, r.Level, strings.ToValidUTF8(message, "\uFFFD"), fields}
	l.lines, l.bytes = append(l.lines, line), l.bytes+line.size()
	drop := 0
	for ; l.bytes > l.most && drop < len(l.lines); drop++ {
		l.bytes -= l.lines[drop].size()
	}
	clear(l.lines[:drop]) // frees their texts at once
	l.lines = l.lines[drop:]
	close(l.fresh)
	l.fresh = make(chan struct{})
}

// Newest returns the newest lines of at least that level and with ids below before, at most limit, the oldest
// first; 0 for before means all. last is the id of the newest line of any level, and more says that there are older
// ones.
func (l *Log) Newest(least slog.Level, before int64, limit int) (lines []Line, last int64, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range slices.Backward(l.lines) {
		if line.Level < least || before > 0 && line.ID >= before {
			continue
		}
		if len(lines) == limit {
			more = true
			break
		}
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	return lines, l.last, more
}

// After returns lines of at least that level that were added after the line with that id, the oldest first, at most
// limit, and the id up to which it has looked. It returns ok = false if some of these lines are no longer stored,
// or the id is invalid. fresh is closed once another line was added.
func (l *Log) After(id int64, least slog.Level, limit int) (lines []Line, last int64, fresh <-chan struct{}, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	begin := l.last - int64(len(l.lines)) // the id of the line before the first stored one
	if id < begin || id > l.last {
		return nil, l.last, l.fresh, false
	}
	last = id
	for _, line := range l.lines[id-begin:] {
		if len(lines) == limit {
			return lines, last, l.fresh, true
		}
		last = line.ID
		if line.Level >= least {
			lines = append(lines, line)
		}
	}
	return lines, last, l.fresh, true
}
