// Package slack is the channel to one Slack app in one workspace.
//
// Sending goes through slack-go. Each message carries its part's key as metadata.
// By that key FindSent finds a part in history whose sending was cut off.
//
// Receiving is Socket Mode over two connections of our own, or with a signing secret
// the requests that Slack makes (package events). An event is acknowledged where it
// came from, and only after it is published, so Slack repeats what a crash interrupts.
// What was said while Slack reached nobody is read from history. The messages of one chat are published one after another and
// each once, by their ids, whichever socket brings them and however often.
//
// The files, in reading order:
//
//   - slack.go: the Channel, its settings, scopes and account
//   - wire.go: HTTP calls, what their errors mean, waits between them
//   - people.go: the users of the workspace, remembered for a while
//   - send.go: sending, editing, reacting, and where a reply goes; answers that grow, which
//     channels/slack/stream shows, and what people are shown beside messages, which
//     channels/slack/assistant does
//   - blocks.go: what a message shows beside its text: Markdown as Slack renders it, and
//     buttons
//   - message.go, translate.go: a Slack message, and what it says to the agent
//   - history.go: reading messages back, and finding a part that was sent
//   - receive.go: a run of Receive, which is made of the files below, and requests
//   - socket.go: the connections to Slack
//   - lanes.go, publish.go: the order of each chat; publishing, and trying again; what
//     people do otherwise than by messages, which channels/slack/interaction reads
//   - outages.go: until when Slack was heard, and so what was missed
//   - collect.go, catchup.go: reading what was missed, and publishing it
package slack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	slackgo "github.com/slack-go/slack"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/channels/slack/assistant"
	"parley/channels/slack/events"
	"parley/channels/slack/files"
	"parley/channels/slack/stream"
)

// DefaultAPIURL is Slack's own Web API.
const DefaultAPIURL = "https://slack.com/api/"

// The values of Config.RateLimit.
const (
	PlatformPace = "platform" // what Slack asks of apps; the default
	NoPace       = "none"     // for a server of one's own
)

const (
	// messageLength is what Slack advises for one message, in UTF-16 units.
	messageLength = 4000
	// editBytes is what chat.update takes, in bytes of the text as it is sent,
	// entities such as &amp; included; chat.postMessage takes more.
	editBytes = 4000
)

// Config says which app to use and how to reach it.
type Config struct {
	Name     string // the channel's configured name
	BotToken string // xoxb-…
	AppToken string // xapp-…; to receive over sockets
	// SigningSecret has Slack make requests for what people say, in place of sockets.
	SigningSecret string
	APIURL        string // another Web API root; "" is DefaultAPIURL
	RateLimit     string // PlatformPace or NoPace; "" is PlatformPace
	Log           *slog.Logger
	HTTP          *http.Client // nil: one of our own
	// Joins and Cursors are what must outlive the process. Without the first
	// each message needs a mention; without the second nothing is known of what
	// was said before the start.
	Joins   Joins
	Cursors Cursors
	// Mention is when what is said in a channel is meant for the bot.
	Mention channels.MentionIn
}

// A Channel is one Slack app in one workspace. It is a channels.Channel, an
// Editor, a FileSender, a Reconciler, a MembershipChecker, a Prefixer, a Reactor, a Typer,
// a Host, a ThreadReader, a Whisperer and a ButtonShower.
type Channel struct {
	name     string
	api      *slackgo.Client
	files    *files.Fetcher
	app      bool // there is an app token
	signing  string
	requests chan events.Delivery // of Slack's requests
	paced    bool
	joins    Joins
	cursors  Cursors
	mention  channels.MentionIn
	people   *people
	direct   *cache[string] // a user's chat with the bot
	contact  channels.Reachability
	markdown markdownBlocks
	desk     *assistant.Desk
	streams  *stream.Streams
	speakers *cache[string] // who spoke last in a thread
	account  atomic.Pointer[Account]
	pulse    timing
	room     int // for messages that wait to be published
	log      *slog.Logger
}

var (
	_ channels.Channel           = (*Channel)(nil)
	_ channels.Editor            = (*Channel)(nil)
	_ channels.FileSender        = (*Channel)(nil)
	_ channels.Reconciler        = (*Channel)(nil)
	_ channels.MembershipChecker = (*Channel)(nil)
	_ channels.Connector         = (*Channel)(nil)
	_ channels.RefusalReader     = (*Channel)(nil)
	_ channels.Prefixer          = (*Channel)(nil)
	_ channels.Reactor           = (*Channel)(nil)
	_ channels.Typer             = (*Channel)(nil)
	_ channels.Host              = (*Channel)(nil)
	_ channels.ThreadReader      = (*Channel)(nil)
	_ channels.Whisperer         = (*Channel)(nil)
	_ channels.ButtonShower      = (*Channel)(nil)
	_ channels.Historian         = (*Channel)(nil)
	_ channels.HTTPReceiver      = (*Channel)(nil)
)

// appToken is the setting with the token for sockets.
const appToken = "app_token"

