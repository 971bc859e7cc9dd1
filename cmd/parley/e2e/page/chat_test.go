package page

import (
	"fmt"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

const field = ".composer textarea"

// newWorld returns a world with a running server that listens for HTTP.
func newWorld(t *testing.T, script agenttest.Script, more string) (*parleytest.HTTPWorld, *parleytest.Process) {
	t.Helper()
	o := parleytest.ListenHTTP(parleytest.New(t, script, more))
	return o, o.Up()
}

// held returns an answer whose first part comes at once, and whose rest comes once released is closed.
func held(first, rest string, released <-chan struct{}) agenttest.Response {
	piece := func(text string) string {
		return fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", text)
	}
	return agenttest.Response{Parts: []agenttest.Part{
		{Bytes: piece(first)},
		{Bytes: piece(rest) + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", Wait: released},
	}}
}

// The page shows a person's message at once and the answer as it grows. Both are there once, also after a reload. The
// list contains the session, and a card shows which tool ran.
func TestAnAnswerIsSeenOnceWhileItIsWritten(t *testing.T) {
	t.Parallel()
	released := make(chan struct{})
	o, _ := newWorld(t, func(r agenttest.Request) agenttest.Response {
		if r.Rounds() == 0 {
			return agenttest.Calls(agenttest.Call("write_file", `{"path":"plan.txt","content":"one two"}`))
		}
		return held("## The plan\n\nIt **stands** in `plan.txt`. ", "That is all.", released)
	}, "")
	x := enter(newBrowser(t), o, 1280, 800)
	x.picture("new")
	x.write(field, "write the plan")
	x.waitText(".said", "write the plan")
	x.waitText(".answer", "It stands in plan.txt.")
	x.waitText(".call-name", "write_file")
	x.wait("the call to be done", "document.querySelector('.call.ok')")
	x.picture("streaming")
	if x.count(".answer", "That is all.") != 0 {
		t.Error("the answer is whole before it was written")
	}
	close(released)
	x.waitText(".answer", "That is all.")
	x.wait("the end of the turn", "!document.querySelector('.standing .pulse')")
	once := func(when string) {
		t.Helper()
		for css, text := range map[string]string{".answer strong": "stands", ".said": "write the plan", ".scroll": "That is all.", ".call-name": "write_file"} {
			if n := x.count(css, text); n != 1 {
				t.Errorf("%s: %q stands %d times in %s: %q", when, text, n, css, x.text(".scroll"))
			}
		}
	}
	once("at first")
	x.waitText(".sessions .line-title", "write the plan")
	eval[bool](x, "(document.querySelector('.call').open = true)")
	x.waitText(".call-body", `"content": "one two"`)
	x.waitText(".call-body", "Successfully wrote")
	x.picture("done")
	x.reload()
	x.waitText(".answer", "That is all.")
	x.wait("the card", "document.querySelector('.call.ok')")
	once("after loading again")
	eval[bool](x, "(document.querySelector('.standing a').click(), true)")
	x.waitText("main h1", "Why")
	x.waitText("main .story", "It was answered.")
}

// A call that needs approval can be approved with its button in one of two tabs, and both tabs show the result. A
// message from one tab appears in the other tab once.
func TestAnAskIsApprovedAndTwoTabsAgree(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, func(r agenttest.Request) agenttest.Response {
		if r.Said() != "write it" {
			return agenttest.Reply("you said " + r.Said())
		}
		if r.Rounds() == 0 {
			return agenttest.Calls(agenttest.Call("write_file", `{"path":"a.txt","content":"approved"}`))
		}
		return agenttest.Reply("then: " + strings.Join(r.Results(), " "))
	}, "\n[tools]\nask = [\"write_file\"]\n")
	b := newBrowser(t)
	x := enter(b, o, 1280, 800)
	x.write(field, "write it")
	x.wait("the ask", "document.querySelector('.ask.open')")
	x.waitText(".sessions .badge", "waiting")
	x.picture("ask")
	y := enter(b, o, 390, 800)
	eval[bool](y, fmt.Sprintf("(location.hash = %q, true)", eval[string](x, "location.hash")))
	y.wait("the ask in the other tab", "document.querySelector('.ask.open')")
	y.picture("ask-small")
	y.press("Approve once")
	for _, tab := range []*tab{x, y} {
		tab.waitText(".answer", "Successfully wrote")
		tab.waitText(".ask.ended", "Approved by you")
		tab.wait("the card", "document.querySelector('.call.ok')")
	}
	y.write(field, "and now?")
	for _, tab := range []*tab{x, y} {
		tab.waitText(".answer", "you said and now?")
		tab.wait("the end", "!document.querySelector('.standing .pulse') && !document.querySelector('.pending')")
		if n := tab.count(".scroll", "you said and now?"); n != 1 {
			t.Errorf("the answer stands %d times: %q", n, tab.text(".scroll"))
		}
		if n := tab.count(".said", "and now?"); n != 1 {
			t.Errorf("what was said stands %d times", n)
		}
	}
	stood := eval[string](x, standing)
	x.reload()
	x.wait("the same after loading again", fmt.Sprintf("%s === %q", standing, stood))
	if n := x.count(".call + .ask.ended", "Approved by you"); n != 1 || x.count(".ask.ended .preview", "approved") != 1 {
		t.Errorf("the decision stands %d times after the call: %q", n, x.text(".scroll"))
	}
}

// If a command in the chat approves a request, the call runs, and the page stops showing the command as pending
// although the command has no reply. A command with a reply is shown with the reply.
func TestACommandWithoutAReplyIsDone(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, rulesModel, "\n[tools]\nask = [\"write_file\"]\n")
	v := visit{enter(newBrowser(t), o, 1280, 800), o}
	v.write(field, "one")
	v.write(field, "/approve "+v.openAsk())
	v.waitText(".answer", "Successfully wrote")
	v.waitText(".ask.ended", "Approved by you")
	v.wait("nothing to be pending", "!document.querySelector('.pending')")
	v.write(field, "/approve none")
	v.waitText(".spoken", "I don't know of any request none")
	v.wait("nothing to be pending again", "!document.querySelector('.pending')")
	if n := v.count(".said", "/approve none"); n != 1 || v.count(".said", "/approve") != 1 {
		t.Errorf("it stands %d times: %q", n, v.text(".scroll"))
	}
}

