package page

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/cmd/parley/parleytest"
)

// openAsk returns the id of the only open request.
func (v visit) openAsk() string {
	v.t.Helper()
	var ids []string
	parleytest.WaitFor(v.t, "the request", func() bool { ids = v.asks(); return len(ids) == 1 })
	return ids[0]
}

// waitTold waits until the bot has sent a text to the owner's chat n times.
func (v visit) waitTold(text string, n int) {
	v.t.Helper()
	told := 0
	parleytest.WaitFor(v.t, text, func() bool {
		told = strings.Count(strings.Join(parleytest.Texts(v.o.Telegram.Sent(1)), "\n"), text)
		return told >= n
	})
	if told != n {
		v.t.Errorf("it says %q %d times, want %d", text, told, n)
	}
}

// Opening a link to a request decides nothing. A click approves the request, the tool runs once, and the history shows
// the decision. Another request is denied with a reason, and the model is told the reason.
func TestARequestIsDecidedByAClick(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	id := v.openAsk()
	v.see("approvals/"+id, "Approvals", "notes/plan.md, a new file")
	v.wait("the request that is named", "document.activeElement.matches('.request.named')")
	v.reload()
	v.waitText(".request.named", "notes/plan.md")
	if got := v.openAsk(); got != id {
		t.Errorf("the link has decided: %s is open, not %s", got, id)
	}
	v.press("Approve once")
	v.waitText("main .note.done[role=status]", "You approved write_file. It's running now.")
	v.waitText("main .empty", "No open requests.")
	v.waitTold("Successfully wrote", 1)
	v.waitText("main .block table", id)
	v.waitText("main .block table", "approved")

	v.o.Telegram.Say(1, 1, "write it again")
	v.openAsk()
	v.waitText(".request", "notes/plan.md")
	if strings.Contains(v.text(".request"), "a new file") {
		t.Errorf("an old file is called new: %s", v.text(".request"))
	}
	v.write(".request input", "not today") // the Enter key does not decide anything
	v.openAsk()
	v.press("Deny")
	v.waitText("main .note.done", "You denied write_file.")
	v.waitTold("done: {\"error\"", 1) // the result that the model was given
	v.waitTold("Successfully wrote", 1)
	v.show("approvals/" + id)
	v.waitText("main .note", "isn't open")
}

// The page first shows only the beginning of a long call. A person who approves the call then has to confirm the
// approval.
func TestALongCallIsShownWhole(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	v.o.Ask("POST", "/v1/asks/"+v.openAsk(), `{"answer":"deny"}`, v.o.OwnerHeader()...)
	v.o.Telegram.Say(1, 1, "long")
	id := v.openAsk()
	v.see("approvals", "Approvals", "echo one")
	if strings.Contains(v.text(".request"), "echo the end") {
		t.Error("all of it is shown at once")
	}
	v.press("Approve once")
	v.waitText("dialog", "You haven't seen all of it")
	v.press("Cancel")
	if got := v.openAsk(); got != id {
		t.Errorf("%s is open, not %s", got, id)
	}
	v.press("Show all 62 lines")
	v.waitText(".request", "echo the end")
	v.press("Approve for this session")
	v.waitText("main .note.done", "You approved exec_shell for this session.")
	v.waitTold(`more\nthe end`, 1)
}

// Pressing a choice answers a question. If somebody else decided first, the page says so next to the button.
func TestAQuestionIsAnswered(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	id := v.openAsk()
	v.see("approvals", "Approvals", "notes/plan.md")
	eval[bool](v.tab, "(window.setInterval = () => 0, window.realFetch = window.fetch, window.fetch = (a, b) => (b && b.method === 'POST' ? window.realFetch(a, b) : new Promise(() => {})), true)")
	v.o.Ask("POST", "/v1/asks/"+id, `{"answer":"deny"}`, v.o.OwnerHeader()...)
	v.press("Approve once")
	v.waitText(".request .note.error", "already been decided: denied by")
	v.forgive("status of 409")
	v.reload()
	v.waitText("main .empty", "No open requests.")
	v.o.Telegram.Say(1, 1, "choose")
	v.waitText(".request", "Which color?")
	v.press("blue")
	v.waitText("main .note.done", "Answer sent.")
	v.waitTold(`"answer":"blue"`, 1)
}

