package page

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// cards returns the texts of the cards of a kind, without durations and without folded content.
func (x *tab) cards(css string) string {
	x.t.Helper()
	return eval[string](x, fmt.Sprintf(`[...document.querySelectorAll(%q)].map(e => {
		const card = e.cloneNode(true);
		card.querySelectorAll('time, details:not([open]) > :not(summary)').forEach(t => t.remove());
		return card.className + ': ' + card.textContent;
	}).join('\n')`, css))
}

// showsTheSame opens the address of a tab in another tab, and checks that it shows the same cards. It closes the other
// tab afterwards, because a browser has few connections.
func (x *tab) showsTheSame(b *browser, css string, also ...func(*tab)) {
	x.t.Helper()
	y := b.open(eval[string](x, "location.href"), 390, 844)
	defer y.do(chromedp.Navigate("about:blank"))
	y.wait("the cards", fmt.Sprintf("document.querySelector(%q)", css))
	parleytest.WaitFor(x.t, "the same cards after a reload", func() bool { return y.cards(css) == x.cards(css) })
	y.fits("a card")
	for _, check := range also {
		check(y)
	}
}

// accessible checks a page with axe-core, in both color schemes. It checks nothing unless the tests run in .ci/node
// page, which provides axe-core.
func (x *tab) accessible(what string) {
	x.t.Helper()
	folder := os.Getenv("PARLEY_TEST_PAGE")
	if folder == "" {
		return
	}
	axe, err := os.ReadFile(filepath.Join(folder, "node_modules", "axe-core", "axe.min.js"))
	parleytest.Must(x.t, err)
	eval[bool](x, string(axe)+"; true")
	for _, scheme := range []string{"light", "dark"} {
		x.look(scheme)
		x.picture(what + "-" + scheme)
		for _, found := range (visit{tab: x}).axe() {
			x.t.Errorf("%s, %s: %s", what, scheme, found)
		}
	}
}

// delegating plays a model that gives a task to a sub-agent. As a sub-agent, it runs a command that waits for a file,
// starts the command again if it is interrupted, and then reports.
func delegating(r agenttest.Request) agenttest.Response {
	child, last := false, ""
	for _, m := range r.Messages() {
		child = child || m.Role == "user" && strings.Contains(m.Content, "You are a sub-agent of")
		if m.Role == "tool" {
			last = m.Content
		}
	}
	switch {
	case child && strings.Contains(last, "all found"):
		return agenttest.Reply("The **report** of <script>window.hit=1</script> the sub-agent.")
	case child:
		return agenttest.Calls(agenttest.Call("exec_shell", `{"command":"while [ ! -e go ]; do sleep 0.05; done; echo all found"}`))
	case r.Said() == "delegate it" && last == "":
		return agenttest.Calls(agenttest.Call("task", `{"prompt":"Find everything that there is."}`))
	case r.Said() == "delegate it":
		return agenttest.Reply("It reported.")
	}
	return agenttest.Reply("a title")
}

// A call that gives a task to a sub-agent shows what the sub-agent does: the tool that runs, also after the server was
// killed and restarted, and in the end the answer. A reloaded page shows the same, and a link leads to the sub-agent's
// session.
func TestSubAgentsAreShownAsTheyGo(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, delegating, "\n[agents.defaults]\ncapabilities = [\"file_read\", \"file_write\", \"shell\", \"session\"]\n")
	w.NeedsSandbox()
	o := parleytest.ListenHTTP(w)
	p := o.Up()
	b := newBrowser(t)
	x := enter(b, o, 1280, 900)
	const card = ".beside.task"
	eval[bool](x, "(window.setInterval = () => 0, true)") // the page does not poll
	x.write(field, "delegate it")
	x.waitText(card, "running exec_shell")
	x.waitText(card, "Sub-agent main")
	x.waitText(card, "Find everything that there is.")
	x.waitText(card, "tokens")
	x.showsTheSame(b, card)
	x.accessible("a sub-agent that works")

	p.Kill()
	x.waitText(".head", "reconnecting")
	o.Up()
	x.wait("the page to be back", "!document.querySelector('.head').textContent.includes('reconnecting')")
	x.waitText(card, "running exec_shell")
	x.showsTheSame(b, card)

	child := b.open(eval[string](x, "document.querySelector('.beside.task a').href"), 1280, 900)
	child.waitText(".call.running .call-name", "exec_shell")
	dirs, err := filepath.Glob(filepath.Join(w.Home, "workspaces", "main", "agent:*"))
	parleytest.Must(t, err)
	for _, dir := range dirs {
		found, err := filepath.Glob(filepath.Join(dir, "*"))
		parleytest.Must(t, err)
		for _, workspace := range append(found, dir) {
			_ = os.WriteFile(filepath.Join(workspace, "go"), nil, 0o666)
		}
	}
	child.waitText(".answer", "The report of")
	child.do(chromedp.Navigate("about:blank"))
	x.waitText(".answer", "It reported.")
	x.waitText(card+".ok", "done")
	answered := func(one *tab) {
		eval[bool](one, "(document.querySelectorAll('.beside details').forEach(d => d.open = true), true)")
		one.waitText(card+" .markdown strong", "report")
		if n := one.count(".beside .markdown", "the sub-agent."); n != 1 {
			t.Errorf("the answer stands %d times in %q", n, one.text(".beside"))
		}
		if eval[bool](one, "window.hit !== undefined") {
			t.Error("what a sub-agent answered has run as a script")
		}
		one.accessible("a sub-agent that is done")
	}
	x.showsTheSame(b, card, answered)
	answered(x)
	x.do(chromedp.Navigate("about:blank")) // the restarted server ends before the tab
	x.forgive("ERR_")
	x.forgive("502")
}

