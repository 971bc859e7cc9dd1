package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/cmd/parley/api/exchange"
	"parley/sessions"
	"parley/sessions/search"
)

// Words finds entries by words; see [search.Index].
type Words interface {
	Search(ctx context.Context, q search.Query) ([]search.Hit, error)
}

// A searchScope gives access to the sessions that a search covers.
type searchScope struct {
	all sessions.Reader
	// check returns nil if a caller may read the session with that key, or a refusal.
	check func(ctx context.Context, c exchange.Caller, session string) error
	// recent returns the sessions that match a query and that a caller may list, the most recently used first.
	recent func(ctx context.Context, c exchange.Caller, q sessions.SessionQuery) (sessions.SessionPage, error)
}

// A foundEntry is an entry that was found, in the API's JSON.
type foundEntry struct {
	Session   string        `json:"session"`
	Title     string        `json:"title,omitempty"` // the session's title
	N         int64         `json:"n"`
	Turn      string        `json:"turn,omitempty"`
	Kind      sessions.Kind `json:"kind"`
	At        time.Time     `json:"at"`
	Person    string        `json:"person,omitempty"`
	Name      string        `json:"name,omitempty"`
	Tool      string        `json:"tool,omitempty"`
	Text      string        `json:"text"`
	Untrusted bool          `json:"untrusted,omitempty"`
	Link      string        `json:"link,omitempty"`
}

// searchRoutes returns the route for searches. A caller who may read some sessions may search those.
func searchRoutes(index Words, in searchScope) []exchange.Route {
	return []exchange.Route{{Pattern: "GET /v1/search", May: exchange.Caller.MayWatch, Serve: searchHandler{index, in}.find}}
}

// searchHandler serves what is found.
type searchHandler struct {
	index Words
	scope searchScope
}

// maxQueryBytes limits the words of a query, in bytes.
const maxQueryBytes = 2000

// A searchQuery says what to find, and where.
type searchQuery struct {
	search.Query
	agent, session, person string
}

// searchQueryOf reads what a request searches for.
func searchQueryOf(r *http.Request) (q searchQuery, err error) {
	asked := r.URL.Query()
	q = searchQuery{agent: asked.Get("agent"), session: asked.Get("session"), person: asked.Get("person")}
	if q.Words = strings.TrimSpace(asked.Get("q")); q.Words == "" || len(q.Words) > maxQueryBytes {
		return q, exchange.BadRequest("bad_query", `"q" must be the words to find, in at most %d bytes`, maxQueryBytes)
	}
	if q.Since, err = exchange.Moment(r, "since"); err != nil {
		return q, err
	}
	if q.Until, err = exchange.Moment(r, "until"); err != nil {
		return q, err
	}
	if q.Limit, err = exchange.Limit(r); err != nil {
		return q, err
	}
	if asked.Get("limit") == "" {
		q.Limit = 0
	}
	q.Limit = min(q.Limit, search.MaxHits)
	return q, nil
}

// find answers with the entries that match best, in the sessions that the caller may read.
func (s searchHandler) find(w *exchange.Answer, r *http.Request) error {
	q, err := searchQueryOf(r)
	if err != nil {
		return err
	}
	if q.Sessions, err = s.sessions(r.Context(), w.Caller, q); err != nil {
		return err
	}
	found, err := s.index.Search(r.Context(), q.Query)
	if err != nil {
		return err
	}
	page := struct {
		Hits []foundEntry `json:"hits"`
	}{Hits: []foundEntry{}}
	titles, err := s.titles(r.Context(), found)
	if err != nil {
		return err
	}
	for _, h := range found {
		one := foundEntry{
			Session: h.Session, Title: titles[h.Session], N: h.N, Turn: h.Turn, Kind: h.Kind, At: h.At.UTC(),
			Person: h.Person, Name: h.Name, Tool: h.Tool, Text: h.Text, Untrusted: h.Untrusted, Link: h.Link,
		}
		if h.Episode { // the words are the agent's, too
			one.Kind, one.Person = sessions.NoticeEpisode, ""
		}
		page.Hits = append(page.Hits, one)
	}
	return w.JSON(http.StatusOK, page)
}

// sessions returns the keys of the sessions to search: the requested one, or else the search.MaxSessions most
// recently used ones that the caller may read. If the query names an agent, a person or a time, it returns only
// sessions of that agent, in which that person has spoken, or used since that time.
func (s searchHandler) sessions(ctx context.Context, by exchange.Caller, q searchQuery) (keys []string, err error) {
	in := sessions.SessionQuery{Agent: q.agent, Person: q.person, Since: q.Since, Limit: search.MaxSessions}
	var page sessions.SessionPage
	if q.session == "" {
		page, err = s.scope.recent(ctx, by, in)
	} else if err = s.scope.check(ctx, by, q.session); err == nil { // it may be a sub-agent's session, which no list contains
		in.Keys = []string{q.session}
		page, err = s.scope.all.Recent(ctx, in)
	}
	for _, one := range page.Sessions {
		keys = append(keys, one.Key)
	}
	return keys, err
}

// titles returns the titles of the sessions in which something was found, by key.
func (s searchHandler) titles(ctx context.Context, found []search.Hit) (map[string]string, error) {
	titles := map[string]string{}
	var keys []string
	for _, h := range found {
		if !slices.Contains(keys, h.Session) {
			keys = append(keys, h.Session)
		}
	}
	if len(keys) == 0 {
		return titles, nil
	}
	page, err := s.scope.all.Recent(ctx, sessions.SessionQuery{Keys: keys, Limit: len(keys)})
	for _, one := range page.Sessions {
		titles[one.Key] = cmp.Or(one.Title, titles[one.Key])
	}
	return titles, err
}
