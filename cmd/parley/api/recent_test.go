package api_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"testing"

	"parley/bus"
	"parley/sessions"
)

// say writes a turn in which a person says a text.
func (x *rig) say(key, person, text string) {
	x.t.Helper()
	said := entry(x.t, "t", sessions.KindUser, sessions.User{Text: text})
	said.Cause, said.Person = "t", person
	x.write(key, begun(x.t, "t")[0], said)
}

// recent reads all pages of a query and returns the keys of its sessions. It fails the test unless each session has
// its agent and channel.
func (x *rig) recent(token, query string) (keys []string) {
	x.t.Helper()
	for next := ""; ; {
		r := x.get("/v1/sessions?"+query+"&after="+url.QueryEscape(next), token)
		if r.StatusCode != 200 {
			x.t.Fatalf("%s: %d %s", query, r.StatusCode, r.body)
		}
		page := into[sessionPage](x.t, r)
		for _, s := range page.Sessions {
			keys = append(keys, s.Key)
			if parts, err := sessions.ParseKey(s.Key); err != nil || s.Agent != parts.Agent || s.Channel != parts.Channel || s.Title == "" || s.Person == "" {
				x.t.Errorf("listed is %+v", s)
			}
		}
		if next = page.Next; next == "" {
			return keys
		}
	}
}

func TestRecentSessions(t *testing.T) {
	x := newRig(t, func(x *rig) {
		x.cfg.Asks.Open = func(context.Context) ([]bus.Ask, error) {
			return []bus.Ask{{ID: "a", Session: "main:slack:C1"}, {ID: "b", Session: "main:web:chat"}}, nil
		}
	})
	x.say("main:slack:C1", "slack:U1", "Bake the bread")
	x.say("main:web:chat", "web:chat", "the weather")
	x.say("main:web:chatter", "web:chatter", "the news")
	x.say("poet:web:chat:b", "web:chat", "a poem of bread")
	if err := x.bus.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: "m", Key: "poet:web:chat:b", Body: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	lease, err := x.bus.Claim(t.Context(), bus.InboundTopic)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		token, query string
		want         []string
	}{
		{readToken, "order=desc", []string{"poet:web:chat:b", "main:web:chatter", "main:web:chat", "main:slack:C1"}},
		{readToken, "agent=main", []string{"main:web:chatter", "main:web:chat", "main:slack:C1"}},
		{readToken, "channel=web&agent=main", []string{"main:web:chatter", "main:web:chat"}},
		{readToken, "person=web:chat", []string{"poet:web:chat:b", "main:web:chat"}},
		{readToken, "q=BREAD", []string{"poet:web:chat:b", "main:slack:C1"}},
		{readToken, "q=bread+poem&channel=web", []string{"poet:web:chat:b"}},
		{readToken, "waiting=true", []string{"main:web:chat", "main:slack:C1"}},
		{readToken, "running=true", []string{"poet:web:chat:b"}},
		{readToken, "running=true&waiting=true", nil},
		{readToken, "running=false&waiting=true&q=bake", []string{"main:slack:C1"}},
		{readToken, "since=2999-01-01T00:00:00Z", nil},
		{chatToken, "order=desc", []string{"poet:web:chat:b", "main:web:chat"}},
		{chatToken, "channel=slack", nil},
		{chatToken, "channel=web&agent=main", []string{"main:web:chat"}},
		{chatToken, "waiting=true", []string{"main:web:chat"}},
		{chatToken, "q=bread", []string{"poet:web:chat:b"}},
		{chatToken, "person=slack:U1", nil},
	} {
		for _, limit := range []int{1, 100} {
			if got := x.recent(c.token, fmt.Sprintf("%s&limit=%d", c.query, limit)); !slices.Equal(got, c.want) {
				t.Errorf("%s, %d a page: %q, want %q", c.query, limit, got, c.want)
			}
		}
	}
	if err := lease.Settle(t.Context(), bus.End{Done: 1 << 60}); err != nil {
		t.Fatal(err)
	}
	if got := x.recent(readToken, "running=true"); got != nil {
		t.Errorf("after the turn there runs %q", got)
	}
	for _, q := range []string{"order=desc&after=main:slack:C1", "q=x&after=2026-01-01,x", "running=1", "waiting=yes", "since=x"} {
		if r := x.get("/v1/sessions?"+q, readToken); r.StatusCode != 400 || r.code() != "bad_query" {
			t.Errorf("%s: %d %s", q, r.StatusCode, r.body)
		}
	}
}
