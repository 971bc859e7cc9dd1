package api

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/cmd/parley/api/exchange"
	"parley/sessions"
	"parley/tools/plainjson"
)

// pageBytes is about how many bytes a page of entries has at most; a single entry may have more.
const pageBytes = 4 << 20

// logsHandler serves the logs of sessions.
type logsHandler struct {
	sessions sessions.Reader
	mail     bus.Inspector
	asks     func(context.Context) ([]bus.Ask, error) // returns the open asks; nil if there are none
	book     channels.Ratings
	scopes   readScopes
	write    time.Duration // how long a caller may take to read a line of an export
}

// A sessionPage is an answer that lists sessions.
type sessionPage struct {
	Sessions []sessions.Info `json:"sessions"`
	Next     string          `json:"next,omitempty"`
}

// list lists the sessions that the caller may read, in the order of their keys, or the most recently used first.
func (l logsHandler) list(w *exchange.Answer, r *http.Request) error {
	limit, err := exchange.Limit(r)
	if err != nil {
		return err
	}
	newest, err := exchange.Newest(r)
	if err != nil {
		return err
	}
	q, filtered, err := l.queryOf(r)
	if err != nil {
		return err
	}
	if q.Limit = limit; newest || filtered {
		return l.listRecent(w, r, q)
	}
	seen, err := l.scopes.scopeOf(r.Context(), w.Caller)
	if err != nil {
		return err
	}
	list, more, err := l.listVisible(r.Context(), seen, r.URL.Query().Get("after"), limit)
	if err != nil {
		return err
	}
	page := sessionPage{Sessions: list}
	if more {
		page.Next = list[len(list)-1].Key
	}
	return w.JSON(http.StatusOK, page)
}

// queryOf reads which sessions a request asks for; filtered is false if it asks for all.
func (l logsHandler) queryOf(r *http.Request) (q sessions.SessionQuery, filtered bool, err error) {
	given := r.URL.Query()
	q = sessions.SessionQuery{Agent: given.Get("agent"), Channel: given.Get("channel"), Person: given.Get("person"), Words: given.Get("q")}
	if q.Since, err = exchange.Moment(r, "since"); err != nil {
		return q, false, err
	}
	running, err := exchange.Flag(r, "running")
	if err != nil {
		return q, false, err
	}
	waiting, err := exchange.Flag(r, "waiting")
	if err != nil {
		return q, false, err
	}
	if running {
		if q.Keys, err = l.running(r.Context()); err != nil {
			return q, false, err
		}
	}
	if waiting {
		keys, err := l.waiting(r.Context())
		if err != nil {
			return q, false, err
		}
		if running {
			keys = slices.DeleteFunc(keys, func(key string) bool { return !slices.Contains(q.Keys, key) })
		}
		q.Keys = keys
	}
	return q, q.Agent != "" || q.Channel != "" || q.Person != "" || q.Words != "" || q.Keys != nil || !q.Since.IsZero(), nil
}

// maxRunning limits how many of the sessions that workers are working on are listed.
const maxRunning = 1000

// running returns the keys of the sessions that a worker is working on, at most maxRunning.
func (l logsHandler) running(ctx context.Context) ([]string, error) {
	boxes, err := l.mail.Mailboxes(ctx, bus.InboundTopic, maxRunning)
	keys := make([]string, 0, len(boxes.Leased))
	for _, m := range boxes.Leased {
		keys = append(keys, m.Key)
	}
	return keys, err
}

// waiting returns the keys of the sessions in which something waits for people.
func (l logsHandler) waiting(ctx context.Context) ([]string, error) {
	keys := []string{}
	if l.asks == nil {
		return keys, nil
	}
	open, err := l.asks(ctx)
	for _, a := range open {
		keys = append(keys, a.Session)
	}
	return keys, err
}

