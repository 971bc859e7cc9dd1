package telegram_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/telegram"
	"parley/channels/telegram/telegramtest"
)

// The contract also holds if Telegram delivers by HTTP requests.
func TestTelegramKeepsTheContractOverHTTP(t *testing.T) {
	channelstest.RunChannel(t, channelstest.ChannelHarness{
		New:     func(t testing.TB) channelstest.FakePlatform { return newHTTPPlatform(t) },
		Secrets: []string{secret},
	})
}

// An httpPlatform is a platform whose requests go to the channel that was made last, as if they came through a
// load balancer.
type httpPlatform struct {
	*platform
	front       *httptest.Server
	book        *memoryBook
	lastChannel atomic.Pointer[telegram.Channel]
}

func newHTTPPlatform(t testing.TB) *httpPlatform {
	p := &httpPlatform{platform: newPlatform(t), book: newMemoryBook()}
	p.front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := p.lastChannel.Load(); c != nil && r.URL.Path == "/channels/tg" {
			c.ServeHTTP(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(p.front.Close)
	t.Cleanup(p.EndWebhook)
	return p
}

func (p *httpPlatform) Channel(log *slog.Logger) channels.Channel {
	c := p.newChannel(log)
	p.lastChannel.Store(c)
	return c
}

func (p *httpPlatform) newChannel(log *slog.Logger) *telegram.Channel {
	c, err := telegram.New(telegram.Config{
		Name: "tg", Token: token, APIURL: p.URL, RateLimit: telegram.NoPace, Webhook: p.front.URL + "/channels/tg", Book: p.book, Log: log,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

func httpAPIMethod(call channelstest.Call) string {
	if call == channelstest.Receiving {
		return "setWebhook"
	}
	return apiMethod(call)
}

func (p *httpPlatform) Calls(call channelstest.Call) int { return p.Server.Calls(httpAPIMethod(call)) }

func (p *httpPlatform) Break(call channelstest.Call, trouble channelstest.Trouble) {
	if call != channelstest.Receiving {
		p.platform.Break(call, trouble)
		return
	}
	fault := telegramtest.Fault{Method: "setWebhook", Status: http.StatusUnauthorized, Description: "Unauthorized " + channelstest.PersonWords}
	if trouble == channelstest.RateLimited {
		fault.Status, fault.RetryAfter = http.StatusTooManyRequests, int(channelstest.RetryAfter.Seconds())
	}
	p.Fail(fault)
}

// A memoryBook is a Book in memory.
type memoryBook struct {
	mu     sync.Mutex
	notes  map[string]string
	joined map[bus.Address]bool
	fails  bool
}

func newMemoryBook() *memoryBook {
	return &memoryBook{notes: map[string]string{}, joined: map[bus.Address]bool{}}
}

var errBook = errors.New("the book is away")

func (m *memoryBook) unlessFailing(act func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails {
		return errBook
	}
	act()
	return nil
}

func (m *memoryBook) SetNote(_ context.Context, subject, about, value string) error {
	return m.unlessFailing(func() {
		if value == "" {
			delete(m.notes, subject+" "+about)
			return
		}
		m.notes[subject+" "+about] = value
	})
}

func (m *memoryBook) SetNoteOnce(_ context.Context, subject, about, value string) (kept string, err error) {
	err = m.unlessFailing(func() {
		if m.notes[subject+" "+about] == "" {
			m.notes[subject+" "+about] = value
		}
		kept = m.notes[subject+" "+about]
	})
	return kept, err
}

func (m *memoryBook) Noted(_ context.Context, subject, about string) (r channels.Note, err error) {
	err = m.unlessFailing(func() { r = channels.Note{About: about, Value: m.notes[subject+" "+about]} })
	return r, err
}

func (m *memoryBook) AllNoted(context.Context, string) ([]channels.Note, error) { return nil, nil }

func (m *memoryBook) TalkedSince(_ context.Context, at bus.Address) (since time.Time, joined bool, err error) {
	err = m.unlessFailing(func() { joined = m.joined[at] })
	return since, joined, err
}

func (m *memoryBook) dump() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprint(slices.Sorted(maps.Keys(m.notes)))
}

// startReceivingUntilEnd runs Receive until the test ends, or until stop is called.
func startReceivingUntilEnd(t *testing.T, c *telegram.Channel, publish func(context.Context, bus.Inbound) error) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Receive(ctx, publish) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func newPublishChannel() (chan bus.Inbound, func(context.Context, bus.Inbound) error) {
	heard := make(chan bus.Inbound, 100)
	return heard, func(_ context.Context, in bus.Inbound) error {
		heard <- in
		return nil
	}
}

func nextMessage(t *testing.T, heard chan bus.Inbound) bus.Inbound {
	t.Helper()
	select {
	case in := <-heard:
		return in
	case <-time.After(time.Minute):
		t.Fatal("nothing is heard")
		return bus.Inbound{}
	}
}

// Two processes set the same webhook with the same secret, and either of them accepts the requests.
func TestAllProcessesSetTheSameWebhook(t *testing.T) {
	p := newHTTPPlatform(t)
	quiet := slog.New(slog.DiscardHandler)
	heard, publish := newPublishChannel()
	one, two := p.newChannel(quiet), p.newChannel(quiet)
	p.lastChannel.Store(one)
	startReceivingUntilEnd(t, one, publish)
	channelstest.Until(t, "the webhook", func() bool {
		address, _ := p.Webhook()
		return address != ""
	})
	_, secret := p.Webhook()
	stop := startReceivingUntilEnd(t, two, publish)
	channelstest.Until(t, "the other's", func() bool { return p.Server.Calls("setWebhook") == 2 })
	if address, now := p.Webhook(); now != secret || len(secret) < 40 || address != p.front.URL+"/channels/tg" {
		t.Errorf("the webhook is %s with a secret of %d characters; it is another's: %t", address, len(now), now != secret)
	}
	for i := range 6 {
		p.lastChannel.Store([]*telegram.Channel{one, two}[i%2])
		p.Say(7, fmt.Sprint("m", i))
		if in := nextMessage(t, heard); in.Text != fmt.Sprint("m", i) {
			t.Errorf("heard %q", in.Text)
		}
	}
	stop()
	p.lastChannel.Store(one)
	p.Say(7, "last")
	nextMessage(t, heard)
}

func TestOnlyRequestsWithTheSecretAreAccepted(t *testing.T) {
	p := newHTTPPlatform(t)
	heard, publish := newPublishChannel()
	c := p.newChannel(slog.New(slog.DiscardHandler))
	ask := func(secret, body string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/channels/tg", strings.NewReader(body))
		r.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		return w.Code
	}
	const update = `{"update_id":1,"message":{"message_id":1,"date":1,"chat":{"id":7,"type":"private"},"from":{"id":7,"first_name":"A"},"text":"hello"}}`
	if code := ask("", update); code != http.StatusServiceUnavailable {
		t.Errorf("before there is a secret: %d", code)
	}
	startReceivingUntilEnd(t, c, publish)
	channelstest.Until(t, "the webhook", func() bool {
		address, _ := p.Webhook()
		return address != ""
	})
	_, secret := p.Webhook()
	for _, wrong := range []string{"", "x", secret + "x", secret[1:], strings.ToLower(secret)} {
		if code := ask(wrong, update); code != http.StatusUnauthorized {
			t.Errorf("a wrong secret: %d", code)
		}
	}
	for body, want := range map[string]int{"{": 400, "": 400, `{"update_id":2}`: 200, `{"update_id":3,"message":7}`: 200, update: 200} {
		if code := ask(secret, body); code != want {
			t.Errorf("%s: %d, want %d", body, code, want)
		}
	}
	if in := nextMessage(t, heard); in.Text != "hello" {
		t.Errorf("heard %q", in.Text)
	}
	// A request may arrive after requests that were made later.
	for i, id := range []int{900, 5, 899} {
		body := fmt.Sprintf(`{"update_id":%d,"message":{"message_id":%d,"date":1,"chat":{"id":7,"type":"private"},"from":{"id":7,"first_name":"A"},"text":"late %d"}}`, id, id, i)
		if code := ask(secret, body); code != http.StatusOK {
			t.Errorf("the update %d: %d", id, code)
		}
		if in := nextMessage(t, heard); in.Text != fmt.Sprint("late ", i) {
			t.Errorf("heard %q", in.Text)
		}
	}
}

// A process that polls again removes the webhook, once, if Parley has set it. A webhook that another program
// has set stays.
func TestSwitchingBackRemovesTheWebhook(t *testing.T) {
	p := newHTTPPlatform(t)
	quiet := slog.New(slog.DiscardHandler)
	heard, publish := newPublishChannel()
	c := p.newChannel(quiet)
	p.lastChannel.Store(c)
	stop := startReceivingUntilEnd(t, c, publish)
	p.Say(7, "by request")
	nextMessage(t, heard)
	stop()
	p.Say(7, "in between")
	poller, err := telegram.New(telegram.Config{Name: "tg", Token: token, APIURL: p.URL, RateLimit: telegram.NoPace, Book: p.book, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		stop = startReceivingUntilEnd(t, poller, publish)
		in := nextMessage(t, heard)
		for in.Text == "by request" { // Telegram was not told that this one had arrived; the bus drops repetitions
			in = nextMessage(t, heard)
		}
		if in.Text != "in between" && in.Text != "again" {
			t.Errorf("heard %q", in.Text)
		}
		stop()
		p.Say(7, "again")
	}
	if address, _ := p.Webhook(); address != "" || p.Server.Calls("deleteWebhook") != 1 || p.book.dump() != "[]" {
		t.Errorf("the webhook is %q, after %d calls; the book has %s", address, p.Server.Calls("deleteWebhook"), p.book.dump())
	}
}

// A group that becomes a supergroup keeps its conversation, for receiving and for sending, also in another
// process.
func TestAGroupThatMovesKeepsItsConversation(t *testing.T) {
	p := newHTTPPlatform(t)
	quiet := slog.New(slog.DiscardHandler)
	heard, publish := newPublishChannel()
	c := p.newChannel(quiet)
	p.lastChannel.Store(c)
	startReceivingUntilEnd(t, c, publish)
	const old, young = -5, -1005
	hello := map[string]any{"text": "@" + botName + " hello"}
	p.Post(old, 7, hello)
	before := nextMessage(t, heard)
	p.Migrate(old, young)
	p.Post(young, 7, hello)
	after := nextMessage(t, heard)
	if after.At != before.At || after.At.Chat != "-5" || after.ID == before.ID {
		t.Errorf("before %+v, after %+v", before, after)
	}
	for i, c := range []*telegram.Channel{c, p.newChannel(quiet)} {
		if _, err := c.Send(t.Context(), after.At, channels.Part{Text: "hi", Plain: "hi"}); err != nil {
			t.Error(err)
		}
		if sent := p.Sent(young); len(sent) != i+1 {
			t.Errorf("process %d: the supergroup has %+v", i, sent)
		}
	}
	if at, err := c.ReplyAddress(t.Context(), bus.Address{Channel: "tg", Chat: "-1005"}, "1"); err != nil || at != after.At {
		t.Errorf("replies come from %v, %v", at, err)
	}
}

// A group's move is also recorded when a send is refused because of it. A conversation that already exists
// under the new id continues unchanged.
func TestARefusedSendRecordsTheGroupsMove(t *testing.T) {
	for _, spoken := range []bool{false, true} {
		p := newHTTPPlatform(t)
		quiet := slog.New(slog.DiscardHandler)
		if spoken {
			p.book.joined[bus.Address{Channel: "tg", Chat: "-1005"}] = true
		}
		c := p.newChannel(quiet)
		p.Fail(telegramtest.Fault{Method: "sendMessage", Chat: -5, Status: 400, Description: "Bad Request: group chat was upgraded to a supergroup chat", MigrateTo: -1005})
		to := bus.Address{Channel: "tg", Chat: "-5"}
		_, err := c.Send(t.Context(), to, channels.Part{Text: "hi", Plain: "hi"})
		if fault := channels.FaultOf(err); fault.MovedTo != "-1005" || fault.Fault != channels.Retry {
			t.Fatalf("the refusal is %v", err)
		}
		if _, err := p.newChannel(quiet).Send(t.Context(), to, channels.Part{Text: "hi", Plain: "hi"}); err != nil || len(p.Sent(-1005)) != 1 {
			t.Errorf("the next process sends with %v to %+v", err, p.Sent(-1005))
		}
		want := "-5"
		if spoken {
			want = "-1005"
		}
		if at, err := c.ReplyAddress(t.Context(), bus.Address{Channel: "tg", Chat: "-1005"}, "1"); err != nil || at.Chat != want {
			t.Errorf("spoken before %t: the conversation is %v, %v", spoken, at, err)
		}
	}
}

// While the book can't record a move, no message of the new group is published as another conversation.
func TestRecordingAMoveIsRetried(t *testing.T) {
	p := newHTTPPlatform(t)
	heard, publish := newPublishChannel()
	c := p.newChannel(slog.New(slog.DiscardHandler))
	p.lastChannel.Store(c)
	startReceivingUntilEnd(t, c, publish)
	p.Post(-5, 7, map[string]any{"text": "@" + botName + " one"})
	nextMessage(t, heard)
	p.book.mu.Lock()
	p.book.fails = true
	p.book.mu.Unlock()
	p.Migrate(-5, -1005)
	p.Post(-1005, 7, map[string]any{"text": "@" + botName + " two"})
	p.Say(8, "another chat") // a message in a chat that does not need the book
	nextMessage(t, heard)
	p.book.mu.Lock()
	p.book.fails = false
	p.book.mu.Unlock()
	if in := nextMessage(t, heard); in.At.Chat != "-5" {
		t.Errorf("after the move: %+v", in)
	}
}