// rulesModel plays a model that writes what it is told to a file, or runs a long command.
func rulesModel(r agenttest.Request) agenttest.Response {
	switch {
	case r.Rounds() > 0:
		return agenttest.Reply("then: " + strings.Join(r.Results(), " "))
	case r.Said() == "long":
		return agenttest.Calls(agenttest.Call("exec_shell", `{"command":"echo one\n`+strings.Repeat(`echo more\n`, 60)+`echo the end"}`))
	}
	return agenttest.Calls(agenttest.Call("write_file", `{"path":"a.txt","content":"`+r.Said()+` hid\u202eden\n"}`))
}

// The chat has the same rules as the Approvals view: only owners can approve calls of their own turns, the page shows
// invisible characters and changed lines, and people must confirm an approval if they have not seen the whole call.
func TestTheChatKeepsTheRulesOfApprovals(t *testing.T) {
	t.Parallel()
	const token = "pair-token-of-the-test"
	o, _ := newWorld(t, rulesModel, "\n[tools]\nask = [\"write_file\", \"exec_shell\"]\n[agents.defaults]\ncapabilities = [\"file_read\", \"file_write\", \"shell\"]\n"+
		"[tokens.pair]\ntoken = \""+token+"\"\nmay = [\"agent\", \"approve\"]\n")
	x := newBrowser(t).open(o.URL, 1280, 800)
	x.write("#given", token)
	x.forgive("status of 401") // before the sign-in, the page's first request is refused
	x.write(field, "one")
	x.waitText(".ask.open .note", "someone else needs to approve")
	x.waitText(".ask.open", `one hid\u202eden`)
	if eval[bool](x, "[...document.querySelectorAll('.ask.open button')].some(b => /^(Approve|Deny)/.test(b.textContent)) || document.querySelector('.ask.open input') !== null") {
		t.Errorf("a token may decide about its own turn: %q", x.text(".ask.open"))
	}
	y := enter(newBrowser(t), o, 1280, 800)
	eval[bool](y, fmt.Sprintf("(location.hash = %q, true)", eval[string](x, "location.hash")))
	y.press("Approve once")
	y.waitText(".ask.ended", "Approved by you")
	x.waitText(".ask.ended", "Approved by web:owner")
	x.waitText(".answer", "Successfully wrote")

	x.write(field, "two")
	y.waitText(".ask.open .preview-line.minus", `one hid\u202eden`)
	y.waitText(".ask.open .preview-line.plus", `two hid\u202eden`)
	y.picture("ask-change")
	y.write(".ask.open input", "rather not")
	y.press("Deny")
	x.waitText(".ask.ended", "Denied by web:owner")
	x.waitText(".answer", "rather not")

	x.write(field, "long")
	y.waitText(".ask.open", "echo one")
	if strings.Contains(y.text(".ask.open"), "echo the end") {
		t.Error("all of it is shown at once")
	}
	y.press("Approve once")
	y.waitText("dialog", "You haven't seen all of it")
	y.press("Cancel")
	y.wait("the dialog to go", "!document.querySelector('dialog')")
	y.press("Show all 62 lines")
	y.waitText(".ask.open", "echo the end")
	y.picture("ask-long")
	y.press("Approve once")
	x.waitText(".answer", "more\\nthe end")
}

