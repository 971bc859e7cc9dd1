package page

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// hostile is a text that would run scripts if the page took any of it for HTML.
const hostile = `<img src=x onerror="window.hit=1"> <script>window.hit=2</script> <svg onload="window.hit=3"></svg> ` +
	`[press](javascript:window.hit=4) [data](data:text/html,<script>window.hit=5</script>) <javascript:window.hit=6> ` +
	`<a href="javascript:window.hit=7">here</a> ![x](javascript:window.hit=8) [ok](https://example.com/a_(b)) ` + "`<b>code</b>`"

// Texts of models, tools and people cannot run scripts in any view. The page shows them as they were written.
func TestHostileTextsDoNothing(t *testing.T) {
	t.Parallel()
	args, err := json.Marshal(map[string]string{"path": "a.txt", "content": hostile})
	if err != nil {
		t.Fatal(err)
	}
	o, _ := newWorld(t, func(r agenttest.Request) agenttest.Response {
		switch r.Rounds() {
		case 0:
			return agenttest.Calls(agenttest.Call("write_file", string(args)))
		case 1:
			return agenttest.Calls(agenttest.Call("read_file", `{"path":"a.txt"}`))
		}
		return agenttest.Reply(hostile + "\n\n# " + hostile + "\n\n- " + hostile + "\n\n| a | b |\n|---|---|\n| " + hostile + " | x |\n\n```html\n" + hostile + "\n```\n")
	}, "\n[tools]\nask = [\"read_file\"]\n")
	x := enter(newBrowser(t), o, 1280, 800)
	x.write(field, hostile)
	x.wait("the ask", "document.querySelector('.ask.open')")
	x.press("Approve once")
	x.waitText(".answer", "window.hit=1")
	x.waitText(".sessions .line-title", "<img src=x")
	x.wait("the end of the turn", "!document.querySelector('.standing .pulse')")
	eval[bool](x, "(document.querySelectorAll('details').forEach(d => d.open = true), true)")
	x.waitText(".call-body", "window.hit=3")
	why := eval[[]string](x, "[...document.querySelectorAll('.standing a')].map(a => a.href)") // the page's own links
	if len(why) != 1 || !strings.HasPrefix(why[0], o.URL+"/#/why/m_") {
		t.Errorf("the turn leads to %q", why)
	}
	links := eval[[]string](x, "[...document.querySelectorAll('.scroll a:not(.standing a)')].map(a => a.href)")
	for _, to := range links {
		if to != "https://example.com/a_(b)" {
			t.Errorf("a link leads to %s", to)
		}
	}
	if len(links) == 0 {
		t.Error("the good link is none")
	}
	eval[bool](x, "(document.querySelectorAll('.scroll a').forEach(a => { a.removeAttribute('target'); a.addEventListener('click', e => e.preventDefault()); a.click() }), true)")
	if n := eval[int](x, "document.querySelectorAll('#page script, .scroll svg, .sessions svg, #page iframe, .scroll img, .sessions img, #page [style], #page [onerror]').length"); n != 0 {
		t.Errorf("%d elements were made of texts", n)
	}
	if eval[bool](x, "window.hit !== undefined") {
		t.Errorf("a text has run as a script: %d", eval[int](x, "window.hit"))
	}
	x.picture("hostile")
}

