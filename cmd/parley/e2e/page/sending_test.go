package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

const shift = 8 // the bit of the Shift key in the modifiers of a key event

// losing starts a proxy that passes messages on and loses the answers to the first ones, like a network that breaks at
// the wrong moment. It returns the proxy's address and the number of lost answers.
func losing(o *parleytest.HTTPWorld, first int32) (address string, lost *atomic.Int32) {
	to, err := url.Parse(o.URL)
	parleytest.Must(o.T, err)
	lost = new(atomic.Int32)
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
	}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/v1/messages" && lost.Load() < first {
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			lost.Add(1)
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	o.T.Cleanup(srv.CloseClientConnections)
	return srv.URL, lost
}

// If the server's answer to a message is lost, the page sends the message again with the same key, even after a reload,
// and the message is said once.
func TestAMessageThatIsSentAgainIsSaidOnce(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, parleytest.EchoModel, "")
	address, lost := losing(o, 3)
	_, code, _ := strings.Cut(link(o), "#")
	x := newBrowser(t).open(address+"/#"+code, 1280, 800)
	x.write(field, "just once")
	parleytest.WaitFor(t, "the first answer to be lost", func() bool { return lost.Load() > 0 })
	x.reload()
	x.waitText(".answer", "you said just once")
	x.wait("the end", "!document.querySelector('.standing .pulse') && !document.querySelector('.pending')")
	if n := x.count(".answer", "just once"); n != 1 || lost.Load() < 2 {
		t.Errorf("it was answered %d times after %d lost answers: %q", n, lost.Load(), x.text(".scroll"))
	}
	if n := len(o.Model.Requests()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	if left := eval[int](x, "sessionStorage.length"); left != 0 {
		t.Errorf("%d things are kept", left)
	}
	x.forgive("ERR_EMPTY_RESPONSE")
	x.forgive("ERR_NETWORK")
}

// Shift+Enter starts a new line. A draft survives a reload and stays in its own session, and Enter sends it.
func TestDraftsWaitInTheirSessions(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, parleytest.EchoModel, "")
	x := enter(newBrowser(t), o, 1280, 800)
	x.write(field, "first")
	x.waitText(".answer", "you said first")
	x.do(chromedp.SendKeys(field, "one"))
	x.key("Enter", "\r", 13, shift)
	x.do(chromedp.SendKeys(field, "two"))
	value := "document.querySelector('" + field + "')?.value"
	if got := eval[string](x, value); got != "one\ntwo" {
		t.Errorf("the field has %q", got)
	}
	x.press("New chat")
	x.wait("the other session", "!document.querySelector('.head')")
	if got := eval[string](x, value); got != "" {
		t.Errorf("another session's field has %q", got)
	}
	eval[bool](x, "(document.querySelector('.sessions li a').click(), true)")
	x.wait("the draft", value+" === 'one\\ntwo'")
	x.reload()
	x.wait("the draft again", "document.querySelector('"+field+"') && "+value+" === 'one\\ntwo'")
	x.write(field, "")
	x.waitText(".answer", "you said one")
	x.wait("an empty field", value+" === ''")
}

// Files that are picked, pasted or dropped are sent with the message, and can be removed before. The page refuses a
// file that is too large at once.
func TestFilesGoWithAMessage(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, func(r agenttest.Request) agenttest.Response {
		messages := r.Messages()
		return agenttest.Reply("seen: " + messages[len(messages)-1].Content)
	}, "")
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "picked.txt"), filepath.Join(dir, "unwanted.txt")}
	for _, path := range paths {
		parleytest.Must(t, os.WriteFile(path, []byte("some words"), 0o600))
	}
	x := enter(newBrowser(t), o, 1280, 800)
	x.do(chromedp.SetUploadFiles(".composer input[type=file]", paths, chromedp.NodeReady))
	x.waitText(".file", "unwanted.txt")
	eval[bool](x, `(document.querySelector('[aria-label="Remove unwanted.txt"]').click(), true)`)
	for _, event := range []string{"new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true})", "new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true})"} {
		name := map[bool]string{true: "pasted.txt", false: "dropped.txt"}[strings.Contains(event, "paste")]
		eval[bool](x, "(() => { const data = new DataTransfer(); data.items.add(new File(['more'], '"+name+"', {type: 'text/plain'})); document.querySelector('"+field+"').dispatchEvent("+event+"); return true })()")
		x.waitText(".file", name)
	}
	eval[bool](x, "(() => { const data = new DataTransfer(); data.items.add(new File([new Uint8Array(11 << 20)], 'large.bin')); document.querySelector('"+field+"').dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true})); return true })()")
	x.waitText(".note.error", "up to 10 MB")
	x.picture("files")
	x.write(field, "look")
	for _, name := range []string{"picked.txt", "pasted.txt", "dropped.txt"} {
		x.waitText(".answer", name)
	}
	if all := x.text(".answer"); strings.Contains(all, "unwanted") || strings.Contains(all, "large.bin") {
		t.Errorf("the agent has seen %q", all)
	}
}

