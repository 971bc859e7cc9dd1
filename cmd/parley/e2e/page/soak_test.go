package page

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"parley/cmd/parley/parleytest"
)

// soakVar is the environment variable that sets how long TestAnOpenPageDoesNotGrow takes, such as 1h. Without it, the
// test takes two rounds.
const soakVar = "PARLEY_PAGE_SOAK"

// The page holds at most mostTurns turns. When one more comes, it drops the oldest until keptTurns are left.
const mostTurns, keptTurns = 120, 90

// A page that stays open beside an active conversation holds only the newest turns, and does not grow. The person can
// load the dropped turns again.
func TestAnOpenPageDoesNotGrow(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, parleytest.EchoModel, "")
	x := enter(newBrowser(t), o, 1280, 800)
	eval[bool](x, "(location.hash = '#/chat/main%3Aweb%3Aowner%3Asoak', true)")
	said := 0
	say := func(n int) { // n messages, each after the page shows the answer to the previous one
		t.Helper()
		for range n {
			said++
			body := fmt.Sprintf(`{"to": "agent", "session": "soak", "text": "what is **%d** for?"}`, said)
			if a := o.Ask("POST", "/v1/messages", body, o.OwnerHeader()...); a.Status != 202 {
				t.Fatalf("not accepted: %d %s", a.Status, a.Body)
			}
			x.wait("an answer", fmt.Sprintf("[...document.querySelectorAll('.answer')].at(-1)?.textContent.includes('what is %d for')", said))
		}
		x.wait("the turn's end", "!document.querySelector('.standing .pulse')")
	}
	say(mostTurns)
	eval[bool](x, "(document.querySelectorAll('.turn')[40].dataset.marked = 'yes', true)")
	say(1)
	x.wait("the oldest to leave, a few at a time", fmt.Sprintf("document.querySelectorAll('.turn').length === %d", keptTurns))
	if !eval[bool](x, "!!document.querySelector('.turn[data-marked]')") {
		t.Error("a turn that stays was built again")
	}
	first := x.uses()
	t.Logf("after %d messages: %v", said, first)
	lasting, err := time.ParseDuration(os.Getenv(soakVar))
	if err != nil && os.Getenv(soakVar) != "" {
		t.Fatal(err)
	}
	for began, rounds := time.Now(), 0; rounds < 2 || time.Since(began) < lasting; rounds++ {
		say(mostTurns + 1 - keptTurns)
		now := x.uses()
		grown := func() bool {
			return now.turns != keptTurns || now.nodes > first.nodes+first.nodes/10 || now.listeners > first.listeners+first.listeners/10 || now.heap > first.heap+first.heap/2
		}
		for deadline := time.Now().Add(parleytest.Patience); grown() && time.Now().Before(deadline); now = x.uses() {
			<-time.After(50 * time.Millisecond) // the browser may take a while to collect what has left the page
		}
		t.Logf("after %d messages: %v", said, now)
		if grown() {
			t.Fatalf("the page has grown: %v after %d messages, and %v before", now, said, first)
		}
	}
	x.press("Show earlier messages")
	x.waitText(".answer", fmt.Sprintf("what is %d for", said-keptTurns))
}

// uses contains what a tab uses after a garbage collection.
type uses struct {
	turns                  int
	nodes, listeners, heap int64 // nodes and listeners of the document, and bytes of its scripts
}

func (u uses) String() string {
	return fmt.Sprintf("%d turns, %d nodes, %d listeners, %.1f MB", u.turns, u.nodes, u.listeners, float64(u.heap)/(1<<20))
}

// uses returns what a tab uses.
func (x *tab) uses() (u uses) {
	x.t.Helper()
	u.turns = eval[int](x, "document.querySelectorAll('.turn').length")
	x.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		for range 3 { // one collection may free objects that hold others
			if _, err := cdp.Call(ctx, t, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
				return err
			}
		}
		there, err := cdp.Call(ctx, t, memory.GetDOMCounters, cdp.Empty{})
		if err != nil {
			return err
		}
		heap, err := cdp.Call(ctx, t, runtime.GetHeapUsage, cdp.Empty{})
		if err != nil {
			return err
		}
		u.nodes, u.listeners, u.heap = there.Nodes, there.JsEventListeners, int64(heap.UsedSize)
		return nil
	}))
	return u
}
