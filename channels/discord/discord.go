// Package discord is the channel to one Discord bot account.
//
// discordgo builds the requests. A transport of our own sends them to the configured server
// and records how far each came: a request that certainly was not sent may be repeated, the
// outcome of any other is unknown. Each message carries a nonce derived from its part's key,
// by which Discord drops a repetition within minutes.
//
// Events come from Discord's gateway, through channels/discord/socket. Discord wants no
// acknowledgement and keeps nothing for a bot that is away. So the book has a cursor, up to
// which every message is published, and later messages are read from history at the
// beginning of each session. The messages of one channel are published one after another,
// and each once by its id, whether it comes from the gateway or from history.
//
// The files, in reading order:
//
//   - discord.go: the Channel, its settings and account
//   - wire.go: the transport, and what it records of each request
//   - send.go: sending, editing, finding what was sent; typing and reactions
//   - examine.go: which permissions the bot lacks
//   - buttons.go, commands.go: buttons and slash commands, and people's use of them
//   - message.go, files.go: a message, and the files that come with it
//   - directory.go, translate.go: the servers and channels that the bot knows, and the
//     translation of a message into what the agent gets
//   - receive.go: a run of Receive, which is made of the files below
//   - lanes.go, publish.go: the order of each channel; publishing, and retrying it
//   - position.go, catchup.go: the cursor, and when the bot was away; reading missed messages
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
	PlatformPace = "platform" // keeps to the rate limits that Discord sets for bots; the default
	NoPace       = "none"     // sends without rate limits, for a server of one's own
)

// messageLength is the longest text that Discord accepts in one message, in UTF-16 units.
const messageLength = 2000

// draftEvery is the time between two edits of a draft. It keeps within the five edits in
// five seconds that Discord allows in a channel.
const draftEvery = 1500 * time.Millisecond

// callTimeout bounds every call except the sending of files.
const callTimeout = 30 * time.Second

// Config says which bot account to use and how to reach it.
type Config struct {
	Name      string // the channel's configured name
	Token     string // the bot's token, as the developer portal gives it
	APIURL    string // the REST API of another server; "" is DefaultAPIURL
	RateLimit string // PlatformPace or NoPace; "" is PlatformPace
	SendsOnly bool   // true if no process receives for this account
	// Mention says in which channels a message must mention the bot to be meant for it.
	Mention channels.MentionIn
	Log     *slog.Logger
	HTTP    *http.Client // the client to use; with nil the Channel makes its own
	// Book keeps what must outlive the process. Without a Book each message in a server
	// needs a mention, and the bot does not read what was said before the start.
	Book Book
}

// A Book remembers for a Channel what must outlive the process.
type Book interface {
	// Joined reports whether a person whom the gate admits has spoken to the bot in that
	// thread, and since when: messages there need no mention from then on.
	Joined(ctx context.Context, at bus.Address) (since time.Time, joined bool, err error)
	// Chats lists the chats in which people have spoken to the bot.
	Chats(ctx context.Context) ([]channels.Chat, error)
	// Cursor returns the cursor that SetCursor saved last for that address; "" if it
	// saved none.
	Cursor(ctx context.Context, at bus.Address) (string, error)
	SetCursor(ctx context.Context, at bus.Address, cursor string) error
}

// noBook takes the place of the Book where a Channel has none: it remembers nothing.
type noBook struct{}

func (noBook) Joined(context.Context, bus.Address) (time.Time, bool, error) {
	return time.Time{}, false, nil
}
func (noBook) Chats(context.Context) ([]channels.Chat, error)       { return nil, nil }
func (noBook) Cursor(context.Context, bus.Address) (string, error)  { return "", nil }
func (noBook) SetCursor(context.Context, bus.Address, string) error { return nil }

// A timing has the intervals and time limits of Receive, which tests shorten.
type timing struct {
	save  time.Duration // how often the cursor is saved
	hello time.Duration // how long the gateway may take to say hello
	// answer is how long publishing an interaction may take before Discord is told to
	// wait.
	answer  time.Duration
	overlap time.Duration // how much history before a gap is read again
}

// defaultTiming returns the timing of every Channel outside of tests.
func defaultTiming() timing {
	return timing{save: 5 * time.Second, hello: 20 * time.Second, answer: answerTimeout, overlap: overlap}
}

