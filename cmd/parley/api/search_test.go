package api_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"parley/channels"
	"parley/cmd/parley/api"
	"parley/sessions/search"
)

// countedLinks counts how often the API looks up the accounts of a person.
type countedLinks struct {
	api.Links
	asked atomic.Int32
}

func (l *countedLinks) LinkedWith(ctx context.Context, person string) ([]channels.Link, error) {
	l.asked.Add(1)
	return l.Links.LinkedWith(ctx, person)
}

// A foundPage is the answer to a search.
type foundPage struct {
	Hits []struct{ Session, Title, Kind, Text, Person, Turn, Link string }
}

// linked adds a link to the message to each hit.
type linked struct {
	index interface {
		Search(ctx context.Context, q search.Query) ([]search.Hit, error)
	}
}

func (l linked) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	hits, err := l.index.Search(ctx, q)
	for i := range hits {
		hits[i].Link = "https://example.org/" + hits[i].Turn
	}
	return hits, err
}

// found returns the sessions in which a search finds something, sorted.
func (x *rig) found(token, query string) []string {
	x.t.Helper()
	r := x.get("/v1/search?"+query, token)
	if r.StatusCode != http.StatusOK {
		x.t.Fatalf("%s: %d %s", query, r.StatusCode, r.body)
	}
	keys := []string{}
	for _, h := range into[foundPage](x.t, r).Hits {
		if h.Kind != "user" || h.Text != "about "+h.Session || h.Title != h.Text || h.Person != "telegram:7" || h.Link != "https://example.org/"+h.Turn {
			x.t.Errorf("found is %+v", h)
		}
		keys = append(keys, h.Session)
	}
	slices.Sort(keys)
	return keys
}

// A search finds text in all sessions that its caller may read, and in no others.
func TestEverybodySearchesWhatTheyMayRead(t *testing.T) {
	var links countedLinks
	x := ownRig(t, func(x *rig) {
		links.Links = x.book
		x.cfg.Links, x.cfg.Words = &links, linked{x.cfg.Words}
	})
	all := slices.Concat(annsOwn, annsLinked, othersOnly)
	for _, key := range all {
		x.say(key, "telegram:7", "about "+key)
	}
	slices.Sort(all)
	work := x.tasked("main:telegram:7", "w").Session
	x.say(work, "telegram:7", "about "+work)
	links.asked.Store(0)
	anns := slices.Sorted(slices.Values(slices.Concat(annsOwn, annsLinked)))
	for _, c := range []struct {
		token, query string
		want         []string
	}{
		{ownToken, "q=about&limit=50", anns},
		{readToken, "q=about&limit=50", append([]string{work}, all...)},
		{ownerToken, "q=about&limit=50", append([]string{work}, all...)},
		{ownToken, "q=about&limit=50&agent=ops", []string{"ops:telegram:7", "ops:web:ann"}},
		{ownToken, "q=about&limit=50&person=slack%3AU1", []string{}},
		{ownToken, "q=about&session=" + url.QueryEscape(work), []string{work}},
		{chatToken, "q=about&limit=50", []string{"main:web:chat"}},
		{chatToken, "q=about&session=main%3Aweb%3Achat", []string{"main:web:chat"}},
		{readToken, "q=about&session=main%3Aslack%3AC1", []string{"main:slack:C1"}},
		{readToken, "q=about&session=main%3Aslack%3AC1&agent=main&person=telegram%3A7", []string{"main:slack:C1"}},
		{readToken, "q=about&session=main%3Aslack%3AC1&agent=ops", []string{}},
		{readToken, "q=about&session=main%3Aslack%3AC1&person=slack%3AU1", []string{}},
		{readToken, "q=about&session=main%3Atelegram%3Anone", []string{}},
		{readToken, "q=about&person=telegram%3A8", []string{}},
		{readToken, "q=about&since=2040-01-01T00:00:00Z", []string{}},
		{readToken, "q=about&until=2020-01-01T00:00:00Z", []string{}},
		{readToken, "q=nothing", []string{}},
	} {
		if got := x.found(c.token, c.query); !slices.Equal(got, c.want) {
			t.Errorf("%s with %s: %q, want %q", c.query, c.token, got, c.want)
		}
		if c.token == ownToken && links.asked.Swap(0) != 1 {
			t.Errorf("%s: accounts are not looked up once", c.query)
		}
	}
	if got := x.found(readToken, "q=about&limit=3"); len(got) != 3 {
		t.Errorf("of three hits there are %q", got)
	}
	for _, key := range append(othersOnly, x.tasked("main:slack:C1", "o").Session, "main:telegram:none", "no key") {
		if r := x.get("/v1/search?q=about&session="+url.QueryEscape(key), ownToken); r.StatusCode != http.StatusForbidden || strings.Contains(string(r.body), "about ") {
			t.Errorf("%s: %d %s", key, r.StatusCode, r.body)
		}
	}
	for _, token := range []string{ciToken, opsToken, scrapeTok} {
		if r := x.get("/v1/search?q=about", token); r.StatusCode != http.StatusForbidden {
			t.Errorf("%s searches: %d", token, r.StatusCode)
		}
	}
	for _, query := range []string{"", "q=+", "q=" + strings.Repeat("x", 2001), "q=x&since=soon", "q=x&until=soon", "q=x&limit=0", "q=x&limit=many"} {
		if r := x.get("/v1/search?"+query, readToken); r.StatusCode != http.StatusBadRequest {
			t.Errorf("%.40s: %d %s", query, r.StatusCode, r.body)
		}
	}
	x.unlink("telegram:7")
	if got := x.found(ownToken, "q=about&limit=50"); !slices.Equal(got, annsOwn) {
		t.Errorf("once the link has ended, ann finds %q", got)
	}
	if r := x.get("/v1/search?q=about&session="+url.QueryEscape(work), ownToken); r.StatusCode != http.StatusForbidden {
		t.Errorf("once the link has ended, what a sub-agent did for it: %d %s", r.StatusCode, r.body)
	}
}