// A person can look at a dead letter and send it again once the cause is fixed. Forgetting a dead letter needs a
// confirmation.
func TestADeadLetterIsReplayedAndForgotten(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	v.see("dead-letters", "Dead letters", "kicked")
	v.press("View")
	v.waitText("main pre", `"text": "fine"`)
	v.press("Close")
	v.o.Telegram.ClearFaults()
	v.press("Replay")
	v.waitText("main .note.done", "Replayed as")
	if got := v.o.WaitSaid(-9, 1); len(got) != 1 || got[0] != "fine" {
		t.Errorf("the group was told %q", got)
	}
	v.waitText("main .empty", "No dead letters.")

	v.o.Telegram.Fail(kicked)
	v.o.Telegram.Say(-9, 1, "@parleybot hello again")
	parleytest.WaitFor(t, "another dead letter", func() bool { return strings.Contains(v.ask("/v1/dead-letters"), "telegram:-9") })
	v.show("overview")
	v.waitText(".tiles", "1 dead letter")
	v.see("dead-letters", "Dead letters", "kicked")
	eval[bool](v.tab, "([...document.querySelectorAll('main button')].find(b => b.textContent === 'Forget…').focus(), true)")
	v.do(chromedp.KeyEvent(kb.Enter))
	v.waitText("dialog", "Forget this message?")
	v.press("Cancel")
	v.wait("the dialog to go", "!document.querySelector('dialog')")
	v.wait("the button to have the focus again", "document.activeElement.textContent === 'Forget…'")
	if !strings.Contains(v.ask("/v1/dead-letters"), "telegram:-9") {
		t.Error("Cancel has forgotten it")
	}
	v.press("Forget…")
	v.press("Forget it")
	v.waitText("main .note.done", "Forgot the dead letter")
	v.waitText("main .empty", "No dead letters.")
	v.wait("the focus to go to the top", "document.activeElement.tagName === 'H1'")
	if left := v.ask("/v1/dead-letters"); strings.Contains(left, "telegram:-9") {
		t.Errorf("it is left: %s", left)
	}
}

// A person is admitted with a code and can then talk to the bot until the admission is revoked. The page explains why a
// wrong code is refused.
func TestAPersonIsAdmittedAndRevoked(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	v.see("people", "People", "wants access")
	v.write(".filters input", "NOTACODE")
	v.waitText("main .note.error", "request has this code")
	v.forgive("status of 422")
	v.forgive("status of 404")
	eval[bool](v.tab, "(document.querySelector('.filters input').select(), true)")
	v.write(".filters input", v.text("main td code"))
	v.waitText("main .note.done", "now has access.")
	v.waitText("main .badge.good", "has access")
	told := len(v.o.Telegram.Sent(5))
	v.o.Telegram.Say(5, 5, "hello")
	if got := v.o.WaitSaid(5, told+1); got[len(got)-1] != "fine" {
		t.Errorf("they are told %q", got)
	}
	v.press("Revoke…")
	v.press("Revoke")
	v.waitText("main .note.done", "no longer has access")
	v.waitText("main .empty", "Nobody has access")
	if left := v.ask("/v1/pairings"); strings.Contains(left, "telegram:5") {
		t.Errorf("they are left: %s", left)
	}
}

// Canceling a schedule needs a confirmation.
func TestAScheduleIsCancelled(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	v.see("schedules", "Schedules", "0 9 * * *")
	v.press("Cancel…")
	v.waitText("dialog", "water the plants")
	v.press("Cancel schedule")
	v.waitText("main .note.done", "Schedule canceled.")
	v.waitText("main .empty", "Nothing is scheduled.")
	if left := v.ask("/v1/schedules"); !strings.Contains(left, `"schedules":[]`) {
		t.Errorf("it is left: %s", left)
	}
}

// A schedule can be added, run at once, paused, resumed and changed. For a wrong input, the form shows an error.
func TestAScheduleIsMadeAndChanged(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	v.o.Ask("POST", "/v1/asks/"+v.openAsk(), `{"answer":"deny"}`, v.o.OwnerHeader()...) // ends the turn, so that the session is free
	v.see("schedules", "Schedules", "0 9 * * *")
	v.press("New schedule")
	v.write(".editor label:nth-of-type(1) input", "main:telegram:1")
	v.write(".editor label:nth-of-type(2) input", "telegram:1")
	v.write(".editor label:nth-of-type(3) input", "soon enough")
	v.do(chromedp.SendKeys(".editor textarea", "say something"))
	v.press("Save")
	v.waitText(".editor .note.error", "soon enough")
	v.forgive("status of 422")
	eval[bool](v.tab, "(document.querySelector('.editor label:nth-of-type(3) input').select(), true)")
	v.do(chromedp.SendKeys(".editor label:nth-of-type(3) input", "0 7 * * 1"))
	v.press("Save")
	v.waitText("main .note.done", "Schedule created.")
	v.waitText("main tbody", "0 7 * * 1")

	row := func(button string) {
		t.Helper()
		found := "[...document.querySelectorAll('main tbody tr')].filter(r => r.textContent.includes('say something'))" +
			".flatMap(r => [...r.querySelectorAll('button')]).find(b => b.textContent === '" + button + "' && !b.disabled)"
		v.wait("the button "+button, "!!"+found)
		eval[bool](v.tab, "("+found+".click(), true)")
	}
	row("Run now")
	v.waitText("main .note.done", "Running now")
	v.waitTold("fine", 1)
	row("Runs")
	v.waitText("main .block table", "started manually")
	v.waitText("main .block .badge.good", "done")
	row("Pause")
	v.waitText("main .note.done", "Schedule paused.")
	v.waitText("main tbody .badge.warn", "paused")
	row("Resume")
	v.waitText("main .note.done", "Schedule resumed.")
	row("Edit")
	v.do(chromedp.WaitVisible(".editor textarea"), chromedp.SendKeys(".editor textarea", " else"))
	v.press("Save")
	v.waitText("main .note.done", "Schedule saved.")
	v.waitText("main tbody", "say something else")
	if all := v.ask("/v1/schedules"); strings.Count(all, `"id"`) != 2 || !strings.Contains(all, `"when":"0 7 * * 1","text":"say something else"`) {
		t.Errorf("there are %s", all)
	}
}

