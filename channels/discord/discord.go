// Package discord is the channel to one Discord bot account.
//
// Requests are built by discordgo and leave through a transport of our own, which sends
// them to the configured server and notes how far each came: what certainly was not sent
// may be sent again, anything else is unknown. Each message carries a nonce made of its
// part's key, by which Discord drops a repetition within minutes.
//
// What people say comes over the gateway, through channels/discord/socket. Discord wants
// no acknowledgement and keeps nothing back for a bot that is away. So the book has a
// cursor, up to which all was published, and what was said behind it is read from
// history at the beginning of each session. The messages of one channel are published
// one after another, each once by their ids, whichever way they come.
//
// The files, in reading order:
//
//   - discord.go: the Channel, its settings and account
//   - wire.go: the transport, its errors, waits
//   - send.go: sending, editing, finding what was sent; typing and reactions
//   - buttons.go, commands.go: buttons and slash commands, and what people do with them
//   - message.go, files.go: a message, and the files that come with it
//   - directory.go, translate.go: the servers and channels that the bot knows, and what a
//     message says to the agent
//   - receive.go: a run of Receive, which is made of the files below
//   - lanes.go, publish.go: the order of each channel; publishing, and trying again
//   - position.go, catchup.go: the cursor, and when the bot was away; reading what was missed
package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

// DefaultAPIURL is Discord's own REST API.
const DefaultAPIURL = "https://discord.com/api/v9"

// The values of Config.RateLimit.
const (
	PlatformPace = "platform" // what Discord asks of bots; the default
	NoPace       = "none"     // for a server of one's own
)

// messageLength is what Discord takes in one message, in UTF-16 units.
const messageLength = 2000

// draftEvery keeps within the five edits in five seconds that Discord takes in a channel.
const draftEvery = 1500 * time.Millisecond

// callTimeout bounds every call but sends of files.
const callTimeout = 30 * time.Second

// Config says which account to use and how to reach it.
type Config struct {
	Name      string // the channel's configured name
	Token     string // the bot's, as the developer portal gives it
	APIURL    string // another server; "" is DefaultAPIURL
	RateLimit string // PlatformPace or NoPace; "" is PlatformPace
	SendsOnly bool   // nobody receives for this account
	// Mention is when what is said in a channel is meant for the bot.
	Mention channels.MentionIn
	Log     *slog.Logger
	HTTP    *http.Client // nil: one of our own
	// Book is what must outlive the process. Without one each message in a server needs
	// a mention, and nothing is known of what was said before the start.
	Book Book
}

// A Book is what a Channel must remember.
type Book interface {
	// Joined tells whether somebody admitted has spoken to the bot in that thread, and
	// since when: from then on it needs no further mention there.
	Joined(ctx context.Context, at bus.Address) (since time.Time, joined bool, err error)
	// Chats lists where the bot was spoken to.
	Chats(ctx context.Context) ([]channels.Chat, error)
	// Cursor is what SetCursor was given last for that address; "" if nothing was.
	Cursor(ctx context.Context, at bus.Address) (string, error)
	SetCursor(ctx context.Context, at bus.Address, cursor string) error
}

// noBook is a Book that remembers nothing.
type noBook struct{}

func (noBook) Joined(context.Context, bus.Address) (time.Time, bool, error) {
	return time.Time{}, false, nil
}
func (noBook) Chats(context.Context) ([]channels.Chat, error)       { return nil, nil }
func (noBook) Cursor(context.Context, bus.Address) (string, error)  { return "", nil }
func (noBook) SetCursor(context.Context, bus.Address, string) error { return nil }

// A timing says how often a Receive does what it repeats.
type timing struct {
	save  time.Duration // how often the cursor is saved
	hello time.Duration // how long the gateway may take to greet
	// answer is how long what somebody did may take to be published before Discord is
	// told to wait.
	answer  time.Duration
	overlap time.Duration // how much is read again before a gap
}

func usualPulse() timing {
	return timing{save: 5 * time.Second, hello: 20 * time.Second, answer: answerTime, overlap: overlap}
}

// maxWaiting bounds what waits to be published. What is more is read from history.
const maxWaiting = 20000

// A Channel is one Discord bot account. It is a channels.Channel, an Editor, a
// FileSender, a Fetcher, a Reconciler, a Typer, a Reactor and a ButtonShower.
type Channel struct {
	name      string
	token     string
	session   *discordgo.Session
	contact   channels.Reachability
	paced     bool
	server    *url.URL
	files     *http.Client // for what came with messages
	sendsOnly bool
	book      Book
	mention   channels.MentionIn
	marks     *regexp.Regexp
	directory *directory
	pulse     timing
	room      int // for what waits to be published
	log       *slog.Logger
}

