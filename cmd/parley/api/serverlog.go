package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"parley/cmd/parley/api/exchange"
	"parley/tools/process"
)

// These constants limit how a stream sends the lines of the server's log.
const (
	firstLines  = 200                    // how many of the newest lines a new watcher gets
	linesAtOnce = 256                    // how many lines are read from the log at a time
	gatherLines = 100 * time.Millisecond // how long lines are collected, so that a busy log is not sent line by line
)

// serverLog serves the newest lines of this process's log.
type serverLog struct {
	watchHandler
	log *process.Log
}

// A logLine is a line of the log, in the API's JSON.
type logLine struct {
	ID      int64           `json:"id"`
	At      time.Time       `json:"at"`
	Level   string          `json:"level"`
	Message string          `json:"message"`
	Fields  json.RawMessage `json:"fields"`
}

func logLineOf(l process.Line) logLine {
	return logLine{l.ID, l.At.UTC(), l.Level.String(), l.Message, l.Fields}
}

// leastLevel returns the lowest level of lines that a request asks for, or debug, which means all lines, if it names
// none.
func leastLevel(r *http.Request) (slog.Level, error) {
	switch asked := r.URL.Query().Get("level"); asked {
	case "", "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, exchange.BadRequest("bad_query", `"level" must be debug, info, warn or error`)
}

// list answers with a page of the newest lines of a level and above, or of those before the line that the request
// names, in the order in which they were written.
func (s serverLog) list(w *exchange.Answer, r *http.Request) error {
	least, err := leastLevel(r)
	if err != nil {
		return err
	}
	limit, err := exchange.Limit(r)
	if err != nil {
		return err
	}
	before, err := exchange.Before(r)
	if err != nil {
		return err
	}
	page := struct {
		Lines []logLine `json:"lines"`
		Next  int64     `json:"next,omitempty"` // the value of before for the page with older lines
	}{Lines: []logLine{}}
	found, _, more := s.log.Newest(least, before, limit)
	for _, l := range found {
		page.Lines = append(page.Lines, logLineOf(l))
	}
	if more {
		page.Next = found[0].ID
	}
	return w.JSON(http.StatusOK, page)
}

// watch streams the lines until the watcher leaves, or is no longer allowed to read them.
func (s serverLog) watch(w *exchange.Answer, r *http.Request) error {
	least, err := leastLevel(r)
	if err != nil {
		return err
	}
	may := func() error {
		is, err := s.access.identify(r)
		if err == nil && (is.Name != w.Caller.Name || !is.IsAdmin()) {
			err = exchange.Forbidden("this token may no longer read the log")
		}
		return err
	}
	return s.serve(w, r, may, func(ctx context.Context, out *stream) error {
		at, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64)
		if err != nil {
			at = 0
		}
		for err = out.open(); err == nil; {
			at, err = s.sendLines(ctx, out, at, least)
		}
		return err
	})
}

// sendLines sends the lines after the one with that id, or waits for some, and returns the id of the last one. If
// lines in between are missing, it tells the watcher to start over with the newest ones.
func (s serverLog) sendLines(ctx context.Context, out *stream, at int64, least slog.Level) (last int64, err error) {
	found, last, fresh, ok := s.log.After(at, least, linesAtOnce)
	var frames [][]byte
	if !ok {
		found, last, _ = s.log.Newest(least, 0, firstLines)
		if frames, err = appendFrame(frames, last, resetEvent, struct{}{}); err != nil {
			return at, err
		}
	}
	for _, l := range found {
		if frames, err = appendFrame(frames, l.ID, "line", logLineOf(l)); err != nil {
			return at, err
		}
	}
	if len(frames) > 0 {
		return last, out.write(frames...)
	}
	if last != at { // there were lines of lower levels
		return last, nil
	}
	select {
	case <-fresh:
	case <-ctx.Done():
		return at, ctx.Err()
	}
	select {
	case <-time.After(gatherLines):
	case <-ctx.Done():
	}
	return at, ctx.Err()
}

// appendFrame appends an event in the form in which it is sent.
func appendFrame(frames [][]byte, id int64, kind string, data any) ([][]byte, error) {
	frame, err := frameOf(strconv.FormatInt(id, 10), kind, data)
	return append(frames, frame), err
}