// The page shows a background command where it was started, with its output as it comes and with its end. People see
// the jobs of their own sessions but cannot stop them; a person with all rights can. If the server of a job was killed,
// the page says that the outcome is unknown.
func TestJobsAreShownWhereTheyWereStarted(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if strings.HasPrefix(r.Said(), "run ") && r.Rounds() == 0 {
			args, err := json.Marshal(map[string]any{"background": true, "command": "echo 'first <script>window.hit=1</script>'; while [ ! -e more ]; do sleep 0.05; done; echo second; sleep 600"})
			parleytest.Must(t, err)
			return agenttest.Calls(agenttest.Call("exec_shell", string(args)))
		}
		return agenttest.Reply("fine")
	}, parleytest.WithShell+fmt.Sprintf("[tokens.ann]\ntoken = %q\nmay = [\"agent\", \"own\"]\n[tokens.bob]\ntoken = %q\nmay = [\"agent\", \"own\"]\n", annToken, talkerToken))
	w.NeedsSandbox()
	o := parleytest.ListenHTTP(w)
	p := o.Up()
	b := newBrowser(t)
	x := enterWith(b, o, annToken)
	const card = ".beside.job"
	eval[bool](x, "(window.setInterval = () => 0, true)")
	x.write(field, "run one")
	x.waitText(card+" .beside-output", "first <script>")
	x.waitText(card, "running")
	if n := x.count(card, "Stop"); n != 0 {
		t.Error("who may not stop a job could")
	}
	session := strings.Split(eval[string](x, "location.hash"), "/")[2]
	workspace := filepath.Join(w.Home, "workspaces", "main")
	found, err := filepath.Glob(filepath.Join(workspace, "*", "jobs"))
	parleytest.Must(t, err)
	if len(found) != 1 {
		t.Fatalf("there are the jobs %q", found)
	}
	parleytest.Must(t, os.WriteFile(filepath.Join(filepath.Dir(found[0]), "more"), nil, 0o666))
	x.waitText(card+" .beside-output", "second")
	x.showsTheSame(b, card)
	x.accessible("a job that runs")

	for _, path := range []string{"/v1/jobs?session=" + session, "/v1/tasks?session=" + session} {
		if a := o.Ask("GET", path, "", parleytest.Bearer(talkerToken)...); a.Status != 403 {
			t.Errorf("another person reads %s: %d %s", path, a.Status, a.Body)
		}
	}

	owner := enter(newBrowser(t), o, 390, 844)
	eval[bool](owner, fmt.Sprintf("(location.hash = '#/chat/%s', true)", session))
	owner.waitText(card+" .beside-output", "second")
	owner.press("Stop…")
	owner.accessible("a job that is to be stopped")
	owner.press("Stop job")
	for _, one := range []*tab{owner, x} {
		one.waitText(card+".over", "stopped")
		one.wait("the button to go", "![...document.querySelectorAll('.beside button')].some(b => b.textContent === 'Stop…')")
	}
	printed := func(one *tab) {
		eval[bool](one, "(document.querySelectorAll('.beside details').forEach(d => d.open = true), true)")
		one.waitText(card+" .beside-output", "second")
		if eval[bool](one, "window.hit !== undefined") {
			t.Error("what a job printed has run as a script")
		}
	}
	x.showsTheSame(b, card, printed)
	printed(x)
	printed(owner)

	x.write(field, "run two")
	x.waitText(card+".running", "running")
	p.Kill()
	x.waitText(".head", "reconnecting")
	o.Up()
	x.waitText(card+".unknown", "outcome unknown")
	eval[bool](x, "(document.querySelectorAll('.beside details').forEach(d => d.open = false), true)")
	x.showsTheSame(b, card)
	for _, one := range []*tab{owner, x} {
		one.do(chromedp.Navigate("about:blank")) // the restarted server ends before the tabs
		one.forgive("status of 401")             // before the sign-in, the page's first request is refused
		one.forgive("ERR_")
		one.forgive("502")
	}
}
