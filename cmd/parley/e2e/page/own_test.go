package page

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A second person signs in with a token of few rights. She talks to the agent in her own sessions, and sees no others
// until she links her account on a platform. Until the link ends, she can also read her private chats there, in the
// list, in the views and live. She never sees the sessions of other people.
func TestASecondPersonSeesNoMore(t *testing.T) {
	t.Parallel()
	o := newBusyWorld(t)
	b := newBrowser(t)
	v := visit{b.open(o.URL, 1280, 900), o}
	v.write("#given", annToken)
	v.write(field, "hello from ann")
	v.waitText(".answer", "fine")
	v.waitText(".sessions .line-title", "hello from ann")
	alone := func(when string) {
		t.Helper()
		v.wait("her own session alone, "+when, "document.querySelectorAll('.sessions li').length === 1")
		for place, empty := range map[string]string{"schedules": "Nothing is scheduled.", "approvals": "No open requests."} {
			v.show(place)
			v.waitText("main .empty", empty)
		}
		for _, refused := range []string{"overview", "usage", "dead-letters", "people", "audit", "why/telegram:1"} {
			v.show(refused)
			v.wait("the chat in place of "+refused, "document.querySelector('.chat')")
		}
		v.show("chat/main%3Atelegram%3A1")
		v.waitText(".conversation .note.error", "may only read")
		v.show("chat")
		v.forgive("status of 403")
	}
	alone("before the link")

	said := len(o.WaitSaid(1, 2))
	o.Telegram.Say(1, 1, "/link")
	texts := o.WaitSaid(1, said+1)
	code := regexp.MustCompile(`link ([a-z0-9]{10})`).FindStringSubmatch(texts[said])
	if code == nil {
		t.Fatalf("there is no code in %q", texts[said])
	}
	v.press("New chat")
	v.write(field, "/link "+code[1])
	v.waitText(".sessions .line-title", "plan it")
	if told := o.WaitSaid(1, said+2)[said+1]; !strings.Contains(told, "web:ann") || !strings.Contains(told, "web page") {
		t.Errorf("the linked account was told %q", told)
	}
	if list := v.text(".sessions"); strings.Contains(list, "telegram:-9") || slices.Contains(strings.Split(list, "\n"), "-9") {
		t.Errorf("she sees the group: %q", list)
	}
	v.see("schedules", "Schedules", "water the plants")
	if n := eval[int](v.tab, "[...document.querySelectorAll('main button')].filter(b => b.textContent !== 'Runs').length"); n != 0 {
		t.Errorf("she is offered %d buttons that the server refuses", n)
	}
	v.press("Runs")
	v.waitText("main", "No runs yet.")
	v.see("approvals", "Approvals", "notes/plan.md")
	v.waitText("main", "approve scope")
	v.show(chatWithRequest.place)
	v.waitText(".said", "plan it")
	v.waitText(".reading", "read-only")
	o.Telegram.Say(1, 1, "and live")
	v.waitText(".conversation", "and live")
	o.Telegram.Say(-9, 1, "@parleybot hello from the group")

	o.Telegram.Say(1, 1, "/link off")
	v.wait("the end of the sight", "[...document.querySelectorAll('.conversation .note.error')].some(e => e.textContent.includes('may only read'))")
	v.wait("the linked session to go", "![...document.querySelectorAll('.sessions .line-title')].some(e => e.textContent.includes('plan it'))")
	if list := v.text(".sessions"); !strings.Contains(list, "hello from ann") {
		t.Errorf("of her own she sees %q", list)
	}
	v.forgive("status of 401") // before the sign-in, the page's first request is refused
	v.forgive("status of 403")
}