// A timing says how often and for how long a Receive does what it repeats.
type timing struct {
	ping    time.Duration // how often a socket is pinged
	silence time.Duration // after how long without a ping of Slack's or an event a socket counts as dead
	save    time.Duration // how often the cursor is saved
	// A chat whose history cannot be read is tried for as long as patience, then
	// put off and tried again after again.
	patience time.Duration
	again    time.Duration
}

func usualPulse() timing {
	return timing{ping: 10 * time.Second, silence: 30 * time.Second, save: 5 * time.Second, patience: time.Minute, again: time.Minute}
}

// maxWaiting bounds the messages that wait to be published. An event beyond it is
// not acknowledged: Slack brings it again, or it is read from history.
const maxWaiting = 20000

// New makes a channel. It talks to nobody yet.
func New(c Config) (*Channel, error) {
	if c.Name == "" {
		return nil, errors.New("slack: the channel has no name")
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	root := DefaultAPIURL
	if c.APIURL != "" {
		root = strings.TrimRight(c.APIURL, "/") + "/"
	}
	ch := &Channel{
		name: c.Name, app: c.AppToken != "", signing: c.SigningSecret, requests: make(chan events.Delivery), paced: c.RateLimit != NoPace,
		joins: c.Joins, cursors: c.Cursors, mention: c.Mention, direct: newCache[string](24 * time.Hour), pulse: usualPulse(), room: maxWaiting, log: c.Log,
	}
	if ch.log == nil {
		ch.log = slog.New(slog.DiscardHandler)
	}
	ch.log = ch.log.With(slog.String("channel", c.Name))
	if ch.joins == nil {
		ch.joins = noBook{}
	}
	if ch.cursors == nil {
		ch.cursors = noBook{}
	}
	client := c.HTTP
	if client == nil {
		client = newClient()
	}
	ch.api = slackgo.New(c.BotToken,
		slackgo.OptionAppLevelToken(c.AppToken),
		slackgo.OptionAPIURL(root),
		slackgo.OptionHTTPClient(client),
		slackgo.OptionLog(log.New(io.Discard, "", 0)), // what matters is returned as well
	)
	var err error
	if ch.files, err = files.New(root, c.BotToken, client); err != nil {
		return nil, &SettingError{c.Name, "api_url", err.Error()}
	}
	ch.desk = assistant.New(ch.api, calling)
	ch.streams, ch.speakers = stream.New(ch.api, callingOnce), newCache[string](24*time.Hour)
	ch.people = newPeople(ch.api, ch.log, func(ctx context.Context) (string, error) {
		me, err := ch.identity(ctx)
		return me.Team, err
	})
	return ch, nil
}

// A SettingError says what is wrong with a setting, and shows nothing of a token.
type SettingError struct {
	Channel string
	Key     string // app_token, bot_token, …
	Problem string // what is wrong with it, for people
}

// Error names the setting and what is wrong.
func (e *SettingError) Error() string {
	return fmt.Sprintf("slack: %s of %s: %s", e.Key, e.Channel, e.Problem)
}

// check returns a *SettingError for the first setting that is wrong.
func (c Config) check() error {
	if fault := badToken(c.BotToken, "xoxb-", "Bot User OAuth Token"); fault != "" {
		return &SettingError{c.Name, "bot_token", fault}
	}
	if c.AppToken != "" {
		if fault := badToken(c.AppToken, "xapp-", "App-Level Token"); fault != "" {
			return &SettingError{c.Name, appToken, fault}
		}
	}
	if strings.ContainsFunc(c.SigningSecret, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\'' }) || strings.HasPrefix(c.SigningSecret, "x") {
		return &SettingError{c.Name, "signing_secret", "want the Signing Secret of the app, from Basic Information"}
	}
	if c.RateLimit != "" && c.RateLimit != PlatformPace && c.RateLimit != NoPace {
		return &SettingError{c.Name, "rate_limit", fmt.Sprintf("it is %q: want %q or %q", c.RateLimit, PlatformPace, NoPace)}
	}
	if c.APIURL != "" {
		if u, err := url.Parse(c.APIURL); err != nil || u.Host == "" {
			return &SettingError{c.Name, "api_url", "want an address such as " + DefaultAPIURL}
		}
	}
	return nil
}

// badToken says what is wrong with a token and shows nothing of it; "" is nothing.
func badToken(token, prefix, called string) string {
	switch {
	case token == "":
		return "it is empty"
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\'' }):
		return "it has characters that no token has, such as spaces or quotes"
	case !strings.HasPrefix(token, prefix):
		return fmt.Sprintf("want the %s, which begins with %s", called, prefix)
	}
	return ""
}

// Limits says how Slack is to be talked to.
func (c *Channel) Limits() channels.Limits {
	l := channels.Limits{Dialect: markup.SlackMrkdwn, Length: messageLength, EditBytes: editBytes, DraftEvery: draftEvery, Markdown: true, Streams: true}
	if c.paced {
		l.Chat = channels.Pace{Every: time.Second, Burst: 3}
		l.Account = channels.Pace{Every: time.Second / 20, Burst: 20}
		l.Drafts = channels.Pace{Every: editEvery, Burst: 10}
	}
	return l
}