// A browser that is signed out from another browser notices it by itself.
func TestABrowserIsSignedOut(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	other := visit{enter(newBrowser(t), v.o, 800, 600), v.o}
	other.see("overview", "Overview", "ready")
	v.see("browsers", "Browsers", "this browser")
	v.wait("both browsers", "document.querySelectorAll('main tbody tr').length === 2")
	eval[bool](v.tab, "([...document.querySelectorAll('main tbody tr')].find(r => !r.textContent.includes('this browser')).querySelector('button').click(), true)")
	v.press("Sign out browser")
	v.waitText("main .note.done", "You signed out")
	v.wait("one browser", "document.querySelectorAll('main tbody tr').length === 1")
	other.waitText(".signin .note.error", "You've been signed out.")
	other.forgive("status of 401")
}

// The usage of models is shown in tables, and a downloaded file contains the same.
func TestUsageIsSavedAsAFile(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	v.see("usage", "Usage", "scripted")
	v.wait("the plot", "document.querySelector('.plot svg[role=img]').getAttribute('aria-label').includes('$')")
	eval[bool](v.tab, "(URL.createObjectURL = b => { b.text().then(t => { window.saved = t }); return 'blob:none' }, HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download }, true)")
	eval[bool](v.tab, "([...document.querySelectorAll('main button')].filter(b => b.textContent === 'Download CSV')[1].click(), true)")
	v.wait("the file", "window.saved")
	saved := eval[string](v.tab, "window.saved")
	if want := "model,calls,input_tokens,cached_tokens,output_tokens,reasoning_tokens,dollars,calls_estimated,calls_unpriced\r\nscripted,4,400,0,40,0,0.000480,0,0\r\n"; saved != want {
		t.Errorf("the file has %q, want %q", saved, want)
	}
	if name := eval[string](v.tab, "window.savedAs"); !strings.HasPrefix(name, "parley-usage-by-model-20") {
		t.Errorf("the file is %s", name)
	}
}

// The audit has pages and filters, and a record links to the story of its message.
func TestTheAuditHasPagesAndFilters(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	// The record of a turn is written some time after the answer was sent.
	parleytest.WaitFor(t, "the records of both turns that have ended", func() bool {
		return strings.Count(v.ask("/v1/audit?kind=turn"), `"kind":"turn"`) == 2
	})
	for range 55 {
		v.ask("/v1/sessions/main:telegram:1/export")
	}
	v.see("audit", "Audit", "export")
	if eval[bool](v.tab, "[...document.querySelectorAll('main button')].some(b => b.textContent === 'Newer')") {
		t.Error("there is something newer than the newest")
	}
	v.press("Older")
	v.waitText("main tbody", "turn")
	v.press("Newer")
	v.wait("the newest", "![...document.querySelectorAll('main tbody td:nth-child(2)')].some(c => c.textContent === 'turn')")
	eval[bool](v.tab, "(() => { const s = document.querySelector('main select'); s.value = 'turn'; s.dispatchEvent(new Event('change', {bubbles: true})); return true })()")
	v.wait("turns alone", "document.querySelectorAll('main tbody tr').length > 0 && [...document.querySelectorAll('main tbody td:nth-child(2)')].every(c => c.textContent === 'turn')")
	v.write(".filters label:nth-of-type(2) input", "main:telegram:-9")
	v.wait("one turn", "document.querySelectorAll('main tbody tr').length === 1")
	v.waitText("main tbody", "1 model call")
	eval[bool](v.tab, "([...document.querySelectorAll('main tbody a')].find(a => a.textContent === 'Why?').click(), true)")
	v.waitText("main h1", "Why")
	v.waitText("main .story", "telegram:4242:-9:1")
	v.write(".filters input", "7") // the number of a record that does not exist
	v.waitText("main", "No messages found for telegram:4242:-9:17.")
}

// While the server is away, the overview keeps what it shows and says that the server is away.
func TestTheOverviewOutlivesTheServer(t *testing.T) {
	t.Parallel()
	o, p := newWorld(t, parleytest.EchoModel, "")
	v := visit{enter(newBrowser(t), o, 1280, 900), o}
	v.see("overview", "Overview", "ready")
	p.Kill()
	v.waitText("main .note.error", "Can't reach the server.")
	v.waitText("main .tiles", "running")
	o.Up()
	v.wait("the server again", "!document.querySelector('main .note.error')")
	v.forgive("ERR_CONNECTION")
	v.forgive("ERR_INCOMPLETE_CHUNKED_ENCODING") // the error of its stream
	v.forgive("Failed to fetch")
}