// listRecent answers with the sessions that match a query and that the caller may read, the most recently used
// first.
func (l logsHandler) listRecent(w *exchange.Answer, r *http.Request, q sessions.SessionQuery) error {
	page := sessionPage{Sessions: []sessions.Info{}}
	var err error
	if q.After, err = cursorOf(r.URL.Query().Get("after")); err != nil {
		return err
	}
	found, err := l.recent(r.Context(), w.Caller, q)
	if err != nil {
		return err
	}
	page.Sessions = append(page.Sessions, found.Sessions...)
	if found.Next != nil {
		page.Next = found.Next.Updated.UTC().Format(time.RFC3339Nano) + "," + found.Next.Key
	}
	return w.JSON(http.StatusOK, page)
}

// recent returns the sessions that match a query and that a caller may read, the most recently used first; it
// includes sub-agents' sessions only if the caller may read everything.
func (l logsHandler) recent(ctx context.Context, c exchange.Caller, q sessions.SessionQuery) (sessions.SessionPage, error) {
	seen, err := l.scopes.scopeOf(ctx, c)
	switch {
	case err != nil:
		return sessions.SessionPage{}, err
	case seen.all:
		return l.sessions.Recent(ctx, q)
	}
	return l.recentIn(ctx, seen.places, q)
}

// recentIn returns the sessions in some chats that match a query, the most recently used first. It reads each chat
// by its index, and no further than one page.
func (l logsHandler) recentIn(ctx context.Context, places []place, q sessions.SessionQuery) (page sessions.SessionPage, err error) {
	for _, p := range places {
		if q.Channel != "" && q.Channel != p.channel {
			continue
		}
		in := q
		in.Channel, in.Chat = p.channel, p.chat
		found, err := l.sessions.Recent(ctx, in)
		if err != nil {
			return sessions.SessionPage{}, err
		}
		page.Sessions = append(page.Sessions, found.Sessions...)
		if found.Next != nil && (page.Next == nil || byUse(*found.Next, *page.Next) < 0) {
			page.Next = found.Next
		}
	}
	if next := page.Next; next != nil { // another chat may have more of the sessions that follow it
		page.Sessions = slices.DeleteFunc(page.Sessions, func(s sessions.Info) bool { return byUse(s, *next) > 0 })
	}
	slices.SortFunc(page.Sessions, byUse)
	if len(page.Sessions) > q.Limit {
		page.Sessions = page.Sessions[:q.Limit]
		page.Next = &page.Sessions[q.Limit-1]
	}
	return page, nil
}

// byUse compares sessions in the order of [sessions.Reader.Recent].
func byUse(a, b sessions.Info) int {
	return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.Key, b.Key))
}

// cursorOf returns the session after which a page of recent sessions begins, given the field next of the previous
// page; nil for "".
func cursorOf(after string) (*sessions.Info, error) {
	if after == "" {
		return nil, nil
	}
	at, key, _ := strings.Cut(after, ",")
	updated, err := time.Parse(time.RFC3339Nano, at)
	if err != nil || key == "" {
		return nil, exchange.BadRequest("bad_query", `"after" must be the previous page's "next", in the same order`)
	}
	return &sessions.Info{Key: key, Updated: updated}, nil
}

// listVisible returns at most limit sessions that are in seen and whose keys follow the key after; more is true if
// others follow.
func (l logsHandler) listVisible(ctx context.Context, seen readScope, after string, limit int) (list []sessions.Info, more bool, err error) {
	if seen.all {
		list, err = l.sessions.List(ctx, after, limit+1)
	}
	for _, p := range seen.places {
		found, err := l.sessions.ListIn(ctx, p.channel, p.chat, after, limit+1)
		if err != nil {
			return nil, false, err
		}
		list = append(list, found...)
	}
	slices.SortFunc(list, func(a, b sessions.Info) int { return cmp.Compare(a.Key, b.Key) })
	if more = len(list) > limit; more {
		list = list[:limit]
	}
	return append([]sessions.Info{}, list...), more, err
}

