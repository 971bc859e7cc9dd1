package page

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// atEnd is a JavaScript expression that is true if a conversation is scrolled to its end.
const atEnd = "(b => b.scrollHeight - b.scrollTop - b.clientHeight < 2)(document.querySelector('.scroll'))"

// A conversation stays scrolled to its end when turns grow because the page lays them out. It does not scroll if a
// person has opened something there or has scrolled up.
func TestAConversationStaysAtItsEnd(t *testing.T) {
	t.Parallel()
	const turns = 6
	s := newStage(t)
	s.jobs = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"jobs":[{"id":"j","session":"main:web:owner:x","person":"web:owner","agent":"main","turn":"e5","call":"c5","tool":"exec_shell","command":"make",` +
			`"state":"exited","exit_code":0,"printed":0,"stopping":false,"started":"2026-01-02T03:04:05Z","deadline":"2026-01-02T04:04:05Z","ended":"2026-01-02T03:05:05Z"}],"more":false}`))
	}
	x := s.open(newBrowser(t))
	<-s.lastID
	s.snapshot(entriesOf(turns))
	x.waitText(".answer", fmt.Sprintf("File %d", turns-1))
	x.wait("what is read after the snapshot", "document.querySelector('.beside.job')")
	x.wait("the end", atEnd)
	grow := func(px int) {
		t.Helper()
		eval[bool](x, fmt.Sprintf("([...document.querySelectorAll('.turn')].at(-1).style.minHeight = '%dpx', true)", px))
	}
	grow(2000)
	x.wait("the end of what grew", atEnd)
	// A browser may report a scroll late, when the content has already grown.
	eval[bool](x, "(document.querySelector('.scroll').scrollTop++, [...document.querySelectorAll('.turn')].at(-1).style.minHeight = '4000px', document.querySelector('.scroll').dispatchEvent(new Event('scroll')), true)")
	x.wait("the end of what grew again", atEnd)
	grow(0)
	x.wait("the end of what shrank", atEnd)

	const call = "[...document.querySelectorAll('.call summary')].at(-1)"
	at := eval[float64](x, call+".getBoundingClientRect().top")
	eval[bool](x, "("+call+".click(), true)")
	x.wait("the call to open", call+".parentNode.open && "+call+".parentNode.offsetHeight > 100")
	frames(x)
	if now := eval[float64](x, call+".getBoundingClientRect().top"); now != at {
		t.Errorf("what was opened moved from %v to %v", at, now)
	}
	s.tell(1, "turn_start", `{"turn":"t1","causes":["m"]}`)
	x.waitText(".standing", "Working")
	frames(x)
	if now := eval[float64](x, call+".getBoundingClientRect().top"); now != at {
		t.Errorf("news moved what was opened from %v to %v", at, now)
	}
	x.press("Latest ↓")
	x.wait("the end behind what was opened", atEnd)
	s.tell(2, "block_start", block(0, "text"))
	s.tell(3, "block_delta", block(0, "text", "delta", quoted(strings.Repeat("news\n\n", 30))))
	x.waitText(".answer", "news")
	x.wait("the end of the news", atEnd)

	eval[bool](x, "(document.querySelector('.scroll').scrollTop -= 500, true)")
	x.wait("the way to the end", "document.querySelector('.newest')")
	grow(3000)
	frames(x)
	if eval[bool](x, atEnd) {
		t.Error("the page has left what somebody scrolled to")
	}
}

// frames waits until the page has drawn its latest changes.
func frames(x *tab) {
	x.t.Helper()
	eval[bool](x, "(window.drawn = false, requestAnimationFrame(() => requestAnimationFrame(() => { window.drawn = true; })), true)")
	x.wait("two frames", "window.drawn")
}
