package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// cell returns the text of a cell in the newest row of the table that belongs to a plot.
func (v visit) cell(plot, column string) string {
	v.t.Helper()
	return eval[string](v.tab, fmt.Sprintf(`(() => {
		const table = [...document.querySelectorAll('.chart')].find(c => c.querySelector('h3').textContent === %q)?.querySelector('table');
		return [...table?.querySelectorAll('tbody tr') ?? []].at(-1)?.querySelector('[data-title=%q]')?.textContent ?? '';
	})()`, plot, column))
}

// The overview shows the past as plots and tables: the answers, how long each took, and the results of tool calls. New
// values appear by themselves.
func TestOverviewShowsHowItWent(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	eval[bool](v.tab, "(window.setInterval = () => 0, true)") // the page does not poll anymore
	v.see("overview", "Overview", "Over time")
	for _, plot := range []string{"Answers and errors", "Until the first text", "Until the answer is complete", "Tool calls", "Cost by day and model"} {
		v.waitText(".chart h3", plot)
		if drawn := eval[bool](v.tab, fmt.Sprintf("[...document.querySelectorAll('.chart svg.drawing[role=img]')].some(s => s.ariaLabel.startsWith(%q) && s.querySelector('rect[class^=c-], path[d^=M]'))", plot)); !drawn {
			t.Errorf("%s: nothing is drawn", plot)
		}
	}
	before := v.cell("Answers and errors", "Answered")
	if before == "" || v.cell("Until the first text", "Half of them (p50)") == "" || v.cell("Until the answer is complete", "95 in 100 (p95)") == "" || !strings.HasPrefix(v.cell("Cost by day and model", "scripted"), "$") {
		t.Errorf("the tables have %q", v.text(".chart table"))
	}
	v.waitText("main table", "schedule")
	if said := v.text("main .success"); !strings.Contains(said, "100%") {
		t.Errorf("of tools it says %q", said)
	}
	v.o.Telegram.Say(1, 1, "hello again") // the owner's turn waits for the open request, so another person is answered
	v.o.Telegram.Say(-9, 1, "@parleybot hello once more")
	v.wait("the new answer", fmt.Sprintf("[...document.querySelectorAll('.chart')].find(c => c.querySelector('h3').textContent === 'Answers and errors').querySelector('tbody tr:last-child [data-title=Answered]').textContent !== %q", before))
	for _, span := range []string{"month", "quarter"} {
		eval[bool](v.tab, fmt.Sprintf("(s => (s.value = %q, s.dispatchEvent(new Event('change', {bubbles: true})), true))(document.querySelector('main select'))", span))
		v.waitText("main .filters", "Days are in UTC.")
		v.wait("the days", "document.querySelectorAll('.chart .over').length >= 29")
	}
	for _, width := range []int64{1280, 390} {
		v.do(chromedp.EmulateViewport(width, 900))
		v.fits("overview")
		v.whole("overview-plots", width)
	}
}

// Before the first turn, the overview says what it will show.
func TestOverviewBeforeTheFirstTurn(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, busyModel, "")
	v := visit{enter(newBrowser(t), o, 1280, 900), o}
	v.see("overview", "Overview", "No turn has ended in the last 24 hours.")
	if eval[bool](v.tab, "!!document.querySelector('.chart')") {
		t.Error("there are plots of nothing")
	}
}
