package slack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/slack"
	"parley/channels/slack/slacktest"
)

const signing = "0123456789abcdef0123456789abcdef"

// The same Slack tells its app by requests.
func TestSlackKeepsTheContractOverHTTP(t *testing.T) {
	channelstest.RunChannel(t, channelstest.ChannelHarness{
		New:       func(t testing.TB) channelstest.FakePlatform { return newHTTPPlatform(t) },
		Secrets:   []string{secret, signing},
		TakesUpTo: 40000,
	})
}

// An httpPlatform is a platform whose requests go to the channel that was made last, as
// behind a load balancer.
type httpPlatform struct {
	*platform
	last atomic.Pointer[slack.Channel]
}

func newHTTPPlatform(t testing.TB) *httpPlatform {
	p := &httpPlatform{platform: newPlatform(t)}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := p.last.Load(); c != nil {
			c.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(front.Close)
	t.Cleanup(p.SendRequestsTo(front.URL, signing))
	return p
}

func (p *httpPlatform) Channel(log *slog.Logger) channels.Channel {
	c, err := slack.New(slack.Config{
		Name: "slack", BotToken: botToken, SigningSecret: signing, APIURL: p.URL, RateLimit: slack.NoPace, Joins: p.book, Cursors: p.book, Log: log,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.last.Store(c)
	return c
}

// Press presses at once: a request waits for Receive.
func (p *httpPlatform) Press(chat int, id, label string) (told func() bool) {
	envelope := p.PressButton(p.Address(chat).Chat, "U"+strconv.Itoa(chat), id, label)
	return func() bool { return p.Acked(envelope) }
}

func (p *httpPlatform) Calls(call channelstest.Call) int {
	return p.Server.Calls(httpMethod(call))
}

func (p *httpPlatform) Break(call channelstest.Call, trouble channelstest.Trouble) {
	if call != channelstest.Receiving {
		p.platform.Break(call, trouble)
		return
	}
	act := slacktest.Refuse("token_revoked")
	if trouble == channelstest.RateLimited {
		act = slacktest.Limit(strconv.Itoa(int(channelstest.RetryAfter.Seconds())))
	}
	p.Fail(httpMethod(call), "", 0, act)
}

func httpMethod(call channelstest.Call) string {
	if call == channelstest.Receiving {
		return "auth.test"
	}
	return method(call)
}

// A receiving is a channel over HTTP at work.
type receiving struct {
	*httpPlatform
	t       *testing.T
	channel *slack.Channel
	heard   chan bus.Inbound
}

func receivesHTTP(t *testing.T) *receiving { return receives(t, newHTTPPlatform(t)) }

func receives(t *testing.T, p *httpPlatform) *receiving {
	r := &receiving{httpPlatform: p, t: t, heard: make(chan bus.Inbound, 100)}
	r.channel = r.Channel(slog.New(slog.DiscardHandler)).(*slack.Channel)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- r.channel.Receive(ctx, func(_ context.Context, in bus.Inbound) error {
			r.heard <- in
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *receiving) hear() bus.Inbound {
	r.t.Helper()
	select {
	case in := <-r.heard:
		return in
	case <-time.After(time.Minute):
		r.t.Fatal("nothing is heard")
		return bus.Inbound{}
	}
}

// ask makes a request by hand.
func (r *receiving) ask(body string, change func(http.Header)) *httptest.ResponseRecorder {
	req := httptest.NewRequestWithContext(r.t.Context(), http.MethodPost, "/channels/slack", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	slacktest.Sign(req.Header, signing, time.Now(), []byte(body))
	if change != nil {
		change(req.Header)
	}
	w := httptest.NewRecorder()
	r.channel.ServeHTTP(w, req)
	return w
}

func event(ts, text string) string {
	data, err := json.Marshal(map[string]any{"type": "event_callback", "team_id": slacktest.Team, "event_id": "Ev" + ts, "event_time": 1, "event": map[string]any{
		"type": "message", "channel": "D1", "channel_type": "im", "user": "U1", "text": text, "ts": ts,
	}})
	if err != nil {
		panic(err)
	}
	return string(data)
}

func TestOnlySlacksRequestsAreTaken(t *testing.T) {
	r := receivesHTTP(t)
	body := event("1700000000.000001", "evil")
	for name, change := range map[string]func(http.Header){
		"no signature":               func(h http.Header) { h.Del("X-Slack-Signature") },
		"another's signature":        func(h http.Header) { slacktest.Sign(h, "another", time.Now(), []byte(body)) },
		"that of another body":       func(h http.Header) { slacktest.Sign(h, signing, time.Now(), []byte(body+" ")) },
		"that of another time":       func(h http.Header) { h.Set("X-Slack-Request-Timestamp", strconv.FormatInt(time.Now().Unix()-1, 10)) },
		"repeated six minutes later": func(h http.Header) { slacktest.Sign(h, signing, time.Now().Add(-6*time.Minute), []byte(body)) },
		"from six minutes from now":  func(h http.Header) { slacktest.Sign(h, signing, time.Now().Add(6*time.Minute), []byte(body)) },
		"without a time":             func(h http.Header) { h.Del("X-Slack-Request-Timestamp") },
	} {
		if w := r.ask(body, change); w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), signing) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if w := r.ask(event("1700000000.000002", "hello"), nil); w.Code != http.StatusOK {
		t.Errorf("a good one: %d %s", w.Code, w.Body)
	}
	if in := r.hear(); in.Text != "hello" {
		t.Errorf("heard %q", in.Text)
	}
	for _, body := range []string{"", "{", `{"type":""}`, `{"type":"url_verification"}`} {
		if w := r.ask(body, nil); w.Code != http.StatusBadRequest {
			t.Errorf("%q: %d", body, w.Code)
		}
	}
	if w := r.ask(`{"type":"event_callback","event":7}`, nil); w.Code != http.StatusOK { // it would be no other later
		t.Errorf("an event that cannot be read: %d", w.Code)
	}
}

func TestTheChallengeIsAnswered(t *testing.T) {
	r := receivesHTTP(t)
	w := r.ask(`{"type":"url_verification","token":"x","challenge":"abc123"}`, nil)
	if w.Code != http.StatusOK || w.Body.String() != "abc123" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestARepeatedRequestIsHeardOnce(t *testing.T) {
	r := receivesHTTP(t)
	for i := range 3 {
		w := r.ask(event("1700000000.000001", "hello"), func(h http.Header) { h.Set("X-Slack-Retry-Num", strconv.Itoa(i)) })
		if w.Code != http.StatusOK {
			t.Errorf("attempt %d: %d", i, w.Code)
		}
	}
	r.ask(event("1700000000.000002", "next"), nil)
	if a, b := r.hear(), r.hear(); a.Text != "hello" || b.Text != "next" {
		t.Errorf("heard %q and %q", a.Text, b.Text)
	}
}

func TestACommandIsHeardByARequest(t *testing.T) {
	r := receivesHTTP(t)
	r.Server.Say("C1", "U1", "just talking")
	for text, shown := range map[string]string{"stop": "", "how are you?": `{"response_type":"in_channel"}`, "": ""} {
		envelope := r.Command("C1", "U1", text)
		in := r.hear()
		if !strings.Contains("/stop how are you? /help", in.Text) || !in.Mentioned || !in.Group || in.At != at("C1") || in.From.ID != "slack:U1" || in.ID == "" {
			t.Errorf("%q is heard as %+v", text, in)
		}
		channelstest.Until(t, "the answer", func() bool { return r.Acked(envelope) })
		if got := r.Server.Shown(envelope); got != shown {
			t.Errorf("%q has Slack show %s, want %s", text, got, shown)
		}
	}
}

// What cannot be published in time is answered with 503, and still published before what
// is said next.
func TestWhatIsNotPublishedInTimeIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := slack.New(slack.Config{Name: "slack", BotToken: botToken, SigningSecret: signing, HTTP: &http.Client{Transport: knowsUs{}}})
		if err != nil {
			t.Fatal(err)
		}
		r := &receiving{t: t, channel: c}
		if w := r.ask(event("1700000000.000001", "early"), nil); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("nobody receives: %d", w.Code)
		}
		ctx, cancel := context.WithCancel(t.Context())
		broken, heard := new(atomic.Bool), []string{}
		broken.Store(true)
		ended := make(chan error, 1)
		go func() {
			ended <- c.Receive(ctx, func(_ context.Context, in bus.Inbound) error {
				if broken.Load() {
					return fmt.Errorf("the bus is away")
				}
				heard = append(heard, in.Text)
				return nil
			})
		}()
		synctest.Wait()
		began := time.Now()
		if w := r.ask(event("1700000000.000002", "one"), nil); w.Code != http.StatusServiceUnavailable || time.Since(began) >= 3*time.Second {
			t.Errorf("the bus is away: %d after %v", w.Code, time.Since(began))
		}
		broken.Store(false)
		for i, text := range []string{"one", "two"} {
			again := func(h http.Header) { h.Set("X-Slack-Retry-Num", strconv.Itoa(1-i)) }
			if w := r.ask(event(fmt.Sprint("1700000000.00000", 2+i), text), again); w.Code != http.StatusOK {
				t.Errorf("%s: %d", text, w.Code)
			}
		}
		cancel()
		if err := <-ended; err != nil || fmt.Sprint(heard) != "[one two]" {
			t.Errorf("heard %v, %v", heard, err)
		}
	})
}

// knowsUs answers that there is a bot, and nothing else.
type knowsUs struct{}

func (knowsUs) RoundTrip(r *http.Request) (*http.Response, error) {
	body := `{"ok":true,"team_id":"T1","user_id":"U0","bot_id":"B0","user":"parley"}`
	if strings.HasSuffix(r.URL.Path, "users.info") {
		body = `{"ok":true,"user":{"id":"U1","team_id":"T1"}}`
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader([]byte(body))), Request: r}, nil
}

// Two messages that were said one after the other, and come in the wrong order within a
// moment, are heard in the right one.
func TestRequestsInTheWrongOrderAreHeardInTheRightOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := slack.New(slack.Config{Name: "slack", BotToken: botToken, SigningSecret: signing, HTTP: &http.Client{Transport: knowsUs{}}})
		if err != nil {
			t.Fatal(err)
		}
		r := &receiving{t: t, channel: c}
		ctx, cancel := context.WithCancel(t.Context())
		heard, ended := make(chan string, 2), make(chan error, 1)
		go func() {
			ended <- c.Receive(ctx, func(_ context.Context, in bus.Inbound) error {
				heard <- in.Text
				return nil
			})
		}()
		synctest.Wait()
		for i, text := range []string{"two", "one"} {
			go func() {
				if w := r.ask(event(fmt.Sprint("1700000000.00000", 2-i), text), nil); w.Code != http.StatusOK {
					t.Errorf("%s: %d", text, w.Code)
				}
			}()
			time.Sleep(5 * time.Millisecond) // in the bubble's own time
		}
		if a, b := <-heard, <-heard; a != "one" || b != "two" {
			t.Errorf("heard %q and %q", a, b)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// What Slack has given up is read from history: after the last attempt for something, and
// after Slack held back what was too much.
func TestWhatRequestsCouldNotDeliverIsReadFromHistory(t *testing.T) {
	for name, body := range map[string]string{
		"the last attempt":       event("1700000000.000001", "late"),
		"more than Slack brings": `{"type":"app_rate_limited","team_id":"T0TEAM","minute_rate_limited":1}`,
	} {
		r := receivesHTTP(t)
		channelstest.Until(t, "Receive", func() bool { return r.Server.Calls("auth.test") > 0 })
		r.PauseRequests(true)
		r.Server.Say("D7", "U7", "lost")
		r.DropUnacked() // Slack gives up
		w := r.ask(body, func(h http.Header) {
			h.Set("X-Slack-Retry-Num", "3")
			h.Set("X-Slack-Retry-Reason", "http_timeout")
		})
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d", name, w.Code)
		}
		for in := r.hear(); in.Text != "lost"; in = r.hear() {
			if in.Text != "late" {
				t.Errorf("%s: heard %q", name, in.Text)
			}
		}
	}
}

// A process that begins after nobody served for longer than Slack tries reads from history
// what was said meanwhile; after a shorter time it leaves that to Slack.
func TestAStartReadsWhatSlackHasGivenUp(t *testing.T) {
	for _, away := range []time.Duration{10 * time.Minute, 10 * time.Second} {
		p := newHTTPPlatform(t)
		p.PauseRequests(true)
		p.Server.Say("D7", "U7", "lost")
		p.DropUnacked()
		was := time.Now().Add(-away)
		if err := p.book.SetCursor(t.Context(), bus.Address{Channel: "slack"}, fmt.Sprintf("%d.000000", was.Unix())); err != nil {
			t.Fatal(err)
		}
		r := receives(t, p)
		if away > time.Minute {
			if in := r.hear(); in.Text != "lost" {
				t.Errorf("heard %q", in.Text)
			}
			continue
		}
		r.ask(event("1700000000.000001", "fresh"), nil)
		if in := r.hear(); in.Text != "fresh" || r.Server.Calls("users.conversations") != 0 {
			t.Errorf("heard %q, after %d looks at all chats", in.Text, r.Server.Calls("users.conversations"))
		}
	}
}
