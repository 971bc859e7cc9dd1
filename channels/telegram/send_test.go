package telegram_test

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/channels/telegram"
	"parley/channels/telegram/telegramtest"
)

func address(chat string) bus.Address { return bus.Address{Channel: "tg", Chat: chat} }

func textPart(text string) channels.Part {
	return channels.Part{Key: "k#0", Text: text, Plain: strings.NewReplacer("<b>", "", "</b>", "").Replace(text)}
}

func TestSend(t *testing.T) {
	r := newRig(t)
	quoted := r.server.Say(-7, 1, "question")
	id, err := r.Send(t.Context(), bus.Address{Channel: "tg", Chat: "-7", Thread: "33"},
		channels.Part{Text: "<b>yes</b> &amp; no", Plain: "yes & no", ReplyTo: "1"})
	if err != nil || id != "2" {
		t.Fatalf("Send = %q, %v", id, err)
	}
	got := r.server.Sent(-7)[0]
	if got.Text != "yes & no" || got.Thread != 33 || got.ReplyTo != quoted || got.Mode != "HTML" {
		t.Errorf("sent %+v", got)
	}
	// A quoted message may be gone. The first topic of a forum has no thread number in a send.
	if _, err := r.Send(t.Context(), bus.Address{Channel: "tg", Chat: "-7", Thread: "1"}, channels.Part{Text: "on", ReplyTo: "999"}); err != nil {
		t.Error(err)
	}
	if _, err := r.Typing(t.Context(), bus.Address{Channel: "tg", Chat: "-7", Thread: "1"}); err != nil {
		t.Error(err)
	}
	if _, err := r.Send(t.Context(), address("-7"), channels.Part{Text: "more of it", Under: id}); err != nil {
		t.Error(err)
	}
	if sent := r.server.Sent(-7); sent[len(sent)-1].ReplyTo != 2 {
		t.Errorf("sent %+v", sent[len(sent)-1])
	}
	if n := r.server.TypingTopic(-7); n != 1 {
		t.Errorf("it is shown to type in the topic %d", n)
	}
}