// The button stops a turn. The page shows the replies to commands in their place, whether the person pressed or typed
// the command, and shows the same after a reload.
func TestStopAndCommands(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	defer close(never)
	o, _ := newWorld(t, func(r agenttest.Request) agenttest.Response {
		if r.Said() == "slowly" {
			return held("I begin. ", "Never.", never)
		}
		return agenttest.Reply("you said " + r.Said())
	}, "")
	x := enter(newBrowser(t), o, 1280, 800)
	x.write(field, "slowly")
	x.waitText(".answer", "I begin.")
	x.press("Stop")
	x.waitText(".standing", "Stopped")
	x.wait("the button to go", "![...document.querySelectorAll('.composer button')].some(b => b.textContent === 'Stop')")
	x.write(field, "/status")
	x.waitText(".said", "/status")
	x.waitText(".spoken", "main")
	eval[bool](x, "(document.querySelector('.menu').open = true)")
	x.press("Start over…")
	x.press("Start over")
	x.waitText(".said", "/new")
	x.waitText(".spoken", "started a new conversation")
	x.write(field, "hello")
	x.waitText(".answer", "you said hello")
	x.wait("nothing pending", "!document.querySelector('.pending')")
	x.picture("commands")
	stood := eval[string](x, standing)
	x.reload()
	x.wait("the same conversation after loading again", fmt.Sprintf("%s === %q", standing, stood))
	for _, text := range []string{"/status", "/new"} {
		if !strings.Contains(stood, text) {
			t.Errorf("%q is not in %q", text, stood)
		}
	}
}

// standing is a JavaScript expression for what people and the agent have said, in order.
const standing = "[...document.querySelectorAll('.said-text, .answer, .spoken, .ask summary')].map(e => e.textContent).join(' | ')"

// With the Tab key, a person reaches every button, link and field, and sees which one has the focus.
func TestThePageIsUsedByKeys(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, parleytest.EchoModel, "")
	x := enter(newBrowser(t), o, 1280, 800)
	x.write(field, "hello")
	x.waitText(".answer", "you said hello")
	eval[bool](x, "(document.activeElement.blur(), true)")
	seen := map[string]bool{}
	const begins = "Skip to content"
	for n, rounds := 0, 0; rounds < 2; n++ { // from the beginning until the focus is there again
		if n > 100 {
			t.Fatalf("Tab does not come to %q again: %v", begins, seen)
		}
		x.key("Tab", "", 9, 0)
		at := eval[string](x, "(e => (e.getAttribute('aria-label') || e.textContent || e.tagName).trim())(document.activeElement)")
		if seen[at] = true; at == begins {
			rounds++
		}
		if at != "" && !eval[bool](x, "getComputedStyle(document.activeElement).outlineStyle !== 'none' || document.activeElement === document.body") {
			t.Errorf("nothing shows that %q has the focus", at)
		}
	}
	for _, want := range []string{begins, "Chat", "Sign out", "Filter sessions and search messages", "New chat", "Show files", "Commands", "Messages", "Add files", "Message"} {
		if !seen[want] {
			t.Errorf("Tab does not come to %q: %v", want, seen)
		}
	}
}

// The list marks sessions with something new since the person last looked, in all tabs, and stores no texts for this.
func TestSessionsWithSomethingNewAreMarked(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, parleytest.EchoModel, "")
	for chat := range int64(2) {
		o.Telegram.Say(chat+2, chat+2, fmt.Sprintf("first words of %d", chat+2))
		o.WaitSaid(chat+2, 1)
	}
	b := newBrowser(t)
	x, y := enter(b, o, 1280, 800), enter(b, o, 390, 800)
	marked := func(when, want string) {
		t.Helper()
		find := "[...document.querySelectorAll('.sessions li')].filter(l => l.querySelector('.unread')).map(l => l.querySelector('.line-title').textContent).join()"
		for _, one := range []*tab{x, y} {
			one.wait(when+" the marks to be right", fmt.Sprintf("document.querySelector('.sessions li') && %s === %q", find, want))
		}
	}
	show := func(chat string) {
		t.Helper()
		eval[bool](x, fmt.Sprintf("(location.hash = '#/chat/main%%3Atelegram%%3A%s', true)", chat))
		x.waitText(".answer", "you said first words of "+chat)
	}
	x.waitText(".sessions", "first words of 2")
	marked("at first,", "")
	o.Telegram.Say(3, 3, "some secret news")
	marked("after news,", "first words of 3")
	x.picture("unread")
	show("3")
	marked("after looking,", "")
	o.Telegram.Say(3, 3, "more of them")
	x.waitText(".answer", "you said more of them")
	marked("while looking,", "")
	entries := o.Count("sessions.db", "SELECT last FROM sessions WHERE CAST(key AS TEXT) = 'main:telegram:3'")
	x.wait("the end of the turn to be seen", fmt.Sprintf(`JSON.parse(Object.entries(localStorage).find(([k]) => k.startsWith("seen "))[1]).looks["main:telegram:3"].entries >= %d`, entries))
	show("2")
	x.reload()
	x.waitText(".sessions", "first words of 2")
	marked("after loading again,", "")
	o.Telegram.Say(3, 3, "the last one")
	marked("after more news,", "first words of 3")
	if kept := eval[string](x, "JSON.stringify(localStorage)"); strings.Contains(kept, "words") || strings.Contains(kept, "secret") || !strings.Contains(kept, "telegram:3") {
		t.Errorf("the browser keeps %s", kept)
	}
	eval[bool](x, `(() => {
		const at = Object.keys(localStorage).find(k => k.startsWith("seen ")), kept = JSON.parse(localStorage[at]);
		for (let n = 0; n < 700; n++) kept.looks["main:telegram:x" + n] = {entries: 1, at: 1};
		localStorage[at] = JSON.stringify(kept);
		return true;
	})()`)
	show("3")
	marked("after looking at all,", "")
	if n := eval[int](x, `Object.keys(JSON.parse(Object.entries(localStorage).find(([k]) => k.startsWith("seen "))[1]).looks).length`); n != 500 {
		t.Errorf("the browser keeps %d sessions, want 500", n)
	}
}
