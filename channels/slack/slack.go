// Package slack is the channel to one Slack app in one workspace.
//
// Messages are sent through slack-go. Each carries its part's key as metadata, by which
// FindSent finds in history a part whose sending was cut off.
//
// Events are received in Socket Mode over two connections of our own, or, with a signing
// secret, as requests that Slack makes (package events). An event is acknowledged where it
// came from, and only after it is published, so Slack repeats an event that a crash
// interrupts. Messages that Slack could deliver nowhere are read from history. The messages
// of one chat are published one after another and each once, by their ids, whichever socket
// delivers them and however often.
//
// The files, in reading order:
//
//   - slack.go: the Channel, its settings, scopes and account
//   - wire.go: HTTP calls, what their errors mean, waits between them
//   - people.go: the users of the workspace, remembered for a while
//   - send.go: sending, editing, reacting, and the address of a reply; growing answers are
//     shown by channels/slack/stream, and the app's home and panes by
//     channels/slack/assistant
//   - blocks.go: what a message shows beside its text: Markdown as Slack renders it, and
//     buttons
//   - message.go, translate.go: a Slack message, and its translation into what the agent gets
//   - history.go: reading messages back, and finding a part that was sent
//   - receive.go: a run of Receive, which is made of the files below, and requests
//   - socket.go: the connections to Slack
//   - lanes.go, publish.go: the order of each chat; publishing, and retrying it; buttons,
//     commands, shortcuts and reactions, which channels/slack/interaction reads
//   - outages.go: until when Slack was heard, and so which messages may be missing
//   - collect.go, catchup.go: reading missed messages, and publishing them
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
	PlatformPace = "platform" // keeps to the rate limits that Slack sets for apps; the default
	NoPace       = "none"     // sends without rate limits, for a server of one's own
)

const (
	// messageLength is the longest message that Slack recommends, in UTF-16 units.
	messageLength = 4000
	// editBytes is the longest text that chat.update accepts, in bytes as it is sent,
	// with entities such as &amp;. chat.postMessage accepts more.
	editBytes = 4000
)

// Config says which app to use and how to reach it.
type Config struct {
	Name     string // the channel's configured name
	BotToken string // xoxb-…
	AppToken string // xapp-…; needed to receive over sockets
	// SigningSecret selects receiving by requests that Slack makes, in place of sockets.
	SigningSecret string
	APIURL        string // another Web API root; "" is DefaultAPIURL
	RateLimit     string // PlatformPace or NoPace; "" is PlatformPace
	Log           *slog.Logger
	HTTP          *http.Client // the client to use; with nil the Channel makes its own
	// Joins and Cursors store what must outlive the process: the threads that the bot takes part
	// in, and how far Slack was read. Without Joins each message needs a mention; without Cursors
	// the bot does not read what was said before the start.
	Joins   Joins
	Cursors Cursors
	// Mention says in which channels a message must mention the bot to be meant for it.
	Mention channels.MentionIn
}

