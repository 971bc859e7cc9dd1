package page

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// A person who may read sees the jobs and their output. A person with all rights can stop a job, and sees at once that
// it has ended.
func TestJobsAreSeenAndStopped(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if r.Rounds() > 0 {
			return agenttest.Reply("it runs")
		}
		return agenttest.Calls(agenttest.Call("exec_shell", `{"command":"printf 'hid\\342\\200\\256den '; echo '<script>window.hit=1</script>'; sleep 600","background":true}`))
	}, parleytest.WithShell+fmt.Sprintf("[tokens.reader]\ntoken = %q\nmay = [\"read\"]\n", readerToken))
	w.NeedsSandbox()
	o := parleytest.ListenHTTP(w)
	o.Up()
	b := newBrowser(t)
	v := visit{enter(b, o, 1280, 900), o}
	eval[bool](v.tab, "(window.ticks = window.setInterval, window.setInterval = () => 0, true)") // the list is not polled
	v.see("jobs", "Jobs", "No jobs.")
	o.Telegram.Say(2, 2, "run it")
	o.WaitSaid(2, 1)
	v.waitText("main tbody .badge", "running")
	eval[bool](v.tab, "(window.setInterval = window.ticks, true)")
	eval[bool](v.tab, "(b => { b.focus(); b.click(); return true })([...document.querySelectorAll('main button')].find(b => b.textContent === 'Output'))")
	v.waitText("main .preview", `hid\u202eden <script>window.hit=1</script>`)
	v.wait("the focus on the output", "document.activeElement.matches('section') && document.activeElement.textContent.startsWith('Output')")
	v.picture("jobs")
	eval[bool](v.tab, "(b => { b.focus(); b.click(); return true })([...document.querySelectorAll('main button')].find(b => b.textContent === 'Close'))")
	v.wait("the focus to come back", "document.activeElement.textContent === 'Output' && !document.querySelector('main .preview')")
	v.press("Stop…")
	v.press("Stop job")
	v.waitText("main tbody .badge", "stopped")
	v.wait("the button to go", "![...document.querySelectorAll('main button')].some(b => b.textContent === 'Stop…')")
	if eval[bool](v.tab, "window.hit !== undefined") {
		t.Error("what a job printed has run as a script")
	}
	o.Telegram.Say(2, 2, "run it")
	o.WaitSaid(2, 2)
	v.waitText("main tbody .badge", "running")
	v.press("Sign out")
	v.write("#given", readerToken)
	v.wait("the page", "document.querySelector('.views')")
	v.see("jobs", "Jobs", "running")
	v.press("Output")
	v.waitText("main .preview", "window.hit=1")
	if v.count("main button", "Stop") != 0 {
		t.Error("who may only read could stop a job")
	}
	if len(v.complaints()) > 0 {
		v.forgive("status of 401") // before the sign-in, the page's first request is refused
	}
}

// The list of jobs describes a job's state and end, and what stopping it does, in the same words as the chat.
func TestJobsReadAsInTheChat(t *testing.T) {
	t.Parallel()
	var jobs []string
	for i, end := range []string{`"running"`, `"exited","exit_code":0`, `"exited","exit_code":2`, `"stopped"`, `"killed"`, `"failed"`, `"lost"`} {
		ended := ""
		if i > 0 {
			ended = `,"ended":"2026-01-02T03:05:05Z"`
		}
		jobs = append(jobs, fmt.Sprintf(`{"id":"j%d","session":"main:web:owner:x","person":"web:owner","agent":"main","turn":"t1","call":"k","tool":"exec_shell","command":"make","stopping":false,"started":"2026-01-02T03:04:05Z","deadline":"2026-01-02T04:04:05Z","printed":0,"state":%s%s}`, i, end, ended))
	}
	s := newStage(t)
	s.jobs = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"jobs":[` + strings.Join(jobs, ",") + `],"more":false}`))
	}
	s.mux.HandleFunc("GET /v1/jobs/j0", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(jobs[0])) })
	x := s.open(newBrowser(t))
	<-s.lastID
	s.tell(0, "snapshot", `{"turns":[{"turn":"t1","causes":["m1"],"state":"running"}],"blocks":[]}`)
	x.waitText(".beside.job", "outcome unknown")
	inChat := x.text(".beside-state")
	x.press("Stop…")
	x.waitText("dialog", "This ends make, which may leave its work half done. Parley tells its conversation.")
	eval[bool](x, "(location.hash = '#/jobs', true)")
	x.waitText("main tbody .badge", "outcome unknown")
	if list := x.text("main tbody .badge"); list != inChat {
		t.Errorf("the list says %q, and the chat %q", list, inChat)
	}
	x.press("Stop…")
	x.waitText("dialog", "This ends make of main:web:owner:x, which may leave its work half done. Parley tells its conversation.")
}
