// Package slack is the channel to one Slack app in one workspace.
//
// Sending goes through slack-go. Each message carries its part's key as
// metadata, by which a part whose sending was cut off is found again in history.
// Receiving is Socket Mode over connections of our own: an event is acknowledged
// on the socket that brought it, after it is published, so that Slack repeats
// what a crash interrupts; what was said while nobody was connected is read from
// history. Messages of one chat are handed on one after another, by their ids
// each once, however often and on whichever socket they come.
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
	"strings"
	"sync/atomic"
	"time"

	slackgo "github.com/slack-go/slack"

	"parley/channels"
	"parley/channels/markup"
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

// callTimeout bounds every call but uploads.
const callTimeout = 30 * time.Second

// Config says which app to use and how to reach it.
type Config struct {
	Name      string // the channel's configured name
	BotToken  string // xoxb-…
	AppToken  string // xapp-…; to receive
	APIURL    string // another Web API root; "" is DefaultAPIURL
	RateLimit string // PlatformPace or NoPace; "" is PlatformPace
	Log       *slog.Logger
	HTTP      *http.Client // nil: one of our own
	// Joins and Cursors are what must outlive the process. Without the first
	// each message needs a mention; without the second nothing is known of what
	// was said before the start.
	Joins   Joins
	Cursors Cursors
}

// A Channel is one Slack app in one workspace. It is a channels.Channel, an
// Editor, a FileSender, a Reconciler, a Memberer, a Prefixer, a Reacter and a Whisperer.
type Channel struct {
	name    string
	api     *slackgo.Client
	app     bool // there is an app token
	paced   bool
	joins   Joins
	cursors Cursors
	people  *people
	direct  *cache[string] // a user's chat with the bot
	contact channels.Reachability
	account atomic.Pointer[Account]
	pulse   pulse
	room    int // for messages that wait to be published
	log     *slog.Logger
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
	_ channels.Whisperer         = (*Channel)(nil)
)

// New makes a channel. It talks to nobody yet.
func New(c Config) (*Channel, error) {
	if c.Name == "" {
		return nil, errors.New("slack: the channel has no name")
	}
	if wrong := c.wrong(); wrong != nil {
		return nil, wrong
	}
	root := DefaultAPIURL
	if c.APIURL != "" {
		root = strings.TrimRight(c.APIURL, "/") + "/"
	}
	ch := &Channel{
		name: c.Name, app: c.AppToken != "", paced: c.RateLimit != NoPace,
		joins: c.Joins, cursors: c.Cursors, direct: newCache[string](24 * time.Hour), pulse: usualPulse(), room: maxWaiting, log: c.Log,
	}
	if ch.log == nil {
		ch.log = slog.New(slog.DiscardHandler)
	}
	ch.log = ch.log.With(slog.String("channel", c.Name))
	if ch.joins == nil {
		ch.joins = forgetful{}
	}
	if ch.cursors == nil {
		ch.cursors = forgetful{}
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
	ch.people = newPeople(ch)
	return ch, nil
}

// A SettingError says what is wrong with a setting, and shows nothing of a token.
type SettingError struct {
	Channel string
	Key     string // app_token, bot_token, …
	Wrong   string
}

// Error names the setting and what is wrong.
func (e *SettingError) Error() string {
	return fmt.Sprintf("slack: %s of %s: %s", e.Key, e.Channel, e.Wrong)
}

// wrong is what is wrong with the settings; nil is nothing.
func (c Config) wrong() error {
	if fault := badToken(c.BotToken, "xoxb-", "Bot User OAuth Token"); fault != "" {
		return &SettingError{c.Name, "bot_token", fault}
	}
	if c.AppToken != "" {
		if fault := badToken(c.AppToken, "xapp-", "App-Level Token"); fault != "" {
			return &SettingError{c.Name, appToken, fault}
		}
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
	l := channels.Limits{Dialect: markup.SlackMrkdwn, Length: messageLength, EditBytes: editBytes, DraftEvery: draftEvery}
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
	a := Account{Team: r.TeamID, TeamName: r.Team, User: r.UserID, Bot: r.BotID, Username: r.User, Lacks: c.lacks(r.Header)}
	c.account.Store(&a)
	return a, nil
}

// Connected tells whether Slack was reached when it was last tried: to send, or
// to open a socket.
func (c *Channel) Connected() bool { return c.contact.Connected() }

// identity is who the bot is, asked for if it is not known yet.
func (c *Channel) identity(ctx context.Context) (Account, error) {
	if a := c.account.Load(); a != nil {
		return *a, nil
	}
	return c.Check(ctx)
}