const (
	draftEvery = 1500 * time.Millisecond
	// editEvery keeps within what Slack allows an app of chat.update: about 50 a
	// minute, in all of the workspace. An answer may need one of them.
	editEvery = 1300 * time.Millisecond
)

// An Account is the app as Slack knows it.
type Account struct {
	Team     string // the workspace's id
	TeamName string
	User     string // the bot's user
	Bot      string // the bot's other id
	Username string // without @
	// Lacks are the scopes that the app should have, as far as Slack tells.
	Lacks []string
}

// Check asks Slack who the bot is. A token that is refused gives a
// *channels.SendError of kind Stop.
func (c *Channel) Check(ctx context.Context) (Account, error) {
	ctx, t, done := begin(ctx)
	defer done()
	r, err := c.api.AuthTestContext(ctx)
	if err != nil {
		err := repeatable(sendError(err, t))
		c.contact.Note(err)
		return Account{}, err
	}
	c.contact.Note(nil)
	a := Account{Team: r.TeamID, TeamName: r.Team, User: r.UserID, Bot: r.BotID, Username: r.User, Lacks: missingScopes(r.Header, c.receives())}
	c.account.Store(&a)
	return a, nil
}

// receives reports whether the channel can hear people.
func (c *Channel) receives() bool { return c.app || c.ReceivesHTTP() }

// Connected reports whether Slack was reached when it was last tried: to send, or
// to open a socket.
func (c *Channel) Connected() bool { return c.contact.Connected() }

// identity is who the bot is, asked for if it is not known yet.
func (c *Channel) identity(ctx context.Context) (Account, error) {
	if a := c.account.Load(); a != nil {
		return *a, nil
	}
	return c.Check(ctx)
}

// Fetch opens a file that came with a message.
func (c *Channel) Fetch(ctx context.Context, _ bus.Address, a bus.Attachment, most int64) (io.ReadCloser, error) {
	return c.files.Fetch(ctx, a, most)
}

// Member reports whether a person is a full member of the workspace.
func (c *Channel) Member(ctx context.Context, who string) (bool, error) {
	_, user, found := strings.Cut(who, ":")
	if !found {
		user = who
	}
	one, err := c.people.who(ctx, user)
	return one.member, err
}

// TimeZone is the time zone that a person has set.
func (c *Channel) TimeZone(ctx context.Context, who string) (string, error) {
	_, user, _ := strings.Cut(who, ":")
	one, err := c.people.who(ctx, user)
	return one.zone, err
}

// Joins tells where the bot takes part.
type Joins interface {
	// Joined reports whether somebody admitted has spoken to the bot in that
	// thread, and since when: from then on it needs no further mention there.
	Joined(ctx context.Context, at bus.Address) (since time.Time, joined bool, err error)
	// Threads lists such threads of a chat, in any order.
	Threads(ctx context.Context, chat bus.Address) ([]bus.Address, error)
}

// Cursors remembers how far something was read.
type Cursors interface {
	// Cursor is what SetCursor was given last for that address; "" if nothing was.
	Cursor(ctx context.Context, at bus.Address) (string, error)
	SetCursor(ctx context.Context, at bus.Address, cursor string) error
}

// noBook is a Joins and a Cursors that remember nothing.
type noBook struct{}

func (noBook) Joined(context.Context, bus.Address) (time.Time, bool, error) {
	return time.Time{}, false, nil
}
func (noBook) Threads(context.Context, bus.Address) ([]bus.Address, error) { return nil, nil }
func (noBook) Cursor(context.Context, bus.Address) (string, error)         { return "", nil }
func (noBook) SetCursor(context.Context, bus.Address, string) error        { return nil }

// SendScope is the scope of the bot's token that sending a text needs.
const SendScope = "chat:write"

// Scopes are those that receiving and answering need.
func Scopes() []string {
	return []string{
		"app_mentions:read", "assistant:write", "channels:history", "channels:read", SendScope, "commands", files.Scope, "files:write", "groups:history", "groups:read",
		"im:history", "im:read", "im:write", "mpim:history", "mpim:read", "reactions:read", "reactions:write", "users:read",
	}
}

// missingScopes lists the scopes that the app needs and that Slack's answer does
// not name. An answer that names none at all says nothing: a proxy may have
// dropped the header.
func missingScopes(answer http.Header, receives bool) []string {
	granted := strings.FieldsFunc(answer.Get("X-OAuth-Scopes"), func(r rune) bool { return r == ',' || r == ' ' })
	if len(granted) == 0 {
		return nil
	}
	needed := Scopes()
	if !receives {
		needed = []string{SendScope}
	}
	return slices.DeleteFunc(needed, func(scope string) bool { return slices.Contains(granted, scope) })
}