// A Channel is one Slack app in one workspace. It also has the optional abilities of channels that
// edit, send files, find sent parts, know members, have a command prefix, react, show typing, have
// places that people open, read threads, whisper and show buttons.
type Channel struct {
	name          string
	api           *slackgo.Client
	files         *files.Fetcher
	hasAppToken   bool // whether sockets can be opened
	signingSecret string
	deliveries    chan events.Delivery // what Slack's requests deliver
	paced         bool
	joins         Joins
	cursors       Cursors
	mention       channels.MentionIn
	people        *people
	directChats   *cache[string]        // by user: their chat with the bot
	reachability  channels.Reachability // whether the last call reached Slack
	markdown      markdownBlocks
	surfaces      *assistant.Surfaces
	streams       *stream.Streams
	lastSpeakers  *cache[string] // by thread: the user who spoke there last
	account       atomic.Pointer[Account]
	timing        timing
	maxQueued     int // how many messages may wait to be published
	log           *slog.Logger
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

// appToken is the name of the setting with the token for sockets.
const appToken = "app_token"

// A timing has the intervals and time limits of Receive, which tests shorten.
type timing struct {
	ping time.Duration // how often a socket is pinged
	// silence is how long a socket may deliver neither a ping nor an event before it is taken for
	// dead.
	silence time.Duration
	save    time.Duration // how often the cursor is saved
	// Reading a chat's history is tried for as long as patience; if it still fails, the
	// chat is put off for the time retryAfter.
	patience   time.Duration
	retryAfter time.Duration
}

// defaultTiming returns the timing of every Channel outside of tests.
func defaultTiming() timing {
	return timing{ping: 10 * time.Second, silence: 30 * time.Second, save: 5 * time.Second, patience: time.Minute, retryAfter: time.Minute}
}

// maxWaiting bounds the messages that wait to be published. An event beyond it is not
// acknowledged: Slack delivers it again, or it is read from history.
const maxWaiting = 20000

// New makes a Channel and checks its settings. It makes no call yet.
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
		name: c.Name, hasAppToken: c.AppToken != "", signingSecret: c.SigningSecret, deliveries: make(chan events.Delivery), paced: c.RateLimit != NoPace,
		joins: c.Joins, cursors: c.Cursors, mention: c.Mention, directChats: newCache[string](24 * time.Hour), timing: defaultTiming(), maxQueued: maxWaiting, log: c.Log,
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
		slackgo.OptionLog(log.New(io.Discard, "", 0)), // every error that matters is returned too
	)
	var err error
	if ch.files, err = files.New(root, c.BotToken, client); err != nil {
		return nil, &SettingError{c.Name, "api_url", err.Error()}
	}
	ch.surfaces = assistant.New(ch.api, callRepeatable)
	ch.streams, ch.lastSpeakers = stream.New(ch.api, callOnce), newCache[string](24*time.Hour)
	ch.people = newPeople(ch.api, ch.log, func(ctx context.Context) (string, error) {
		me, err := ch.identity(ctx)
		return me.Team, err
	})
	return ch, nil
}

// A SettingError says what is wrong with a setting, without showing any token.
type SettingError struct {
	Channel string
	Key     string // app_token, bot_token, …
	Problem string // what is wrong with its value, in words for people
}

// Error names the setting and the problem.
func (e *SettingError) Error() string {
	return fmt.Sprintf("slack: %s of %s: %s", e.Key, e.Channel, e.Problem)
}