// Telegram refuses the thread of a forum's first topic in a message, but requires it in a chat action.
func TestTypingInTheFirstTopicOfAForum(t *testing.T) {
	r := newRig(t)
	box := newMessageRecorder()
	startReceiving(t, r.Channel, box.publish)
	forum := messageFields{"id": -7, "type": "supergroup", "title": "Plans", "is_forum": true}
	r.server.Post(-7, 1, messageFields{"text": "@" + botName + " in the first", "chat": forum})
	r.server.Post(-7, 1, messageFields{"text": "@" + botName + " in another", "chat": forum, "is_topic_message": true, "message_thread_id": 33})
	r.server.Post(-8, 1, messageFields{"text": "@" + botName + " in a group"})
	for _, in := range box.wait(t, 3) { // the chats are handled concurrently
		at, want := in.At, map[string]int{"in the first": 1, "in another": 33, "in a group": 0}[in.Text]
		if _, err := r.Typing(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		chat, _ := strconv.ParseInt(at.Chat, 10, 64)
		if got := r.server.TypingTopic(chat); got != want {
			t.Errorf("at %v it is shown to type in the topic %d, want %d", at, got, want)
		}
		if _, err := r.Send(t.Context(), at, channels.Part{Text: "yes"}); err != nil {
			t.Errorf("at %v: %v", at, err)
		}
	}
}

func TestUnreadableMarkupIsSentPlain(t *testing.T) {
	r := newRig(t)
	if _, err := r.Send(t.Context(), address("5"), channels.Part{Text: "<what>a</b>", Plain: "a <b"}); err != nil {
		t.Fatal(err)
	}
	sent := r.server.Sent(5)
	if len(sent) != 1 || sent[0].Text != "a <b" || sent[0].Mode != "" {
		t.Errorf("sent %+v", sent)
	}
}

// Whatever Telegram refuses about a formatted text, people get its words.
func TestRefusedMarkupIsSentOnceAsPlainText(t *testing.T) {
	r := newRig(t)
	formatted := channels.Part{Text: "<b>yes</b> &amp; no", Plain: "yes & no"}
	for i, refusal := range []string{
		"Bad Request: ENTITIES_TOO_LONG", "Bad Request: ENTITY_BOUNDS_INVALID", "Bad Request: can't parse entities: x",
		"Bad Request: message is too long", "Bad Request: wrong HTTP URL specified",
	} {
		r.server.Fail(telegramtest.Fault{Method: "sendMessage", Chat: 5, Times: 1, Status: 400, Description: refusal})
		if _, err := r.Send(t.Context(), address("5"), formatted); err != nil {
			t.Errorf("%s: %v", refusal, err)
		}
		sent := r.server.Sent(5)
		if len(sent) != i+1 || sent[i].Text != "yes & no" || sent[i].Mode != "" {
			t.Errorf("%s: sent %+v", refusal, sent)
		}
	}
	heavy := channels.Part{Text: strings.Repeat(`<a href="https://a.example/`+strings.Repeat("x", 400)+`">x</a> `, 40), Plain: "x x x"}
	if _, err := r.Send(t.Context(), address("6"), heavy); err != nil {
		t.Error(err)
	}
	if sent := r.server.Sent(6); len(sent) != 1 || sent[0].Text != "x x x" {
		t.Errorf("sent %+v", sent)
	}
	if err := r.Edit(t.Context(), address("6"), "1", heavy); err != nil {
		t.Error(err)
	}

	for i, refusal := range []string{"Bad Request: chat not found", "Bad Request: not enough rights to send text messages to the chat"} {
		r.server.Fail(telegramtest.Fault{Method: "sendMessage", Chat: 7, Times: 1, Status: 400, Description: refusal})
		_, err := r.Send(t.Context(), address("7"), formatted)
		if e := requireSendError(t, err); e.Fault != channels.Rejected || len(r.server.Sent(7)) != 0 {
			t.Errorf("%d %s: %v, and %d messages are there", i, refusal, e, len(r.server.Sent(7)))
		}
	}
	// If the plain text is refused too, the send fails after two calls.
	r.server.Fail(telegramtest.Fault{Method: "sendMessage", Chat: 8, Status: 400, Description: "Bad Request: no"})
	before := r.server.Calls("sendMessage")
	_, err := r.Send(t.Context(), address("8"), formatted)
	if e := requireSendError(t, err); e.Fault != channels.Rejected || r.server.Calls("sendMessage") != before+2 {
		t.Errorf("%v after %d calls", e, r.server.Calls("sendMessage")-before)
	}
	// A text that may have been sent is not sent again in another form.
	r.server.Fail(telegramtest.Fault{Method: "sendMessage", Chat: 9, Times: 1, Act: telegramtest.Cut})
	_, err = r.Send(t.Context(), address("9"), formatted)
	if e := requireSendError(t, err); e.Fault != channels.Unknown || len(r.server.Sent(9)) != 1 {
		t.Errorf("%v, and %d messages are there", e, len(r.server.Sent(9)))
	}
}

// Telegram accepts every formatted text unchanged: no message has more formatted pieces than Telegram shows, or
// larger ones than it accepts.
func TestAllFormattingIsAccepted(t *testing.T) {
	r := newRig(t)
	linkEnd := "](https://a.example/" + strings.Repeat("x", 300) + ") "
	limits := r.Limits()
	for chat, c := range []struct {
		md       string
		messages int
		entities int
	}{
		{strings.Repeat("- **one** and `two`\n", 50), 1, 100},
		{strings.Repeat("- **one** and `two`\n", 51), 2, 102},
		{strings.Repeat("**a** ", 350), 4, 350},
		{strings.Repeat("- [a"+linkEnd+"\n", 60), 3, 60},
		{strings.Repeat("[a"+linkEnd, 60), 3, 60},
		{strings.Repeat("> quote **a**\n\n- b\n\n", 60), 2, 120},
		{strings.Repeat("```go\nx\n```\n", 120), 2, 120},
		{strings.Repeat("\\*\"<&>", 800), 1, 0},
	} {
		pieces := markup.Render(c.md, limits.Dialect, limits.Length)
		for _, p := range pieces {
			if _, err := r.Send(t.Context(), address(fmt.Sprint(chat+1)), channels.Part{Text: p.Text, Plain: p.Plain}); err != nil {
				t.Errorf("%.30q: %v", c.md, err)
			}
		}
		entities, lost := 0, 0
		for _, m := range r.server.Sent(int64(chat + 1)) {
			entities += m.Entities
			lost += m.Unformatted
			if m.Mode != "HTML" {
				t.Errorf("%.30q was sent plain", c.md)
			}
		}
		if len(pieces) != c.messages || entities != c.entities || lost != 0 {
			t.Errorf("%.30q: %d messages with %d formatted pieces and %d lost, want %d with %d", c.md, len(pieces), entities, lost, c.messages, c.entities)
		}
	}
}

func TestRefusalsOfTheBotAPI(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		fault telegramtest.Fault
		want  channels.SendError
	}{
		{telegramtest.Fault{Status: 429, RetryAfter: 7}, channels.SendError{Fault: channels.Retry, RateLimited: true, RetryAfter: 7 * time.Second, Code: "429"}},
		{telegramtest.Fault{Status: 403, Description: "Forbidden: bot was blocked by the user"}, channels.SendError{Fault: channels.Rejected, Code: "blocked"}},
		{telegramtest.Fault{Status: 403, Description: "Forbidden: bot was kicked from the supergroup chat"}, channels.SendError{Fault: channels.Rejected, Code: "kicked"}},
		{telegramtest.Fault{Status: 403, Description: "Forbidden: something new"}, channels.SendError{Fault: channels.Rejected, Code: "403"}},
		{telegramtest.Fault{Status: 400, Description: "Bad Request: chat not found"}, channels.SendError{Fault: channels.Rejected, Code: "chat_not_found"}},
		{telegramtest.Fault{Status: 400, Description: "Bad Request: the words of somebody"}, channels.SendError{Fault: channels.Rejected, Code: "400"}},
		{telegramtest.Fault{Status: 400, MigrateTo: -100777, Description: "Bad Request: group chat was upgraded"}, channels.SendError{Fault: channels.Retry, MovedTo: "-100777", Code: "migrated"}},
		{telegramtest.Fault{Status: 401, Description: "Unauthorized"}, channels.SendError{Fault: channels.Stop, Code: "401"}},
		{telegramtest.Fault{Status: 404, Description: "Not Found"}, channels.SendError{Fault: channels.Stop, Code: "404"}},
		{telegramtest.Fault{Status: 500, Description: "Internal Server Error"}, channels.SendError{Fault: channels.Unknown, Code: "http_500"}},
		{telegramtest.Fault{Status: 502, Raw: "<html>the words of somebody</html>"}, channels.SendError{Fault: channels.Unknown, Code: "http_502"}},
		{telegramtest.Fault{Status: 404, Raw: "<html>no such page</html>"}, channels.SendError{Fault: channels.Retry, Code: "http_404"}},
		{telegramtest.Fault{Status: 200, Raw: "<html>welcome</html>"}, channels.SendError{Fault: channels.Unknown, Code: "http_200"}},
	} {
		c.fault.Times, c.fault.Chat = 1, 5
		r.server.Fail(c.fault)
		_, err := r.Send(t.Context(), address("5"), textPart("hi"))
		e := requireSendError(t, err)
		if strings.Contains(e.Error(), "somebody") {
			t.Errorf("%d: the error holds a text: %v", c.fault.Status, e)
		}
		got := *e
		got.Err = nil
		if got != c.want {
			t.Errorf("%d %s: got %+v, want %+v", c.fault.Status, c.fault.Description, got, c.want)
		}
	}
	if n := r.server.Sends(); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
}

