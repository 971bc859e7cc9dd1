package page

import (
	"fmt"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

// enterWith opens the page of a world and signs in with a token.
func enterWith(b *browser, o *parleytest.HTTPWorld, token string) *tab {
	x := b.open(o.URL, 1280, 800)
	x.write("#given", token)
	x.wait("the page", "document.querySelector('.views')")
	x.forgive("status of 401") // before the sign-in, the page's first request is refused
	return x
}

// An owner can answer people on a platform as the operator. Everybody who watches sees the answer once, marked as the
// operator's, also after a reload. No turn begins. People who may only read have no field for an answer. If an answer
// cannot be delivered, the page says why, and the owner can send it again.
func TestAnOwnerAnswersAsTheOperator(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, parleytest.EchoModel, fmt.Sprintf("[tokens.reader]\ntoken = %q\nmay = [\"read\"]\n", readerToken))
	o.Telegram.Say(2, 2, "is it broken?")
	o.WaitSaid(2, 1)
	x, y := enter(newBrowser(t), o, 1280, 800), enterWith(newBrowser(t), o, readerToken)
	for _, one := range []*tab{x, y} {
		eval[bool](one, "(location.hash = '#/chat/main%3Atelegram%3A2', true)")
		one.waitText(".answer", "you said is it broken?")
	}
	const operators = ".composer.operator textarea"
	x.waitText(".composer.operator", "People on telegram see your message")
	y.waitText(".reading", "on telegram")
	if eval[bool](x, "document.querySelector('.reading') !== null") || eval[bool](y, "document.querySelector('.composer') !== null") {
		t.Error("the wrong ones may answer")
	}
	x.write(operators, "We **repair** it. <b>")
	once := func(when, shown string) {
		t.Helper()
		for _, one := range []*tab{x, y} {
			one.waitText(".said.operator", shown)
			one.wait("nothing to be pending", "!document.querySelector('.pending')")
			if n := one.count(".scroll", shown); n != 1 {
				t.Errorf("%s, it stands %d times: %q", when, n, one.text(".scroll"))
			}
			if n := eval[int](one, "document.querySelectorAll('.turn[role=group]').length"); n != 1 {
				t.Errorf("%s, there are %d turns", when, n)
			}
		}
	}
	once("at first", "We repair it. <b>")
	if said := parleytest.Texts(o.Telegram.Sent(2)); len(said) != 2 || said[1] != "Operator:\n\nWe repair it. <b>" {
		t.Errorf("Telegram has %q", said)
	}
	x.picture("operator")
	for _, one := range []*tab{x, y} {
		one.reload()
		one.waitText(".answer", "you said is it broken?")
	}
	once("after loading again", "We repair it. <b>")
	o.Telegram.Fail(telegramtest.Fault{Method: "sendMessage", Chat: 2, Status: 403, Description: "Forbidden: bot was blocked by the user", Times: 1})
	x.write(operators, "It is done.")
	x.waitText(".pending.refused", "the platform refused it")
	x.press("Send again")
	once("after a refusal", "It is done.")
	o.Telegram.Say(2, 2, "thanks")
	x.waitText(".answer", "you said thanks")
	if order := eval[[]string](x, "[...document.querySelectorAll('.said.operator, .answer')].map(e => e.className)"); fmt.Sprint(order) != "[answer said operator said operator answer]" {
		t.Errorf("they stand in this order: %v", order)
	}
}

// A person who may only read sees the request that a turn waits for, even if they open the page later, and cannot
// decide it.
func TestAReaderSeesOpenRequests(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, func(r agenttest.Request) agenttest.Response {
		if r.Rounds() == 0 {
			return agenttest.Calls(agenttest.Call("write_file", `{"path":"a.txt","content":"approved"}`))
		}
		return agenttest.Reply("then: " + strings.Join(r.Results(), " "))
	}, fmt.Sprintf("\n[tools]\nask = [\"write_file\"]\n[tokens.reader]\ntoken = %q\nmay = [\"read\"]\n", readerToken))
	owner := enter(newBrowser(t), o, 1280, 800)
	owner.write(field, "write it")
	owner.wait("the request", "document.querySelector('.ask.open')")
	reader := enterWith(newBrowser(t), o, readerToken)
	eval[bool](reader, fmt.Sprintf("(location.hash = %q, true)", eval[string](owner, "location.hash")))
	reader.waitText(".ask.open", "Your token needs the approve scope to decide this.")
	reader.waitText(".ask.open", "a.txt")
	owner.press("Approve once")
	reader.waitText(".answer", "Successfully wrote")
	reader.waitText(".ask.ended", "Approved by web:owner")
}

// A message on behalf of a person in another conversation, and a message that the agent sends to its own conversation
// with the message tool, are shown once: live, after a reload, and when they are loaded from the log.
func TestWhatIsSaidBesidesAnswersStaysAfterLoadingAgain(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, func(r agenttest.Request) agenttest.Response {
		if words, ok := strings.CutPrefix(r.Said(), "tell 3: "); ok && r.Rounds() == 0 {
			return agenttest.Calls(agenttest.Call("message", fmt.Sprintf(`{"channel":"telegram","chat_id":"3","content":%q}`, words)))
		}
		if r.Said() == "tell me" && r.Rounds() == 0 {
			return agenttest.Calls(agenttest.Call("message", `{"channel":"web:owner/side","content":"It is **half** done."}`))
		}
		return agenttest.Reply("you said " + r.Said())
	}, "\n[agents.main]\nmay_message = [\"telegram:3\"]\n")
	o.Telegram.Say(3, 3, "hello")
	o.WaitSaid(3, 1)
	x, y := enter(newBrowser(t), o, 1280, 800), enter(newBrowser(t), o, 1280, 800)
	eval[bool](x, "(location.hash = '#/chat/main%3Atelegram%3A3', true)")
	x.waitText(".answer", "you said hello")
	o.Telegram.Say(2, 2, "tell 3: lunch at **noon** <b>")
	eval[bool](y, "(location.hash = '#/chat/main%3Aweb%3Aowner%3Aside', true)")
	y.write(field, "tell me")
	once := func(when string) {
		t.Helper()
		x.waitText(".said.told", "lunch at noon <b>")
		y.waitText(".answer", "you said tell me")
		y.waitText(".spoken", "It is half done.")
		// Another response with the conversation may still be on its way.
		parleytest.WaitFor(t, when+", each message to stand there once", func() bool {
			return x.count(".scroll", "lunch at noon <b>") == 1 && y.count(".spoken", "It is half done.") == 1
		})
		if by := x.text(".said.told .said-name"); !strings.HasPrefix(by, "On behalf of ") || !strings.Contains(by, "telegram:2") {
			t.Errorf("%s, it is said by %q", when, by)
		}
	}
	once("at first")
	x.picture("told")
	for _, one := range []*tab{x, y} {
		one.reload()
	}
	once("after loading again")
	eval[bool](x, "(location.hash = '#/chat/main%3Atelegram%3A3/1', true)")
	eval[bool](y, "(location.hash = '#/chat/main%3Aweb%3Aowner%3Aside/1', true)")
	once("in the log")
}
