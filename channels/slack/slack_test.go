package slack_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/slack"
	"parley/channels/slack/slacktest"
	"parley/tools/testlog"
)

const (
	secret   = "SECRETsecretSECRET"
	botToken = "xoxb-" + secret
	appToken = "xapp-" + secret
)

// testTimeout bounds every wait that is expected to end.
const testTimeout = 2 * time.Minute

// A rig is a channel, a fake Slack for it, and what the channel has stored and logged.
type rig struct {
	*slack.Channel
	server *slacktest.Server
	url    string
	book   *book
	logs   *testlog.Buffer
	// mention is the rule for mentions of the channels that are made from now on.
	mention channels.MentionIn
}

// newRig starts a fake Slack and makes a channel for it. When the test ends, it checks that no token was
// logged.
func newRig(t testing.TB) *rig {
	t.Helper()
	server := slacktest.New(botToken, appToken)
	url, err := server.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() }) // the test may have closed it already
	r := &rig{server: server, url: url, book: newBook(), logs: new(testlog.Buffer)}
	r.Channel = r.newChannel(t)
	t.Cleanup(func() {
		if strings.Contains(r.logs.String(), secret) {
			t.Error("the log holds a token")
		}
	})
	return r
}

// newChannel makes another channel for the same server and book, as after a restart.
func (r *rig) newChannel(t testing.TB) *slack.Channel {
	t.Helper()
	c, err := slack.New(slack.Config{
		Name: "slack", BotToken: botToken, AppToken: appToken, APIURL: r.url,
		RateLimit: slack.NoPace, JoinedThreads: r.book, Cursors: r.book, Mention: r.mention,
		Log: slog.New(slog.NewTextHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func address(chat string) bus.Address { return bus.Address{Channel: "slack", Chat: chat} }

func textPart(text string) channels.Part { return channels.Part{Key: "k/0", Text: text, Plain: text} }

// requireSendError returns err as a *channels.SendError, and checks that it contains no secrets.
func requireSendError(t testing.TB, err error) *channels.SendError {
	t.Helper()
	e, ok := errors.AsType[*channels.SendError](err)
	if !ok {
		t.Fatalf("got %v, want a *channels.SendError", err)
	}
	if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "somebody") {
		t.Errorf("the error holds a token or a text: %v", err)
	}
	return e
}

// A book is a JoinedThreads and Cursors in memory.
type book struct {
	mu      sync.Mutex
	cursors map[bus.Address]string
	joined  map[bus.Address]time.Time
	fails   bool
}

func newBook() *book {
	return &book{cursors: map[bus.Address]string{}, joined: map[bus.Address]time.Time{}}
}

var errBook = errors.New("the book is away")

func (b *book) TalkedSince(_ context.Context, at bus.Address) (time.Time, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails {
		return time.Time{}, false, errBook
	}
	since, joined := b.joined[at]
	return since, joined, nil
}

func (b *book) Threads(_ context.Context, chat bus.Address) ([]bus.Address, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []bus.Address
	for at := range b.joined {
		if at.Chat == chat.Chat && at.Thread != "" {
			all = append(all, at)
		}
	}
	return all, nil
}

func (b *book) Cursor(_ context.Context, at bus.Address) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cursors[at], nil
}

func (b *book) SetCursor(_ context.Context, at bus.Address, cursor string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cursors[at] = cursor
	return nil
}

func (b *book) join(at bus.Address, since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.joined[at]; !known {
		b.joined[at] = since
	}
}

func TestWrongTokensAreRefusedButNotShown(t *testing.T) {
	for _, c := range []struct {
		config     slack.Config
		names, key string
	}{
		{slack.Config{}, "empty", "bot_token"},
		{slack.Config{BotToken: appToken}, "xoxb-", "bot_token"},
		{slack.Config{BotToken: "xoxp-" + secret}, "xoxb-", "bot_token"},
		{slack.Config{BotToken: botToken, AppToken: botToken}, "xapp-", "app_token"},
		{slack.Config{BotToken: botToken + "\n"}, "characters", "bot_token"},
		{slack.Config{BotToken: botToken, RateLimit: "fast"}, "rate_limit", "rate_limit"},
		{slack.Config{BotToken: botToken, APIURL: "slack.com"}, "api_url", "api_url"},
	} {
		c.config.Name = "slack"
		_, err := slack.New(c.config)
		if err == nil || !strings.Contains(err.Error(), c.names) || strings.Contains(err.Error(), secret) {
			t.Errorf("got %v, want an error about %q", err, c.names)
		}
		setting, ok := errors.AsType[*slack.SettingError](err)
		if !ok || setting.Key != c.key {
			t.Errorf("%v: it names the setting %+v, want %s", err, setting, c.key)
		}
	}
}

func TestCheckReturnsTheBotsAccount(t *testing.T) {
	r := newRig(t)
	a, err := r.Check(t.Context())
	if err != nil || a.Team != slacktest.Team || a.User != slacktest.Bot || a.Username != "parley" {
		t.Errorf("Check = %+v, %v", a, err)
	}
	r.server.Fail("auth.test", "", 1, slacktest.Refuse("account_inactive"))
	_, err = r.Check(t.Context())
	if e := requireSendError(t, err); e.Fault != channels.Stop {
		t.Errorf("a refused token gives %v, want stop", e)
	}
}

func TestMissingScopesAreNamed(t *testing.T) {
	r := newRig(t)
	if a, err := r.Check(t.Context()); err != nil || a.MissingScopes != nil {
		t.Errorf("Check = %+v, %v where nothing is said of scopes", a, err)
	}
	r.server.SetScopes(slices.DeleteFunc(slack.Scopes(), func(s string) bool { return s == "users:read" || s == "im:read" })...)
	if a, err := r.Check(t.Context()); err != nil || strings.Join(a.MissingScopes, " ") != "im:read users:read" {
		t.Errorf("Check = %+v, %v", a, err)
	}
	// Without the scope, nobody can tell whether a person is a member, so the message waits.
	m := newMessageRecorder(r)
	startConnected(t, r, func(ctx context.Context, in bus.Inbound) error {
		member, err := r.IsMember(ctx, in.From.ID)
		if err != nil || !member {
			return err
		}
		return m.publish(ctx, in)
	})
	r.server.Say("D1", "U1", "hello")
	waitUntil(t, "a word about it", func() bool { return strings.Contains(r.logs.String(), "lacks the scope users:read") })
	if !strings.Contains(r.logs.String(), `scopes="im:read users:read"`) {
		t.Error("the missing scopes are not named")
	}
	if r.server.Unacked() != 1 {
		t.Error("the message is neither published nor kept back")
	}
	r.server.SetScopes(slack.Scopes()...)
	m.wait(t, 1)
	only, err := slack.New(slack.Config{Name: "slack", BotToken: botToken, APIURL: r.url})
	if err != nil {
		t.Fatal(err)
	}
	r.server.SetScopes("chat:write")
	if a, err := only.Check(t.Context()); err != nil || len(a.MissingScopes) > 0 {
		t.Errorf("Check = %+v, %v of one that only sends", a, err)
	}
}

func TestRateLimitSettings(t *testing.T) {
	c, err := slack.New(slack.Config{Name: "slack", BotToken: botToken})
	if err != nil {
		t.Fatal(err)
	}
	if l := c.Limits(); l.Length != 4000 || l.Chat.Every != time.Second || l.Account.Every == 0 {
		t.Errorf("Limits = %+v", l)
	}
	if l := newRig(t).Limits(); l.Chat != (channels.Pace{}) || l.Account != (channels.Pace{}) {
		t.Errorf("with rate_limit none: %+v", l)
	}
}

func TestMembers(t *testing.T) {
	r := newRig(t)
	r.server.AddUser(slacktest.User{ID: "UGUEST", Guest: true})
	r.server.AddUser(slacktest.User{ID: "UELSEWHERE", Stranger: true})
	r.server.AddUser(slacktest.User{ID: "UBOT", Bot: true})
	for user, want := range map[string]bool{"U1": true, "UGUEST": false, "UELSEWHERE": false, "UBOT": false, "USLACKBOT": false} {
		if got, err := r.IsMember(t.Context(), "slack:"+user); err != nil || got != want {
			t.Errorf("Member(%s) = %v, %v", user, got, err)
		}
	}
	if n := r.server.Calls("users.info"); n != 5 {
		t.Errorf("%d calls", n)
	}
	if _, err := r.IsMember(t.Context(), "slack:U1"); err != nil || r.server.Calls("users.info") != 5 {
		t.Error("what is known is asked for again")
	}
	r.server.Fail("users.info", "", 1, slacktest.Refuse("user_not_found"))
	if got, err := r.IsMember(t.Context(), "slack:U9"); err != nil || got {
		t.Errorf("nobody is a member: %v, %v", got, err)
	}
	r.server.Fail("users.info", "", 1, slacktest.Status(500, "somebody"))
	_, err := r.IsMember(t.Context(), "slack:U2")
	if e := requireSendError(t, err); e.Fault != channels.Retry {
		t.Errorf("got %v, want retry", e)
	}
}

func TestTimeZones(t *testing.T) {
	r := newRig(t)
	r.server.AddUser(slacktest.User{ID: "U7", TZ: "Asia/Tokyo"})
	zoner, ok := channels.AsTimeZoner(r.Channel)
	if !ok {
		t.Fatal("Slack knows time zones")
	}
	for user, want := range map[string]string{"U7": "Asia/Tokyo", "U1": ""} {
		if got, err := zoner.TimeZone(t.Context(), "slack:"+user); err != nil || got != want {
			t.Errorf("TimeZone(%s) = %q, %v", user, got, err)
		}
	}
}

// waitUntil waits, by polling, until a condition holds.
func waitUntil(t testing.TB, what string, holds func() bool) {
	t.Helper()
	channelstest.Until(t, what, holds)
}
