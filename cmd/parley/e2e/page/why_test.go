package page

import (
	"strings"
	"testing"

	"parley/agent/agenttest"
)

// Each message links to its story: a message that begins a turn by the turn's link, and other messages, waiting
// messages and commands by links of their own.
func TestEachMessageLeadsToWhatHappenedToIt(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	o, _ := newWorld(t, func(r agenttest.Request) agenttest.Response {
		if r.Said() == "slowly" {
			return held("I begin. ", "I end.", release)
		}
		return agenttest.Reply("you said " + r.Said())
	}, "")
	x := enter(newBrowser(t), o, 1280, 800)
	x.write(field, "slowly")
	x.waitText(".answer", "I begin.")
	x.write(field, "one of two")
	x.waitText(".pending .standing", "Why?")
	x.write(field, "two of two")
	x.wait("both to wait", "document.querySelectorAll('.pending .standing a').length === 2")
	close(release)
	x.waitText(".answer", "you said")
	x.wait("nothing pending", "!document.querySelector('.pending') && !document.querySelector('.standing .pulse')")
	x.write(field, "/status")
	x.waitText(".spoken", "main")
	x.picture("why-links")
	links := eval[[]string](x, "[...document.querySelectorAll('.scroll .standing a')].map(a => decodeURIComponent(a.hash))")
	seen := map[string]bool{}
	for _, to := range links {
		if !strings.HasPrefix(to, "#/why/m_") || seen[to] {
			t.Errorf("the links lead to %q", links)
		}
		seen[to] = true
	}
	if len(links) != 4 {
		t.Errorf("four messages have %d links: %q", len(links), links)
	}
	v := visit{x, o}
	for _, to := range links {
		v.see(strings.TrimPrefix(to, "#/"), "Why", strings.TrimPrefix(to, "#/why/"))
		v.waitText(".story", "answered")
		if wrong := v.text("main .note.error"); wrong != "" {
			t.Errorf("%s says %s", to, wrong)
		}
	}
}
