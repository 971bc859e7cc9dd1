package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// An owner can erase what a person said after a confirmation, and sees the receipt, also after a reload.
func TestAnOwnerErasesAPerson(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	const field = "[aria-labelledby='block-erase'] input"
	erasure := func() string { return v.text("[aria-labelledby='block-erasure']") }
	v.see("people", "People", "Erase…")
	v.typeOver(field, "nobody")
	v.press("Erase…")
	v.press("Erase it")
	v.waitText("[role=dialog], dialog", "isn't a person: write CHANNEL:USER")
	v.forgive("status of 422")
	v.press("Cancel")
	v.typeOver(field, "telegram:5")
	v.press("Erase…")
	v.waitText("[role=dialog], dialog", "everything that was said and remembered by and about telegram:5")
	if strings.Contains(v.ask("/v1/audit"), `"forget","result":"erased"`) {
		t.Error("it is erased before it is confirmed")
	}
	v.press("Erase it")
	v.waitText("[aria-labelledby='block-erasure'] .badge", "erased")
	v.waitText("[aria-labelledby='block-erasure']", "Receipt: person telegram:5")
	v.waitText("[aria-labelledby='block-erasure']", "existing backups")
	id := eval[string](v.tab, "location.hash.split('/')[2]")
	if raw := v.ask("/v1/forget/" + id); !strings.Contains(raw, `"state":"done"`) {
		t.Errorf("the server says %s", raw)
	}
	before := erasure()
	v.reload()
	v.waitText("[aria-labelledby='block-erasure']", "Receipt: person telegram:5")
	if got := erasure(); strings.Contains(got, "erasing") {
		t.Errorf("after a reload there is %q, and there was %q", got, before)
	}
	v.whole("erasure", 1280)
	v.do(chromedp.EmulateViewport(360, 800))
	v.fits("people/" + id)
	v.see("people", "People", "Erase…")
	v.wait("no erasure", "!document.querySelector('[aria-labelledby=\"block-erasure\"]')")
}

// During an erasure, the page polls the server and shows the current step and its progress.
func TestThePageShowsHowFarAnErasureIs(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	const block = "[aria-labelledby='block-erasure']"
	eval[bool](v.tab, `(window.real = window.fetch, window.now = {id: 'x1', state: 'running', asked: new Date().toISOString(), progress: {step: '', done: 0, of: 0}},
		window.fetch = (to, how) => String(to).includes('/v1/forget/x1') ? Promise.resolve(new Response(JSON.stringify(window.now))) : window.real(to, how), true)`)
	v.see("people/x1", "People", "beginning. It goes on if you leave this page.")
	bar := func() string {
		return eval[string](v.tab, fmt.Sprintf("document.querySelector(%q)?.getAttribute('width') ?? ''", block+" .bar .spent"))
	}
	if got := bar(); got != "0" {
		t.Errorf("at the beginning, the bar is at %q", got)
	}
	eval[bool](v.tab, "(window.now.progress = {step: 'records', done: 500, of: 2000}, true)")
	v.waitText(block, "records: 500 of 2,000 sessions")
	if got := bar(); got != "56.25" {
		t.Errorf("after two steps and a quarter of four, the bar is at %q", got)
	}
	v.whole("erasing", 1280)
	eval[bool](v.tab, "(window.now = {...window.now, state: 'failed', error: 'the disk is full'}, true)")
	v.waitText(block+" [role=alert]", "the disk is full. Erase it again to erase the rest.")
	if got := bar(); got != "" {
		t.Errorf("in the end, the bar is at %q", got)
	}
	v.show("people/unknown")
	v.waitText(block+" [role=alert]", "No erasure has that id")
	v.forgive("status of 404")
}