// maxWaiting bounds the messages that wait to be published. Messages beyond it are read
// from history later.
const maxWaiting = 20000

// A Channel is one Discord bot account. It also has the optional abilities of channels that edit,
// send and fetch files, find sent parts, show typing, react and show buttons.
type Channel struct {
	name         string
	token        string
	session      *discordgo.Session
	reachability channels.Reachability // whether the last call reached Discord
	paced        bool                  // whether rate limits are kept
	apiURL       *url.URL              // the root of the REST API
	fileClient   *http.Client          // downloads files that came with messages
	sendsOnly    bool
	book         Book
	mention      channels.MentionIn
	markPattern  *regexp.Regexp // finds Discord's marks, such as <@id>, in a text
	directory    *directory
	timing       timing
	maxQueued    int // how many messages may wait to be published
	log          *slog.Logger
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

// New makes a Channel and checks its settings. It makes no request yet.
func New(c Config) (*Channel, error) {
	if c.Name == "" {
		return nil, errors.New("discord: the channel has no name")
	}
	token := strings.TrimPrefix(c.Token, "Bot ")
	if fault := tokenProblem(token); fault != "" {
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
	session.Client = clients.apiClient
	// Only the Dispatcher retries, because only it knows what the book says of a send.
	session.LogLevel = discordgo.LogError - 1 // every error that matters is returned too
	session.MaxRestRetries, session.ShouldRetryOnRateLimit = 0, false
	ch := &Channel{
		name: c.Name, token: token, session: session, paced: c.RateLimit != NoPace, apiURL: clients.apiURL, fileClient: clients.fileClient,
		sendsOnly: c.SendsOnly, book: c.Book, mention: c.Mention, markPattern: newMarkPattern(), timing: defaultTiming(), maxQueued: maxWaiting, log: c.Log,
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

// tokenProblem says what is wrong with a token, without showing any of it; "" means that
// the token is well formed.
func tokenProblem(token string) string {
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

// Limits returns the dialect, the lengths and the rate limits that Discord demands.
func (c *Channel) Limits() channels.Limits {
	l := channels.Limits{Dialect: markup.DiscordMarkdown, Length: messageLength, DraftEvery: draftEvery}
	if c.paced {
		// Discord allows five messages in any five seconds: a burst could exceed that.
		l.Chat = channels.Pace{Every: time.Second, Burst: 1}
		l.Account = channels.Pace{Every: time.Second / 45, Burst: 5}
		l.Drafts = channels.Pace{Every: time.Second / 20, Burst: 10}
	}
	return l
}

// An Account is the bot's own user, as Discord describes it.
type Account struct {
	ID       string `json:"id"`
	Username string `json:"username"`
}

// Check asks Discord who the bot is. A refused token gives a *channels.SendError of kind
// Stop.
func (c *Channel) Check(ctx context.Context) (Account, error) {
	var a Account
	err := c.call(ctx, request{method: http.MethodGet, url: discordgo.EndpointUser("@me")}, &a)
	return a, err
}

// Connected reports whether the last call reached Discord.
func (c *Channel) Connected() bool { return c.reachability.Connected() }

// A request is one call of the REST API, before it is made.
type request struct {
	method, url string
	kind        string // the body's Content-Type; "" is JSON
	body        []byte
}

// call makes one call and decodes the answer into result; with a nil result the answer is
// ignored. Its errors are *channels.SendError and contain neither the token nor the text
// of anybody's message.
func (c *Channel) call(ctx context.Context, r request, result any) (err error) {
	defer func() { c.reachability.Note(err) }()
	ctx, t := withRequestTrace(ctx)
	if r.kind == "" {
		r.kind = "application/json"
	}
	// discordgo's limiter ignores ctx while it sleeps, and never forgets a chat. A
	// new limiter for each call never waits; the Dispatcher keeps the pace.
	bucket := discordgo.NewRatelimiter().LockBucket(r.url)
	data, err := c.session.RequestWithLockedBucket(r.method, r.url, r.kind, r.body, bucket, 0, discordgo.WithContext(ctx))
	if err != nil {
		e := sendError(err, t)
		if e.Fault == channels.Unknown && r.method != http.MethodPost {
			e.Fault = channels.Retry // reading, or overwriting with the same, may be repeated
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