func TestInvalidTextsAreRejected(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct{ text, code string }{
		{"<b> </b>", "empty"},
		{strings.Repeat("x", 4097), "too_long"},
	} {
		_, err := r.Send(t.Context(), address("5"), channels.Part{Text: c.text})
		if e := requireSendError(t, err); e.Fault != channels.Rejected || e.Code != c.code {
			t.Errorf("got %v, want %s", e, c.code)
		}
	}
	for _, to := range []bus.Address{address("bob"), {Channel: "tg", Chat: "5", Thread: "x"}} {
		_, err := r.Send(t.Context(), to, textPart("hi"))
		if e := requireSendError(t, err); e.Fault != channels.Rejected {
			t.Errorf("%v: got %v, want rejected", to, e)
		}
	}
}

// A send notices that the server has closed the connection before anything is sent.
func TestASendOverAClosedConnectionIsRetried(t *testing.T) {
	r := newRig(t)
	_, err := r.Send(t.Context(), address("5"), textPart("first"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.server.Close(); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the closed connection is known", func() bool {
		_, err = r.Send(t.Context(), address("5"), textPart("hi"))
		return requireSendError(t, err).Fault == channels.Retry
	})
}

func TestFailedTLSHandshakesMayBeRetried(t *testing.T) {
	r := newRig(t)
	c, err := telegram.New(telegram.Config{Name: "tg", Token: token, APIURL: strings.Replace(r.url, "http://", "https://", 1)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Send(t.Context(), address("5"), textPart("hi"))
	if e := requireSendError(t, err); e.Fault != channels.Retry {
		t.Errorf("got %v, want retry", e)
	}
	_, err = c.Check(t.Context())
	if e := requireSendError(t, err); e.Fault != channels.Retry {
		t.Errorf("got %v, want retry", e)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	r := newRig(t)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	front := &http.Server{ReadHeaderTimeout: testTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, r.url+req.URL.Path, http.StatusTemporaryRedirect)
	})}
	go func() { _ = front.Serve(l) }() // returns when l is closed
	defer func() { _ = front.Close() }()
	c, err := telegram.New(telegram.Config{Name: "tg", Token: token, APIURL: "http://" + l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Send(t.Context(), address("5"), textPart("hi"))
	if e := requireSendError(t, err); e.Fault != channels.Retry || e.Code != "http_307" {
		t.Errorf("got %v", e)
	}
	if r.server.Calls("sendMessage") != 0 {
		t.Error("the token went elsewhere")
	}
}

func BenchmarkSend(b *testing.B) {
	r := newRig(b)
	p := textPart("<b>hello</b> world")
	for b.Loop() {
		if _, err := r.Send(b.Context(), address("5"), p); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSendTogether does what BenchmarkSend does, from several chats at once.
func BenchmarkSendTogether(b *testing.B) {
	r := newRig(b)
	p := textPart("<b>hello</b> world")
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := r.Send(b.Context(), address("5"), p); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkRoundTrip measures the part of BenchmarkSend that HTTP itself takes.
func BenchmarkRoundTrip(b *testing.B) {
	r := newRig(b)
	for b.Loop() {
		if _, err := r.Check(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