// read answers with a page of entries from a session's log; the last page also contains the ratings of its answers.
func (l logsHandler) read(w *exchange.Answer, r *http.Request) error {
	key, err := l.scopes.readable(w, r)
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
	info, err := l.sessions.Info(r.Context(), key.text)
	if err != nil {
		return err
	}
	page := struct {
		Key     string   `json:"key"`
		Entries []entry  `json:"entries"`
		Last    int64    `json:"last"`
		Next    int64    `json:"next,omitempty"`
		Ratings []rating `json:"ratings,omitempty"`
	}{Key: key.text, Entries: []entry{}, Last: info.LastEntry}
	size := 0
	for e, err := range l.sessions.Read(r.Context(), key.text, after+1) {
		if err != nil {
			return err
		}
		if n := len(page.Entries); n == limit || n > 0 && size+len(e.Data) > pageBytes {
			page.Next = page.Entries[n-1].N
			break
		}
		shown, err := entryFor(w.Caller, e)
		if err != nil {
			return err
		}
		page.Entries = append(page.Entries, shown)
		size += shown.size()
	}
	if page.Next == 0 {
		if page.Ratings, err = l.ratings(r.Context(), key.text); err != nil {
			return err
		}
	}
	return w.JSON(http.StatusOK, page)
}

// An entry is an entry of a log as it is shown. The entry of a tool's result also has that in the form that all results
// have, if it can be decoded.
type entry struct {
	sessions.Entry
	Result *sessions.Result `json:"result,omitempty"`
}

// size returns about how many bytes the entry takes.
func (e entry) size() int {
	if e.Result == nil {
		return len(e.Data)
	}
	return len(e.Data) + len(e.Result.Content)
}

// entryFor returns an entry as a caller may see it: with a tool's result decoded, and without the chats in which people
// are asked, unless the caller may see these.
func entryFor(c exchange.Caller, e sessions.Entry) (entry, error) {
	switch e.Kind {
	case sessions.KindToolResult:
		logged, err := sessions.Decode[sessions.ToolResult](e)
		if err != nil { // the rest of the log can be read
			return entry{Entry: e}, nil //nolint:nilerr // shown raw, as above
		}
		result := logged.Result(e.Call)
		return entry{e, &result}, nil
	case sessions.KindTurnParked:
		if maySeeAskChats(c) {
			break
		}
		waits, err := sessions.Decode[sessions.TurnParked](e)
		if err != nil {
			return entry{}, err
		}
		asks := slices.Clone(waits.Asks) // other callers may be shown the originals
		for i := range asks {
			asks[i].Places, asks[i].Approvers = nil, nil
		}
		e.Data, err = plainjson.Marshal(sessions.TurnParked{Asks: asks})
		return entry{Entry: e}, err
	}
	return entry{Entry: e}, nil
}

// A rating is a person's judgment, good or bad, of a turn's answer.
type rating struct {
	Turn   string    `json:"turn"`
	Person string    `json:"person"`
	Good   bool      `json:"good"`
	At     time.Time `json:"at"`
}

// ratings returns people's ratings of a session's answers.
func (l logsHandler) ratings(ctx context.Context, session string) (all []rating, err error) {
	kept, err := l.book.Ratings(ctx, session)
	for _, r := range kept {
		all = append(all, rating{r.Turn, r.Person, r.Good, r.Rated.UTC()})
	}
	return all, err
}

// export answers with a session's whole log, one entry on each line, followed by the ratings of its answers. If an
// error occurs in the middle, it breaks the connection, so that nobody mistakes a part for the whole.
func (l logsHandler) export(w *exchange.Answer, r *http.Request) error {
	key, err := l.scopes.readable(w, r)
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
			var shown entry
			if shown, err = entryFor(w.Caller, e); err == nil {
				err = enc.Encode(shown)
			}
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
func (l logsHandler) exportRatings(ctx context.Context, enc *json.Encoder, session string) error {
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