// check returns a *SettingError for the first setting that is wrong; nil if all are right.
func (c Config) check() error {
	if fault := tokenProblem(c.BotToken, "xoxb-", "Bot User OAuth Token"); fault != "" {
		return &SettingError{c.Name, "bot_token", fault}
	}
	if c.AppToken != "" {
		if fault := tokenProblem(c.AppToken, "xapp-", "App-Level Token"); fault != "" {
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

// tokenProblem says what is wrong with a token, without showing any of it; "" means that
// the token is well formed.
func tokenProblem(token, prefix, called string) string {
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

// Limits returns the dialect, the lengths and the rate limits that Slack demands.
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
	// editEvery is the time between two edits. It keeps within the 50 calls of
	// chat.update a minute that Slack allows an app in the whole workspace, and leaves
	// some of them to final answers.
	editEvery = 1300 * time.Millisecond
)

// An Account is the app's bot as Slack describes it.
type Account struct {
	Team     string // the workspace's id
	TeamName string
	User     string // the id of the bot's user
	Bot      string // the bot's other id, in the field bot_id of its messages
	Username string // without @
	// Lacks lists the scopes that the app needs and that Slack says it does not have.
	Lacks []string
}

// Check asks Slack who the bot is. A refused token gives a *channels.SendError of kind
// Stop.
func (c *Channel) Check(ctx context.Context) (Account, error) {
	ctx, t, done := startCall(ctx)
	defer done()
	r, err := c.api.AuthTestContext(ctx)
	if err != nil {
		err := asRepeatable(sendError(err, t))
		c.reachability.Note(err)
		return Account{}, err
	}
	c.reachability.Note(nil)
	a := Account{Team: r.TeamID, TeamName: r.Team, User: r.UserID, Bot: r.BotID, Username: r.User, Lacks: missingScopes(r.Header, c.receives())}
	c.account.Store(&a)
	return a, nil
}

// receives reports whether the channel can receive messages: over sockets or by requests.
func (c *Channel) receives() bool { return c.hasAppToken || c.ReceivesHTTP() }

// Connected reports whether the last attempt to send or to open a socket reached Slack.
func (c *Channel) Connected() bool { return c.reachability.Connected() }

// identity returns the bot's account, and asks Slack for it if it is not known yet.
func (c *Channel) identity(ctx context.Context) (Account, error) {
	if a := c.account.Load(); a != nil {
		return *a, nil
	}
	return c.Check(ctx)
}

// Fetch implements channels.Fetcher: it opens a file that came with a message.
func (c *Channel) Fetch(ctx context.Context, _ bus.Address, a bus.Attachment, most int64) (io.ReadCloser, error) {
	return c.files.Fetch(ctx, a, most)
}

// Member reports whether a person is a full member of the workspace, and neither a guest
// nor a bot.
func (c *Channel) Member(ctx context.Context, who string) (bool, error) {
	_, user, found := strings.Cut(who, ":")
	if !found {
		user = who
	}
	one, err := c.people.lookUp(ctx, user)
	return one.member, err
}

// TimeZone returns the time zone that a person has set in Slack.
func (c *Channel) TimeZone(ctx context.Context, who string) (string, error) {
	_, user, _ := strings.Cut(who, ":")
	one, err := c.people.lookUp(ctx, user)
	return one.timeZone, err
}

// Joins remembers in which threads the bot takes part.
type Joins interface {
	// Joined reports whether a person whom the gate admits has spoken to the bot in
	// that thread, and since when: messages there need no mention from then on.
	Joined(ctx context.Context, at bus.Address) (since time.Time, joined bool, err error)
	// Threads lists the threads of a chat that the bot has joined, in any order.
	Threads(ctx context.Context, chat bus.Address) ([]bus.Address, error)
}

// Cursors remembers how far a channel was read, so that a restart can read what came since.
type Cursors interface {
	// Cursor returns the cursor that SetCursor saved last for that address; "" if it
	// saved none.
	Cursor(ctx context.Context, at bus.Address) (string, error)
	SetCursor(ctx context.Context, at bus.Address, cursor string) error
}

// noBook takes the place of Joins and Cursors where a Channel has none: it remembers nothing.
type noBook struct{}

func (noBook) Joined(context.Context, bus.Address) (time.Time, bool, error) {
	return time.Time{}, false, nil
}
func (noBook) Threads(context.Context, bus.Address) ([]bus.Address, error) { return nil, nil }
func (noBook) Cursor(context.Context, bus.Address) (string, error)         { return "", nil }
func (noBook) SetCursor(context.Context, bus.Address, string) error        { return nil }

// SendScope is the scope of the bot's token that sending texts needs.
const SendScope = "chat:write"

// Scopes returns the scopes of the bot's token that receiving and answering need.
func Scopes() []string {
	return []string{
		"app_mentions:read", "assistant:write", "channels:history", "channels:read", SendScope, "commands", files.Scope, "files:write", "groups:history", "groups:read",
		"im:history", "im:read", "im:write", "mpim:history", "mpim:read", "reactions:read", "reactions:write", "users:read",
	}
}

// missingScopes returns the scopes that the app needs and that the header of Slack's
// answer does not name. A header without any scope proves nothing, because a proxy may
// have dropped it; then the result is nil.
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