var (
	_ channels.Channel       = (*Channel)(nil)
	_ channels.Editor        = (*Channel)(nil)
	_ channels.FileSender    = (*Channel)(nil)
	_ channels.Reconciler    = (*Channel)(nil)
	_ channels.Connector     = (*Channel)(nil)
	_ channels.RefusalReader = (*Channel)(nil)
	_ channels.Fetcher       = (*Channel)(nil)
	_ channels.Typer         = (*Channel)(nil)
	_ channels.Reactor       = (*Channel)(nil)
	_ channels.ButtonShower  = (*Channel)(nil)
	_ channels.Historian     = (*Channel)(nil)
)

// New makes a channel. It talks to nobody yet.
func New(c Config) (*Channel, error) {
	if c.Name == "" {
		return nil, errors.New("discord: the channel has no name")
	}
	token := strings.TrimPrefix(c.Token, "Bot ")
	if fault := badToken(token); fault != "" {
		return nil, fmt.Errorf("discord: bot_token of %s: %s", c.Name, fault)
	}
	if c.RateLimit != "" && c.RateLimit != PlatformPace && c.RateLimit != NoPace {
		return nil, fmt.Errorf("discord: rate_limit of %s is %q: want %q or %q", c.Name, c.RateLimit, PlatformPace, NoPace)
	}
	clients, err := newClients(c.HTTP, c.APIURL)
	if err != nil {
		return nil, fmt.Errorf("discord: api_url of %s: %w", c.Name, err)
	}
	session, err := discordgo.New("Bot " + token)
	if err != nil {
		return nil, fmt.Errorf("discord: prepare %s: %w", c.Name, err)
	}
	session.Client = clients.api
	// A retry is for the Dispatcher to decide: only it knows the book.
	session.LogLevel = discordgo.LogError - 1 // what matters is returned as well
	session.MaxRestRetries, session.ShouldRetryOnRateLimit = 0, false
	ch := &Channel{
		name: c.Name, token: token, session: session, paced: c.RateLimit != NoPace, server: clients.server, files: clients.files,
		sendsOnly: c.SendsOnly, book: c.Book, mention: c.Mention, marks: marks(), pulse: usualPulse(), room: maxWaiting, log: c.Log,
	}
	ch.directory = newDirectory(ch)
	if ch.book == nil {
		ch.book = noBook{}
	}
	if ch.log == nil {
		ch.log = slog.New(slog.DiscardHandler)
	}
	ch.log = ch.log.With(slog.String("channel", c.Name))
	return ch, nil
}

// badToken says what is wrong with a token and shows nothing of it; "" is nothing.
func badToken(token string) string {
	switch {
	case token == "":
		return "it is empty"
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\'' }):
		return "it has characters that no token has, such as spaces or quotes"
	case strings.Count(token, ".") != 2:
		return "want three parts with dots between them, as the developer portal gives it under Bot"
	}
	return ""
}

// Limits says how Discord is to be talked to.
func (c *Channel) Limits() channels.Limits {
	l := channels.Limits{Dialect: markup.DiscordMarkdown, Length: messageLength, DraftEvery: draftEvery}
	if c.paced {
		// Five in any five seconds: a burst would make more of the next five.
		l.Chat = channels.Pace{Every: time.Second, Burst: 1}
		l.Account = channels.Pace{Every: time.Second / 45, Burst: 5}
		l.Drafts = channels.Pace{Every: time.Second / 20, Burst: 10}
	}
	return l
}

// An Account is the bot as Discord knows it.
type Account struct {
	ID       string `json:"id"`
	Username string `json:"username"`
}

// Check asks Discord who the bot is. A token that is refused gives a
// *channels.SendError of kind Stop.
func (c *Channel) Check(ctx context.Context) (Account, error) {
	var a Account
	err := c.call(ctx, request{method: http.MethodGet, url: discordgo.EndpointUser("@me")}, &a)
	return a, err
}

// Connected tells whether Discord was reached when it was last tried.
func (c *Channel) Connected() bool { return c.contact.Connected() }

// A request is one call of the REST API.
type request struct {
	method, url string
	kind        string // of the body; "" is JSON
	body        []byte
}

// call makes one call; a nil result is not looked at. Its errors are *channels.SendError and hold neither the
// token nor a text of anybody's.
func (c *Channel) call(ctx context.Context, r request, result any) (err error) {
	defer func() { c.contact.Note(err) }()
	ctx, t := follow(ctx)
	if r.kind == "" {
		r.kind = "application/json"
	}
	// The library's limiter sleeps without asking ctx and keeps every chat for
	// good. A fresh one never waits; the Dispatcher keeps the pace.
	bucket := discordgo.NewRatelimiter().LockBucket(r.url)
	data, err := c.session.RequestWithLockedBucket(r.method, r.url, r.kind, r.body, bucket, 0, discordgo.WithContext(ctx))
	if err != nil {
		e := sendError(err, t)
		if e.Fault == channels.Unknown && r.method != http.MethodPost {
			e.Fault = channels.Retry // looking, or writing the same over it, may be done again
		}
		return e
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(data, result); err != nil {
		return &channels.SendError{Fault: channels.Unknown, Code: "unreadable", Err: errors.New("the answer is not what Discord gives")}
	}
	return nil
}
