package guard

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/tools"
)

// A conversation makes requests one after the other, as an agent does, and records what they spend.
type conversation struct {
	t         *testing.T
	g         *Guard
	turn, all []string
	seen      func(address string) tools.Sighting
}

// fetch decides about a request. Only a request without asking spends anything.
func (c *conversation) fetch(address string, ahead ...tools.Call) tools.Verdict {
	return c.decide(newCall("web_fetch", "url", address), ahead...)
}

func (c *conversation) decide(one tools.Call, ahead ...tools.Call) tools.Verdict {
	one.Untrusted = true
	one.Seen = c.seen
	one.Spent = func() tools.Spending { return tools.Spending{Turn: c.turn, All: c.all, PendingCalls: ahead} }
	v := c.g.Decide(c.t.Context(), one)
	c.turn, c.all = append(c.turn, v.Spends...), append(c.all, v.Spends...)
	return v
}

func newConversation(t *testing.T, seen func(string) tools.Sighting) *conversation {
	t.Helper()
	g, err := New(Config{AskUntrusted: true})
	if err != nil {
		t.Fatal(err)
	}
	return &conversation{t: t, g: g, seen: seen}
}

// linksOnPage returns a page with links to many hosts, and to one host.
func linksOnPage(page string) func(string) tools.Sighting {
	return func(string) tools.Sighting { return tools.Sighting{Found: true, Source: page} }
}

// The choice of links that are fetched could spell what the page's author wants to know.
func TestAPageOf300Links(t *testing.T) {
	for what, address := range map[string]string{"of one host": "https://evil.org/%d", "of a host each": "https://h%d.evil.org/"} {
		c := newConversation(t, linksOnPage("c1"))
		unasked := 0
		for i := range 300 {
			if v := c.fetch(fmt.Sprintf(address, i)); v.Decision == "" {
				unasked++
			}
			if i%5 == 4 {
				c.turn = nil // the next turn continues counting
			}
		}
		if unasked != maxPerHost {
			t.Errorf("%d links %s were fetched unasked, want %d", unasked, what, maxPerHost)
		}
	}
}

// Each page leads to the next, and has its own links on a host of its own.
func TestAChainOfPages(t *testing.T) {
	at := 0
	c := newConversation(t, func(string) tools.Sighting { return tools.Sighting{Found: true, Source: fmt.Sprint("c", at)} })
	inTurn, inAll := 0, 0
	for turn := range 20 {
		c.turn, inTurn = nil, 0
		for range 20 {
			at++
			if v := c.fetch(fmt.Sprintf("https://h%d.org/", at)); v.Decision == "" {
				inTurn++
			}
		}
		if inAll += inTurn; inTurn > maxPerTurn {
			t.Errorf("turn %d makes %d requests, want at most %d", turn, inTurn, maxPerTurn)
		}
	}
	if inAll != maxPerConversation {
		t.Errorf("%d requests were made unasked, want %d", inAll, maxPerConversation)
	}
	if v := c.fetch("https://one-more.org"); !strings.Contains(v.Reason, "more than 24 requests") {
		t.Errorf("the reason is %q", v.Reason)
	}
}

// Fetching the same address again carries information too, and so does the same address with another port or case.
func TestTheSameAddressAgain(t *testing.T) {
	c := newConversation(t, func(address string) tools.Sighting { return tools.Sighting{Found: true, Source: address} })
	for i, address := range []string{"https://evil.org/", "https://evil.org/", "https://EVIL.org:8443/", "http://evil.org./"} {
		if v := c.fetch(address); v.Decision != "" {
			t.Errorf("request %d is %+v", i, v)
		}
	}
	if v := c.fetch("https://evil.org/new"); v.Decision != tools.Ask {
		t.Errorf("the fifth is %+v", v)
	}
	if v := c.fetch("https://other.org/"); v.Decision != "" {
		t.Errorf("another host is %+v", v)
	}
}

// An address that a person writes in the turn is fetched, however much was spent: each address once.
func TestAddressesFromThePersonAreFree(t *testing.T) {
	asked := true
	c := newConversation(t, func(string) tools.Sighting { return tools.Sighting{Found: true, AskedInThisTurn: asked} })
	c.all = slices.Repeat([]string{keyAll}, maxPerConversation)
	for i := range maxAskedAddresses {
		if v := c.fetch(fmt.Sprintf("https://h%d.org/", i)); v.Decision != "" {
			t.Errorf("address %d is %+v", i, v)
		}
	}
	for _, again := range []string{"https://h0.org/", "https://h9.org/"} {
		if v := c.fetch(again); v.Decision != tools.Ask {
			t.Errorf("%s is %+v", again, v)
		}
	}
	if c.turn = nil; c.fetch("https://h0.org/").Decision != "" {
		t.Error("it is asked about in the next turn")
	}
	if asked = false; c.fetch("https://h1.org/").Decision != tools.Ask {
		t.Error("what was written in an earlier turn is free")
	}
}

// Calls of one answer run in parallel: none of them sees what the others have recorded.
func TestRequestsOfOneAnswer(t *testing.T) {
	var ahead []tools.Call
	unasked := 0
	for i := range 10 {
		c := newConversation(t, linksOnPage("c1"))
		address := fmt.Sprintf("https://h%d.org/", i)
		if v := c.fetch(address, ahead...); v.Decision == "" {
			unasked++
		}
		ahead = append(ahead, newCall("web_fetch", "url", address))
	}
	if unasked != maxPerHost {
		t.Errorf("%d ran unasked, want %d", unasked, maxPerHost)
	}
}

// A sub-agent may fetch pages, too: its requests are charged when it gets its task.
func TestTasksOfAConversation(t *testing.T) {
	c := newConversation(t, func(address string) tools.Sighting { return tools.Sighting{Found: true, Source: address} })
	handed := 0
	for range 10 {
		c.turn = nil
		if c.decide(newCall("task", "prompt", "read on")).Decision == "" {
			handed++
		}
	}
	if handed != maxPerConversation/requestsPerTask {
		t.Errorf("%d tasks were handed out unasked", handed)
	}
	if v := c.fetch("https://h.org"); v.Decision != tools.Ask {
		t.Errorf("a request behind these is %+v", v)
	}
	sub := newConversation(t, func(address string) tools.Sighting { return tools.Sighting{Found: true, Source: address} })
	sub.all = []string{tools.UntrustedTask}
	for i := range 10 {
		want := tools.Decision("")
		if i >= requestsPerTask {
			want = tools.Ask
		}
		if v := sub.fetch(fmt.Sprintf("https://h%d.org", i)); v.Decision != want {
			t.Errorf("request %d of the sub-agent is %+v", i, v)
		}
	}
	offline := newConversation(t, linksOnPage("c1"))
	offline.g.cfg.SubAgentMayFetch = func(tools.Call) bool { return false }
	for range 20 {
		if v := offline.decide(newCall("sessions_spawn", "prompt", "x")); v.Decision != "" || v.Spends != nil {
			t.Errorf("a sub-agent without the network is %+v", v)
		}
	}
}
