package page

import (
	"fmt"
	"testing"

	"parley/agent/agenttest"
)

// rich is an answer with every kind of markup.
const rich = "## What I found\n\nThe build **fails** in `pkg/web` because a [link](https://example.com/very/long/path) is broken:\n\n" +
	"1. It is in the *third* file.\n2. It was there before:\n   - in March\n   - and in April\n\n> We never tested that.\n\n" +
	"```go\nfunc main() {\n\tfmt.Println(\"a very long line that does not fit on a small screen, and scrolls by itself instead of making the page wide\")\n}\n```\n\n" +
	"| file | lines | state |\n|---|---|---|\n| `a.go` | 12 | ok |\n| `a_very_long_name_of_a_file_that_somebody_has_chosen.go` | 1,200 | broken |\n\n" +
	"averyveryverylongwordwithoutanyplaceatwhichitcouldbebrokenaveryveryverylongwordwithoutanyplaceatwhichitcouldbebroken"

// On every screen size, including a small phone's, nothing is wider than the screen, and every button and link is on
// the screen.
func TestThePageFitsTheScreen(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, func(r agenttest.Request) agenttest.Response {
		switch r.Rounds() {
		case 0:
			return agenttest.Calls(
				agenttest.Call("write_file", `{"path":"plan.txt","content":"one two"}`),
				agenttest.Call("read_file", `{"path":"there/is/no/such/file/in/the/whole/workspace.txt"}`),
			)
		case 1:
			return agenttest.Calls(agenttest.Call("edit_file", `{"path":"plan.txt","old_text":"two","new_text":"three"}`))
		}
		return agenttest.Reply(rich)
	}, "\n[tools]\nask = [\"edit_file\"]\n")
	b := newBrowser(t)
	x := enter(b, o, 1280, 800)
	x.write(field, "What is wrong with the build? Look at everything that there is, and tell me in detail what you have found.")
	x.wait("the ask", "document.querySelector('.ask.open')")
	at := eval[string](x, "location.hash")
	sizes := []int64{1280, 390, 360}
	each := func(name string, tabs ...*tab) {
		t.Helper()
		for i, one := range tabs {
			for _, scheme := range []string{"light", "dark"} {
				one.look(scheme)
				one.picture(fmt.Sprintf("%s-%d-%s", name, sizes[i], scheme))
			}
			one.fits(name)
		}
	}
	y, z := enter(b, o, 390, 844), enter(b, o, 360, 640)
	each("sessions", x, y, z)
	for _, small := range []*tab{y, z} {
		eval[bool](small, fmt.Sprintf("(location.hash = %q, true)", at))
		small.wait("the ask", "document.querySelector('.ask.open')")
	}
	each("ask", x, y, z)
	x.press("Approve once")
	for _, one := range []*tab{x, y, z} {
		one.waitText(".answer", "averyvery")
		one.wait("the end", "!document.querySelector('.standing .pulse')")
	}
	each("answer", x, y, z)
	for _, one := range []*tab{x, y, z} {
		eval[bool](one, "(document.querySelectorAll('details').forEach(d => d.open = true), document.querySelector('.scroll').scrollTop = 0, true)")
	}
	each("open", x, y, z)
	eval[bool](x, "(document.querySelector('.menu').open = true)")
	each("menu", x)
	x.press("Undo the last changes…")
	x.wait("the dialog", "document.querySelector('dialog[open]')")
	each("dialog", x)
	x.press("Cancel")
	x.wait("the dialog to be gone", "!document.querySelector('dialog[open]')")
	eval[bool](x, "(location.hash = '#/chat', true)")
	each("new", x)
}

// fits checks that no element makes the page wider than the screen.
func (x *tab) fits(name string) {
	x.t.Helper()
	wide := eval[[]string](x, `(() => {
		const most = document.documentElement.clientWidth + 1;
		const scrolls = e => e.closest('pre, .table');
		return [...document.querySelectorAll('#page *')]
			.filter(e => e.offsetParent && !scrolls(e) && e.getBoundingClientRect().right > most)
			.map(e => e.tagName + '.' + e.className + ' ends at ' + Math.round(e.getBoundingClientRect().right) + ' of ' + most);
	})()`)
	if len(wide) > 0 {
		x.t.Errorf("%s: wider than the screen: %q", name, wide)
	}
}
