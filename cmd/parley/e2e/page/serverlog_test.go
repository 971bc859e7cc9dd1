package page

import (
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
)

// The page shows the server's log live, the newest line first, from the chosen level on. While the log is paused,
// nothing moves; afterwards the page shows the lines that it missed. The log contains no messages, and the page holds a
// limited number of lines.
func TestTheLogIsFollowedOnThePage(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	v.see("log", "Log", "turn ended")
	v.waitText("main [role=status]", "Following.")
	v.waitText("main tbody", "kicked") // the reason why the dead letter was not sent
	v.o.Ask("POST", "/v1/asks/"+v.openAsk(), `{"answer":"deny"}`, v.o.OwnerHeader()...)
	v.waitText("main tbody", "POST /v1/asks/{id}")
	for _, said := range []string{"water the plants", "likes tea", parleytest.Token} {
		if strings.Contains(v.text("main"), said) {
			t.Errorf("the log has %q", said)
		}
	}
	if times := eval[[]string](v.tab, "[...document.querySelectorAll('main tbody time')].map(t => t.dateTime)"); times[0] < times[len(times)-1] {
		t.Errorf("the newest line does not come first: %q", times)
	}
	v.press("Pause")
	v.waitText("main [role=status]", "Paused.")
	v.o.Ask("DELETE", "/v1/schedules/none", "", v.o.OwnerHeader()...)
	v.see("log", "Log", "turn ended")
	if strings.Contains(v.text("main tbody"), "/v1/schedules") {
		t.Error("it moves while it is paused")
	}
	v.press("Follow")
	v.waitText("main tbody", "DELETE /v1/schedules")
	eval[bool](v.tab, "(f => { f.value = 'warn'; return f.dispatchEvent(new Event('change', {bubbles: true})) })(document.querySelector('main select'))")
	v.wait("the other lines to go", "![...document.querySelectorAll('main tbody tr')].some(r => r.textContent.includes('turn ended'))")
	v.waitText("main tbody", "kicked")
	eval[bool](v.tab, "(f => { f.value = 'info'; return f.dispatchEvent(new Event('change', {bubbles: true})) })(document.querySelector('main select'))")
	for range 520 {
		v.o.Ask("DELETE", "/v1/schedules/none", "", v.o.OwnerHeader()...)
	}
	v.wait("as many lines as the page holds", "document.querySelectorAll('main tbody tr').length === 500")
}
