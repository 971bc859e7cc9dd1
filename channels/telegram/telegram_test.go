package telegram_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/telegram"
	"parley/channels/telegram/telegramtest"
	"parley/tools/testlog"
)

const (
	secret  = "AAsecretSECRETsecretSECRETsecret_-0"
	token   = "4242:" + secret
	botName = "parley_test_bot"
)

// testTimeout limits how long a test waits for anything.
const testTimeout = 2 * time.Minute

// A rig is a channel, a fake Bot API server for it, and what the channel has logged.
type rig struct {
	*telegram.Channel
	server *telegramtest.Server
	url    string
	logs   *testlog.Buffer
	// mention is the rule for mentions of the channels that are made from now on.
	mention channels.MentionIn
}

// newRig starts a fake server and makes a channel for it. When the test ends, it checks that the token was not
// logged.
func newRig(t testing.TB) *rig {
	t.Helper()
	server := telegramtest.New(token, botName)
	url, err := server.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() }) // the test may have closed it already
	r := &rig{server: server, url: url, logs: new(testlog.Buffer)}
	r.Channel = r.newChannel(t, token)
	t.Cleanup(func() {
		if strings.Contains(r.logs.String(), secret) {
			t.Error("the log holds the token")
		}
	})
	return r
}

func (r *rig) newChannel(t testing.TB, token string) *telegram.Channel {
	t.Helper()
	c, err := telegram.New(telegram.Config{
		Name: "tg", Token: token, APIURL: r.url + "/", Mention: r.mention,
		Log: slog.New(slog.NewTextHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// startReceiving runs Receive in the background. The function that it returns stops Receive and returns its
// error.
func startReceiving(t testing.TB, c *telegram.Channel, publish func(context.Context, bus.Inbound) error) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Receive(ctx, publish) }()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() {
			cancel()
			select {
			case err = <-done:
			case <-time.After(testTimeout):
				t.Error("Receive does not end with its context")
			}
		})
		return err
	}
	t.Cleanup(func() { _ = stop() }) // tests that need the error have called stop before
	return stop
}

// A messageRecorder is where tests publish messages.
type messageRecorder struct {
	mu       sync.Mutex
	messages []bus.Inbound
	wake     chan struct{}
}

func newMessageRecorder() *messageRecorder { return &messageRecorder{wake: make(chan struct{})} }

func (m *messageRecorder) publish(_ context.Context, in bus.Inbound) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.messages = append(m.messages, in)
	close(m.wake)
	m.wake = make(chan struct{})
	return nil
}

// wait waits for at least n messages.
func (m *messageRecorder) wait(t testing.TB, n int) []bus.Inbound {
	t.Helper()
	deadline := time.After(testTimeout)
	for {
		m.mu.Lock()
		said, wake := append([]bus.Inbound(nil), m.messages...), m.wake
		m.mu.Unlock()
		if len(said) >= n {
			return said
		}
		select {
		case <-wake:
		case <-deadline:
			t.Fatalf("%d of %d messages arrived", len(said), n)
		}
	}
}

// waitUntil waits, by polling, until a condition holds.
func waitUntil(t testing.TB, what string, holds func() bool) {
	t.Helper()
	channelstest.Until(t, what, holds)
}

// requireSendError returns err as a *channels.SendError, and checks that it contains no secrets.
func requireSendError(t testing.TB, err error) *channels.SendError {
	t.Helper()
	e, ok := errors.AsType[*channels.SendError](err)
	if !ok {
		t.Fatalf("got %v, want a *channels.SendError", err)
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("the error holds the token: %v", err)
	}
	return e
}

func TestWrongTokensAreRefusedButNotShown(t *testing.T) {
	for _, c := range []struct{ token, names string }{
		{"", "empty"},
		{secret, "no colon"},
		{"abc:" + secret, "number"},
		{"-5:" + secret, "number"},
		{"42:", "nothing comes after"},
		{"42:" + secret + " ", "characters"},
		{"42:" + secret + "/../x", "characters"},
	} {
		_, err := telegram.New(telegram.Config{Name: "tg", Token: c.token})
		if err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("token %q: got %v, want an error about %q", c.token, err, c.names)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows the token: %v", err)
		}
	}
	if _, err := telegram.New(telegram.Config{Name: "tg", Token: token, RateLimit: "fast"}); err == nil {
		t.Error("an unknown rate_limit is accepted")
	}
}

func TestCheckReturnsTheBotsAccount(t *testing.T) {
	r := newRig(t)
	if got := r.Invite("CODE"); got != "" {
		t.Errorf("invited to %q before the name was known", got)
	}
	a, err := r.Check(t.Context())
	if err != nil || a.ID != 4242 || a.Username != botName {
		t.Errorf("Check = %+v, %v", a, err)
	}
	if got := r.Invite("CODE"); got != "https://t.me/parley_test_bot?start=CODE" {
		t.Errorf("Invite = %q", got)
	}
	_, err = r.newChannel(t, "4242:wrong").Check(t.Context())
	if e := requireSendError(t, err); e.Fault != channels.Stop {
		t.Errorf("a refused token gives %v, want stop", e)
	}
}

func TestInvitationsWorkOnceReceiveKnowsTheName(t *testing.T) {
	r := newRig(t)
	r.server.Fail(telegramtest.Fault{Method: "getMe", Times: 1, Status: 500})
	startReceiving(t, r.Channel, newMessageRecorder().publish)
	waitUntil(t, "an invitation", func() bool { return r.Invite("x") != "" })
}

func TestRateLimitSettings(t *testing.T) {
	r := newRig(t)
	l := r.Limits()
	if l.Length != 4096 || l.Chat.Every != time.Second || l.Group.Every != 3*time.Second || l.Account.Burst != 30 {
		t.Errorf("Limits = %+v", l)
	}
	if !l.IsGroup("-100123") || l.IsGroup("123") {
		t.Error("groups are not told from people")
	}
	free, err := telegram.New(telegram.Config{Name: "tg", Token: token, RateLimit: telegram.NoPace})
	if err != nil {
		t.Fatal(err)
	}
	if l := free.Limits(); l.Chat != (channels.Pace{}) || l.Group != (channels.Pace{}) || l.Account != (channels.Pace{}) {
		t.Errorf("with rate_limit none: %+v", l)
	}
}
