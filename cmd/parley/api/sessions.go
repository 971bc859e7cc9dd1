package api

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"parley/channels"
	"parley/cmd/parley/api/exchange"
	"parley/sessions"
	"parley/tools/plainjson"
)

// pageBytes is how many bytes a page of entries has at most.
const pageBytes = 4 << 20

// logs serves the logs of sessions.
type logs struct {
	sessions sessions.Reader
	book     channels.Ratings
	write    time.Duration // how long a caller may take to read a line of an export
}

// list lists the sessions that the caller may read, in the order of their keys.
func (l logs) list(w *exchange.Answer, r *http.Request) error {
	limit, err := exchange.Limit(r)
	if err != nil {
		return err
	}
	newest, err := exchange.Newest(r)
	if err != nil {
		return err
	}
	since, err := exchange.Moment(r, "since")
	if err != nil {
		return err
	}
	var page struct {
		Sessions []sessions.Info `json:"sessions"`
		Next     string          `json:"next,omitempty"`
	}
	asked := r.URL.Query()
	if q := (sessions.SessionQuery{Person: asked.Get("person"), Since: since, Limit: limit}); newest || q.Person != "" || !q.Since.IsZero() {
		page.Sessions, err = l.recentVisible(r.Context(), w.Caller, q)
		if err != nil {
			return err
		}
		return w.JSON(http.StatusOK, page)
	}
	list, more, err := l.listVisible(r.Context(), w.Caller, asked.Get("after"), limit)
	if err != nil {
		return err
	}
	if page.Sessions = list; more {
		page.Next = list[len(list)-1].Key
	}
	return w.JSON(http.StatusOK, page)
}

// recentPage is how many sessions are looked at at once for a caller who may not read all.
const recentPage = 5000

// recentVisible returns those of the sessions that a query is about that a caller may read.
func (l logs) recentVisible(ctx context.Context, c exchange.Caller, q sessions.SessionQuery) ([]sessions.Info, error) {
	list, most := []sessions.Info{}, q.Limit
	if c.MayReadAll() {
		found, err := l.sessions.Recent(ctx, q)
		return append(list, found...), err
	}
	q.Limit = recentPage // of which some are not the caller's
	for {
		found, err := l.sessions.Recent(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, info := range found {
			if key, err := parseKey(info.Key); err == nil && key.belongsTo(c) && len(list) < most {
				list = append(list, info)
			}
		}
		if len(list) == most || len(found) < recentPage {
			return list, nil
		}
		q.After = &found[len(found)-1]
	}
}

// listVisible returns the sessions that a caller may read and whose keys follow the key after, at
// most limit; more is true if others follow.
func (l logs) listVisible(ctx context.Context, c exchange.Caller, after string, limit int) (list []sessions.Info, more bool, err error) {
	list = []sessions.Info{}
	for {
		found, err := l.sessions.List(ctx, after, exchange.PageMost)
		if err != nil {
			return nil, false, err
		}
		for _, info := range found {
			if key, err := parseKey(info.Key); !c.MayReadAll() && (err != nil || !key.belongsTo(c)) {
				continue
			}
			if len(list) == limit {
				return list, true, nil
			}
			list = append(list, info)
		}
		if len(found) < exchange.PageMost {
			return list, false, nil
		}
		after = found[len(found)-1].Key
	}
}

// read answers with a page of entries from a session's log.
func (l logs) read(w *exchange.Answer, r *http.Request) error {
	key, err := readableSession(w, r)
	if err != nil {
		return err
	}
	limit, err := exchange.Limit(r)
	if err != nil {
		return err
	}
	after, err := exchange.After(r)
	if err != nil {
		return err
	}
	page := struct {
		Key     string           `json:"key"`
		Entries []sessions.Entry `json:"entries"`
		Next    int64            `json:"next,omitempty"`
		Ratings []rating         `json:"ratings,omitempty"`
	}{Key: key.text, Entries: []sessions.Entry{}}
	size := 0
	for e, err := range l.sessions.Read(r.Context(), key.text, after+1) {
		if err != nil {
			return err
		}
		if n := len(page.Entries); n == limit || n > 0 && size+len(e.Data) > pageBytes {
			page.Next = page.Entries[n-1].N
			break
		}
		page.Entries = append(page.Entries, e)
		size += len(e.Data)
	}
	if page.Next == 0 {
		if page.Ratings, err = l.ratings(r.Context(), key.text); err != nil {
			return err
		}
	}
	return w.JSON(http.StatusOK, page)
}

// A rating is a person's judgement, good or bad, of a turn's answer.
type rating struct {
	Turn   string    `json:"turn"`
	Person string    `json:"person"`
	Good   bool      `json:"good"`
	At     time.Time `json:"at"`
}

// ratings returns what people think of a session's answers.
func (l logs) ratings(ctx context.Context, session string) (all []rating, err error) {
	kept, err := l.book.Ratings(ctx, session)
	for _, r := range kept {
		all = append(all, rating{r.Turn, r.Person, r.Good, r.Rated.UTC()})
	}
	return all, err
}

// export answers with a session's whole log, one entry on each line. If an error occurs in
// the middle it breaks the connection, so that nobody takes a part for the whole.
func (l logs) export(w *exchange.Answer, r *http.Request) error {
	key, err := readableSession(w, r)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 32<<10)
	enc := plainjson.NewEncoder(out)
	begun := false
	for e, err := range l.sessions.Read(r.Context(), key.text, 1) {
		if err == nil {
			if !begun {
				begun = true
				w.Header().Set("Content-Type", "application/x-ndjson")
				w.Header().Set("Cache-Control", "no-store")
			}
			w.Extend(l.write)
			err = enc.Encode(e)
		}
		if err != nil && w.Status() == 0 {
			return err
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	if !begun {
		w.Header().Set("Content-Type", "application/x-ndjson")
	}
	if err := l.exportRatings(r.Context(), enc, key.text); err != nil || out.Flush() != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// exportRatings writes the ratings of a session's answers, one on each line.
func (l logs) exportRatings(ctx context.Context, enc *json.Encoder, session string) error {
	all, err := l.ratings(ctx, session)
	if err != nil {
		return err
	}
	for _, one := range all {
		line := struct {
			Kind string `json:"kind"`
			rating
		}{"rating", one}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
