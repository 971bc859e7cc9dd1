package page

import (
	"fmt"
	"strings"
	"testing"
)

// heldIdle makes a page hold the callbacks for idle time until the test calls them.
const heldIdle = `(window.held = [], window.requestIdleCallback = f => window.held.push(f), true)`

// A session opens with its newest turns, scrolled to the end. The page adds the older turns above them when the browser
// is idle, and what the person reads does not move.
func TestTheNewestTurnsAreDrawnFirst(t *testing.T) {
	t.Parallel()
	const newest = 32
	s := newStage(t)
	x := s.open(newBrowser(t))
	<-s.lastID
	eval[bool](x, heldIdle)
	entries := entriesOf(newest + 8)
	s.snapshot(entries[len(entries)-6*newest:])
	x.waitText(".answer", fmt.Sprintf("File %d", newest+7))
	drawn := func() int { return eval[int](x, "document.querySelectorAll('.turn').length") }
	end := func(when string) {
		t.Helper()
		x.wait(when+" the end", atEnd)
		if said := eval[string](x, "[...document.querySelectorAll('.said-text')].at(-1).textContent"); said != fmt.Sprintf("what is in file %d?", newest+7) {
			t.Errorf("%s the last thing said is %q", when, said)
		}
	}
	more := func() {
		t.Helper()
		before := drawn()
		x.wait("more to draw", "window.held.length === 1")
		eval[bool](x, "(window.held.pop()(), true)")
		x.wait("more turns", fmt.Sprintf("document.querySelectorAll('.turn').length > %d", before))
		if after := drawn(); after-before > newest/2 {
			t.Errorf("%d turns were drawn at once", after-before)
		}
	}
	if n := drawn(); n == 0 || n > newest/2 {
		t.Errorf("%d turns were drawn at first", n)
	}
	end("at first")
	more()
	end("with older turns")

	const place = "Math.round([...document.querySelectorAll('.said')].at(-3).getBoundingClientRect().top)"
	eval[bool](x, "(document.querySelectorAll('.said')[document.querySelectorAll('.said').length - 3].scrollIntoView(), true)")
	x.wait("the way to the end", "document.querySelector('.newest')")
	at := eval[int](x, place)
	for drawn() < newest {
		more()
		x.wait("what is read to stay", fmt.Sprintf("Math.abs(%s - %d) < 2", place, at))
	}
	x.press("Latest ↓")
	end("at last")
	x.wait("nothing more to draw", "window.held.length === 0")
	var want strings.Builder
	for n := range newest {
		want.WriteString(fmt.Sprintf("what is in file %d?\n", n+8))
	}
	if got := eval[string](x, `[...document.querySelectorAll('.said-text')].map(e => e.textContent + "\n").join("")`); got != want.String() {
		t.Errorf("said was:\n%s", got)
	}
}
