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

const signingSecret = "0123456789abcdef0123456789abcdef"

// The contract also holds if Slack delivers by HTTP requests.
func TestSlackKeepsTheContractOverHTTP(t *testing.T) {
	channelstest.RunChannel(t, channelstest.ChannelHarness{
		New:               func(t testing.TB) channelstest.FakePlatform { return newHTTPPlatform(t) },
		Secrets:           []string{secret, signingSecret},
		MaxAcceptedLength: 40000,
	})
}

// An httpPlatform is a platform whose requests go to the channel that was made last, as if they came through a
// load balancer.
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
	t.Cleanup(p.SendRequestsTo(front.URL, signingSecret))
	return p
}

func (p *httpPlatform) Channel(log *slog.Logger) channels.Channel {
	c, err := slack.New(slack.Config{
		Name: "slack", BotToken: botToken, SigningSecret: signingSecret, APIURL: p.URL, RateLimit: slack.NoPace, JoinedThreads: p.book, Cursors: p.book, Log: log,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.last.Store(c)
	return c
}

// Press presses a button immediately; the request waits until Receive runs.
func (p *httpPlatform) Press(chat int, id, label string) (told func() bool) {
	envelope := p.PressButton(p.Address(chat).Chat, "U"+strconv.Itoa(chat), id, label)
	return func() bool { return p.Acked(envelope) }
}

func (p *httpPlatform) Calls(call channelstest.Call) int {
	return p.Server.Calls(httpAPIMethod(call))
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
	p.Fail(httpAPIMethod(call), "", 0, act)
}

func httpAPIMethod(call channelstest.Call) string {
	if call == channelstest.Receiving {
		return "auth.test"
	}
	return apiMethod(call)
}

// A runningHTTPChannel is a channel that receives by HTTP requests, with Receive running.
type runningHTTPChannel struct {
	*httpPlatform
	t         *testing.T
	channel   *slack.Channel
	published chan bus.Inbound
}

func startHTTPChannel(t *testing.T) *runningHTTPChannel {
	return startHTTPChannelOn(t, newHTTPPlatform(t))
}

func startHTTPChannelOn(t *testing.T, p *httpPlatform) *runningHTTPChannel {
	r := &runningHTTPChannel{httpPlatform: p, t: t, published: make(chan bus.Inbound, 100)}
	r.channel = r.Channel(slog.New(slog.DiscardHandler)).(*slack.Channel)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- r.channel.Receive(ctx, func(_ context.Context, in bus.Inbound) error {
			r.published <- in
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

func (r *runningHTTPChannel) awaitMessage() bus.Inbound {
	r.t.Helper()
	select {
	case in := <-r.published:
		return in
	case <-time.After(time.Minute):
		r.t.Fatal("nothing is heard")
		return bus.Inbound{}
	}
}

// request sends a signed request to the channel; change may modify its header.
func (r *runningHTTPChannel) request(body string, change func(http.Header)) *httptest.ResponseRecorder {
	req := httptest.NewRequestWithContext(r.t.Context(), http.MethodPost, "/channels/slack", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	slacktest.Sign(req.Header, signingSecret, time.Now(), []byte(body))
	if change != nil {
		change(req.Header)
	}
	w := httptest.NewRecorder()
	r.channel.ServeHTTP(w, req)
	return w
}

func messageEvent(ts, text string) string {
	data, err := json.Marshal(map[string]any{"type": "event_callback", "team_id": slacktest.Team, "event_id": "Ev" + ts, "event_time": 1, "event": map[string]any{
		"type": "message", "channel": "D1", "channel_type": "im", "user": "U1", "text": text, "ts": ts,
	}})
	if err != nil {
		panic(err)
	}
	return string(data)
}

func TestOnlySignedRequestsAreAccepted(t *testing.T) {
	r := startHTTPChannel(t)
	body := messageEvent("1700000000.000001", "evil")
	for name, change := range map[string]func(http.Header){
		"no signature":               func(h http.Header) { h.Del("X-Slack-Signature") },
		"another's signature":        func(h http.Header) { slacktest.Sign(h, "another", time.Now(), []byte(body)) },
		"that of another body":       func(h http.Header) { slacktest.Sign(h, signingSecret, time.Now(), []byte(body+" ")) },
		"that of another time":       func(h http.Header) { h.Set("X-Slack-Request-Timestamp", strconv.FormatInt(time.Now().Unix()-1, 10)) },
		"repeated six minutes later": func(h http.Header) { slacktest.Sign(h, signingSecret, time.Now().Add(-6*time.Minute), []byte(body)) },
		"from six minutes from now":  func(h http.Header) { slacktest.Sign(h, signingSecret, time.Now().Add(6*time.Minute), []byte(body)) },
		"without a time":             func(h http.Header) { h.Del("X-Slack-Request-Timestamp") },
	} {
		if w := r.request(body, change); w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), signingSecret) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if w := r.request(messageEvent("1700000000.000002", "hello"), nil); w.Code != http.StatusOK {
		t.Errorf("a good one: %d %s", w.Code, w.Body)
	}
	if in := r.awaitMessage(); in.Text != "hello" {
		t.Errorf("heard %q", in.Text)
	}
	for _, body := range []string{"", "{", `{"type":""}`, `{"type":"url_verification"}`} {
		if w := r.request(body, nil); w.Code != http.StatusBadRequest {
			t.Errorf("%q: %d", body, w.Code)
		}
	}
	if w := r.request(`{"type":"event_callback","event":7}`, nil); w.Code != http.StatusOK { // a repetition would be just as unreadable
		t.Errorf("an event that cannot be read: %d", w.Code)
	}
}

func TestTheChallengeIsAnswered(t *testing.T) {
	r := startHTTPChannel(t)
	w := r.request(`{"type":"url_verification","token":"x","challenge":"abc123"}`, nil)
	if w.Code != http.StatusOK || w.Body.String() != "abc123" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestARepeatedRequestIsPublishedOnce(t *testing.T) {
	r := startHTTPChannel(t)
	for i := range 3 {
		w := r.request(messageEvent("1700000000.000001", "hello"), func(h http.Header) { h.Set("X-Slack-Retry-Num", strconv.Itoa(i)) })
		if w.Code != http.StatusOK {
			t.Errorf("attempt %d: %d", i, w.Code)
		}
	}
	r.request(messageEvent("1700000000.000002", "next"), nil)
	if a, b := r.awaitMessage(), r.awaitMessage(); a.Text != "hello" || b.Text != "next" {
		t.Errorf("heard %q and %q", a.Text, b.Text)
	}
}

func TestACommandArrivesByRequest(t *testing.T) {
	r := startHTTPChannel(t)
	r.Server.Say("C1", "U1", "just talking")
	for text, shown := range map[string]string{"stop": "", "how are you?": `{"response_type":"in_channel"}`, "": ""} {
		envelope := r.Command("C1", "U1", text)
		in := r.awaitMessage()
		if !strings.Contains("/stop how are you? /help", in.Text) || !in.Mentioned || !in.Group || in.At != address("C1") || in.From.ID != "slack:U1" || in.ID == "" {
			t.Errorf("%q is heard as %+v", text, in)
		}
		channelstest.Until(t, "the answer", func() bool { return r.Acked(envelope) })
		if got := r.Server.Shown(envelope); got != shown {
			t.Errorf("%q has Slack show %s, want %s", text, got, shown)
		}
	}
}

// If a message can't be published in time, the request gets a 503. The message is still published before newer
// ones.
func TestARequestNotPublishedInTimeGets503(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := slack.New(slack.Config{Name: "slack", BotToken: botToken, SigningSecret: signingSecret, HTTP: &http.Client{Transport: authTestOnly{}}})
		if err != nil {
			t.Fatal(err)
		}
		r := &runningHTTPChannel{t: t, channel: c}
		if w := r.request(messageEvent("1700000000.000001", "early"), nil); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
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
		if w := r.request(messageEvent("1700000000.000002", "one"), nil); w.Code != http.StatusServiceUnavailable || time.Since(began) >= 3*time.Second {
			t.Errorf("the bus is away: %d after %v", w.Code, time.Since(began))
		}
		broken.Store(false)
		for i, text := range []string{"one", "two"} {
			again := func(h http.Header) { h.Set("X-Slack-Retry-Num", strconv.Itoa(1-i)) }
			if w := r.request(messageEvent(fmt.Sprint("1700000000.00000", 2+i), text), again); w.Code != http.StatusOK {
				t.Errorf("%s: %d", text, w.Code)
			}
		}
		cancel()
		if err := <-ended; err != nil || fmt.Sprint(heard) != "[one two]" {
			t.Errorf("heard %v, %v", heard, err)
		}
	})
}

// authTestOnly is a transport that answers auth.test and fails every other call.
type authTestOnly struct{}

func (authTestOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	body := `{"ok":true,"team_id":"T1","user_id":"U0","bot_id":"B0","user":"parley"}`
	if strings.HasSuffix(r.URL.Path, "users.info") {
		body = `{"ok":true,"user":{"id":"U1","team_id":"T1"}}`
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader([]byte(body))), Request: r}, nil
}

// Two messages that arrive in the wrong order within a moment are published in the order in which they were
// written.
func TestRequestsInTheWrongOrderArePublishedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := slack.New(slack.Config{Name: "slack", BotToken: botToken, SigningSecret: signingSecret, HTTP: &http.Client{Transport: authTestOnly{}}})
		if err != nil {
			t.Fatal(err)
		}
		r := &runningHTTPChannel{t: t, channel: c}
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
				if w := r.request(messageEvent(fmt.Sprint("1700000000.00000", 2-i), text), nil); w.Code != http.StatusOK {
					t.Errorf("%s: %d", text, w.Code)
				}
			}()
			time.Sleep(5 * time.Millisecond) // in the fake time of the synctest bubble
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

// Messages are read from history after Slack's last attempt to deliver an event, and after Slack reports that
// it has dropped events beyond its rate limit.
func TestMessagesLostByRequestsAreReadFromHistory(t *testing.T) {
	for name, body := range map[string]string{
		"the last attempt":       messageEvent("1700000000.000001", "late"),
		"more than Slack brings": `{"type":"app_rate_limited","team_id":"T0TEAM","minute_rate_limited":1}`,
	} {
		r := startHTTPChannel(t)
		channelstest.Until(t, "Receive", func() bool { return r.Server.Calls("auth.test") > 0 })
		r.PauseRequests(true)
		r.Server.Say("D7", "U7", "lost")
		r.DropUnacked() // Slack stops trying to deliver it
		w := r.request(body, func(h http.Header) {
			h.Set("X-Slack-Retry-Num", "3")
			h.Set("X-Slack-Retry-Reason", "http_timeout")
		})
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d", name, w.Code)
		}
		for in := r.awaitMessage(); in.Text != "lost"; in = r.awaitMessage() {
			if in.Text != "late" {
				t.Errorf("%s: heard %q", name, in.Text)
			}
		}
	}
}

// If no process was running for longer than Slack repeats requests, a new process reads the missed messages
// from history. After a shorter time, Slack delivers them itself.
func TestAStartReadsUndeliveredMessagesFromHistory(t *testing.T) {
	for _, away := range []time.Duration{10 * time.Minute, 10 * time.Second} {
		p := newHTTPPlatform(t)
		p.PauseRequests(true)
		p.Server.Say("D7", "U7", "lost")
		p.DropUnacked()
		was := time.Now().Add(-away)
		if err := p.book.SetCursor(t.Context(), bus.Address{Channel: "slack"}, fmt.Sprintf("%d.000000", was.Unix())); err != nil {
			t.Fatal(err)
		}
		r := startHTTPChannelOn(t, p)
		if away > time.Minute {
			if in := r.awaitMessage(); in.Text != "lost" {
				t.Errorf("heard %q", in.Text)
			}
			continue
		}
		r.request(messageEvent("1700000000.000001", "fresh"), nil)
		if in := r.awaitMessage(); in.Text != "fresh" || r.Server.Calls("users.conversations") != 0 {
			t.Errorf("heard %q, after %d looks at all chats", in.Text, r.Server.Calls("users.conversations"))
		}
	}
}
