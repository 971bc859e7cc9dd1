package page

import (
	"strings"
	"testing"

	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

// The doctor's view shows problems first, with what to do about each, and shows no secrets. A second check soon after
// the first one uses the same results.
func TestTheDoctorSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	v.o.Telegram.Fail(telegramtest.Fault{Method: "getMe", Act: telegramtest.Refuse, Status: 401, Description: "Unauthorized"})
	v.see("doctor", "Doctor", "1 thing needs a change.")
	first := v.text("main tbody tr:first-child")
	for _, want := range []string{"channel telegram", "wrong", "rejected the token", "channels.telegram.bot_token"} {
		if !strings.Contains(first, want) {
			t.Errorf("first of all is %q, without %q", first, want)
		}
	}
	v.waitText("main tbody", "model")
	if all := v.ask("/v1/doctor"); strings.Contains(all, parleytest.Token) || !strings.Contains(all, "rejected the token") {
		t.Errorf("the server says %s", all)
	}
	v.show("overview")
	v.waitText("main h1", "Overview")
	v.o.Telegram.Fail(telegramtest.Fault{Method: "getMe", Act: telegramtest.Refuse, Status: 500, Description: "asked again"})
	v.see("doctor", "Doctor", "rejected the token")
	v.wait("the button to wait", "[...document.querySelectorAll('main button')].find(b => b.textContent === 'Check again').disabled")
}

// The page polls until a slow check has ended. The button starts another check.
func TestTheDoctorIsAskedAgain(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	eval[bool](v.tab, `(window.realFetch = window.fetch, window.asked = 0, window.fetch = (a, b) => {
		if (!a.startsWith('/v1/doctor')) return window.realFetch(a, b);
		const at = new Date(Date.now() - 60000).toISOString(), n = ++window.asked;
		const found = {running: false, at, again: at, took_ms: 5, findings: [{part: 'home', state: n < 3 ? 'note' : 'ok', detail: 'answer ' + n}]};
		return Promise.resolve(new Response(JSON.stringify(n === 1 ? {running: true, took_ms: 0, findings: []} : found)));
	}, true)`)
	v.see("doctor", "Doctor", "answer 2")
	v.waitText("main [role=status]", "Everything works.")
	v.press("Check again")
	v.waitText("main", "answer 3")
	if n := eval[int](v.tab, "window.asked"); n != 3 {
		t.Errorf("asked %d times", n)
	}
}