// If the server is killed in the middle of an answer and restarted, the page reconnects by itself and shows the whole
// answer once.
func TestAKilledServerLeavesTheTextWhole(t *testing.T) {
	t.Parallel()
	released := make(chan struct{})
	defer close(released)
	again := make(chan struct{})
	close(again)
	asked := 0
	o, p := newWorld(t, func(r agenttest.Request) agenttest.Response {
		if r.Said() != "tell me" {
			return agenttest.Reply("a title")
		}
		if asked++; asked == 1 {
			return held("The beginning. ", "The end.", released)
		}
		return held("The beginning. ", "The end.", again)
	}, "")
	x := enter(newBrowser(t), o, 1280, 800)
	x.write(field, "tell me")
	x.waitText(".answer", "The beginning.")
	p.Kill()
	x.waitText(".head", "reconnecting")
	x.write(field, "are you there?")
	o.Up()
	x.waitText(".answer", "The end.")
	x.waitText(".answer", "a title")
	x.wait("the end", "!document.querySelector('.standing .pulse') && !document.querySelector('.pending')")
	for _, text := range []string{"The beginning.", "The end.", "are you there?", "tell me"} {
		if n := x.count(".scroll", text); n != 1 {
			t.Errorf("%q stands %d times in %q", text, n, x.text(".scroll"))
		}
	}
	x.forgive("ERR_")
	x.forgive("502")
}

// A browser opens at most six connections to a server. Four visible tabs that follow one conversation leave enough
// connections for requests.
func TestFourTabsLeaveRoomForRequests(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, parleytest.EchoModel, "")
	b := newBrowser(t)
	tabs := []*tab{enter(b, o, 1280, 800)}
	tabs[0].write(field, "first")
	tabs[0].waitText(".answer", "you said first")
	for len(tabs) < 4 {
		x := b.open(eval[string](tabs[0], "location.href"), 1280, 800)
		x.waitText(".answer", "you said first")
		tabs = append(tabs, x)
	}
	for n, from := range tabs {
		from.write(field, fmt.Sprintf("from tab %d.", n))
		for _, x := range tabs {
			x.waitText(".answer", fmt.Sprintf("you said from tab %d.", n))
			x.waitText(".said", fmt.Sprintf("from tab %d.", n))
		}
	}
	other := enter(newBrowser(t), o, 1280, 800)
	other.write(field, "elsewhere")
	for _, x := range tabs {
		x.waitText(".sessions .line-title", "elsewhere")
	}
}