// Conversations from other platforms appear in the list by themselves, and people with the right can follow them live.
// Only owners may answer there. The page shows the names of people as they were written.
func TestOtherPeoplesSessionsAreRead(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, parleytest.EchoModel, fmt.Sprintf("[tokens.reader]\ntoken = %q\nmay = [\"read\"]\n", readerToken))
	x := enterWith(newBrowser(t), o, readerToken)
	say := func(text string) {
		o.Telegram.Post(2, 2, map[string]any{"text": text, "from": map[string]any{"id": 2, "is_bot": false, "first_name": hostileName}})
	}
	say("hello from Telegram")
	x.waitText(".sessions .line-title", "hello from Telegram")
	eval[bool](x, "(document.querySelector('.sessions li a').click(), true)")
	x.waitText(".answer", "you said hello from Telegram")
	x.waitText(".said-name", hostileName)
	say("and again")
	x.waitText(".answer", "you said and again")
	if x.count(".reading", "on telegram") != 1 || eval[bool](x, "document.querySelector('.composer') !== null") {
		t.Errorf("one could answer here: %q", x.text(".conversation"))
	}
	if eval[bool](x, "window.hit !== undefined || document.querySelectorAll('#page script, .scroll img').length > 0") {
		t.Error("a name has become more than a text")
	}
	x.picture("reading")
}

// A person can load the turns that a snapshot leaves out from the log. Each turn appears once and in order, with its
// commands and decisions.
func TestEarlierTurnsAreShown(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, func(r agenttest.Request) agenttest.Response {
		if r.Said() == "write it" && r.Rounds() == 0 {
			return agenttest.Calls(agenttest.Call("write_file", `{"path":"a.txt","content":"approved"}`))
		}
		return agenttest.Reply("you said " + r.Said())
	}, "\n[tools]\nask = [\"write_file\"]\n")
	say := func(text string) {
		t.Helper()
		if a := o.Ask("POST", "/v1/messages", fmt.Sprintf(`{"to": "agent", "session": "long", "text": %q}`, text), o.OwnerHeader()...); a.Status != 202 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	say("write it")
	var open struct{ Asks []struct{ ID string } }
	parleytest.WaitFor(t, "the request", func() bool {
		return json.Unmarshal([]byte(o.Ask("GET", "/v1/asks", "", o.OwnerHeader()...).Body), &open) == nil && len(open.Asks) == 1
	})
	if a := o.Ask("POST", "/v1/asks/"+open.Asks[0].ID, `{"answer": "deny"}`, o.OwnerHeader()...); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	parleytest.WaitFor(t, "the decision to be used", func() bool { return o.Model.Asked() == 2 })
	say("/context")
	const turns = 45
	for n := range turns {
		say(fmt.Sprintf("message %d.", n))
		parleytest.WaitFor(t, "the message to be answered", func() bool { return o.Model.Asked() > n+2 })
	}
	x := enter(newBrowser(t), o, 1280, 800)
	eval[bool](x, "(location.hash = '#/chat/main%3Aweb%3Aowner%3Along', true)")
	x.waitText(".answer", fmt.Sprintf("you said message %d.", turns-1))
	if x.count(".answer", "you said message 0.") != 0 {
		t.Error("the snapshot has all turns, so this tests nothing")
	}
	x.wait("all turns of the snapshot", "document.querySelectorAll('.answer').length === 32")
	for range 5 {
		if x.count(".answer", "you said write it") > 0 {
			break
		}
		before := eval[int](x, "document.querySelectorAll('.answer').length")
		x.press("Show earlier messages")
		x.wait("more turns", fmt.Sprintf("document.querySelectorAll('.answer').length > %d", before))
	}
	want := []string{"write it", "write_file Denied by you", "you said write it", "/context", "(context)"}
	for n := range turns {
		want = append(want, fmt.Sprintf("message %d.", n), fmt.Sprintf("you said message %d.", n))
	}
	got := strings.Split(eval[string](x, "[...document.querySelectorAll('.said-text, .answer, .spoken, .ask summary')].map(e => e.classList.contains('spoken') ? '(context)' : e.textContent).join('\\n')"), "\n")
	if !slices.Equal(got, want) {
		t.Errorf("there stands %q", got)
	}
	x.wait("the button to go", "!document.querySelector('.earlier')")
	eval[bool](x, "(location.hash = '#/chat/main%3Aweb%3Aowner%3Along/4', true)")
	x.waitText(".past .ask.ended", "Denied by you")
	x.waitText(".past .said", "/context")
}
