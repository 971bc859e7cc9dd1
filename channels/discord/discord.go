// Package discord implements the channel to one Discord bot account.
//
// discordgo builds the requests. A transport of our own sends them to the configured server and records how far
// each one got: a request that certainly was not sent may be repeated; the outcome of any other failed request is
// unknown. Each message carries a nonce derived from its part's key, by which Discord drops repetitions within a
// few minutes.
//
// Events come from Discord's gateway, through channels/discord/socket. Discord expects no acknowledgement, and
// keeps nothing for a bot that is away. So the book stores a cursor, up to which every message has been published,
// and later messages are read from history at the beginning of each session. The messages of one channel are
// published one after another, and each only once (identified by its id), whether it comes from the gateway or from
// history.
//
// The files, in reading order:
//
//   - discord.go: the Channel, its settings and its parts; book.go: data that must outlive the process
//   - api.go, transport.go, refusals.go: calls to the REST API, what is recorded about each, and what a refusal
//     means
//   - send.go, buttons.go: sending, editing, finding what was sent; typing and reactions; buttons
//   - examine.go, permissions.go: which permissions the bot lacks, and who may read a channel
//   - message.go, reaction.go, files.go, snowflakes.go: a message, its ids, and the files that come with it
//   - places.go, directory.go, translate.go: the servers and channels that the bot knows, and the translation of a
//     message into what the agent gets
//   - history.go: what was said in channels and threads
//   - receive.go, gateway.go, timing.go: a run of Receive, which consists of the files below
//   - interactions.go, commands.go: people's use of buttons and slash commands
//   - lanes.go, publish.go, waits.go: keeping each channel's messages in order; publishing, and retrying it
//   - position.go, gaps.go, catchup.go: the cursor, and when the bot was away; reading missed messages
package discord

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/channels"
	"parley/channels/markup"
)

// The values of Config.RateLimit.
const (
	PlatformPace = "platform" // keeps to the rate limits that Discord sets for bots; the default
	NoPace       = "none"     // sends without rate limits, for a test server
)

// messageLength is the length of the longest text that Discord accepts in one message, in UTF-16 units.
const messageLength = 2000

// draftInterval is the time between two edits of a draft. It stays within the five edits in five seconds that Discord
// allows in a channel.
const draftInterval = 1500 * time.Millisecond

// Config says which bot account to use and how to reach it.
type Config struct {
	Name      string // the channel's configured name
	Token     string // the bot's token, with or without "Bot " in front
	APIURL    string // the REST API of another server; "" means DefaultAPIURL
	RateLimit string // PlatformPace or NoPace; "" means PlatformPace
	SendsOnly bool   // true if no process receives for this account
	// Mention says in which channels only messages that mention the bot are meant for it.
	Mention channels.MentionIn
	Log     *slog.Logger
	HTTP    *http.Client // the client to use; if nil, the Channel makes its own
	// Book stores what must outlive the process. Without a Book, every message in a server needs a mention, and the
	// bot does not read what was said before it started.
	Book Book
}

// maxWaiting is the maximum number of messages that wait to be published. Messages beyond it are read from history
// later.
const maxWaiting = 20000

// A Channel is one Discord bot account. It also implements the optional interfaces for editing, sending and
// fetching files, finding sent parts, showing typing, reacting, showing buttons, and reading and linking to
// messages.
type Channel struct {
	*api
	*sender
	*downloader
	*historian
	*examiner
	*channels.Unaddressed

	name        string
	token       string
	onlySends   bool
	rateLimited bool // whether it keeps to rate limits
	timing      timing
	maxQueued   int // how many messages may wait to be published
}

var (
	_ channels.Channel       = (*Channel)(nil)
	_ channels.Editor        = (*Channel)(nil)
	_ channels.FileSender    = (*Channel)(nil)
	_ channels.Reconciler    = (*Channel)(nil)
	_ channels.Connector     = (*Channel)(nil)
	_ channels.BotNamer      = (*Channel)(nil)
	_ channels.RefusalReader = (*Channel)(nil)
	_ channels.Fetcher       = (*Channel)(nil)
	_ channels.Typer         = (*Channel)(nil)
	_ channels.Reactor       = (*Channel)(nil)
	_ channels.ButtonShower  = (*Channel)(nil)
	_ channels.Historian     = (*Channel)(nil)
	_ channels.Linker        = (*Channel)(nil)

	_ channels.UnaddressedTeller = (*Channel)(nil)
)

// New makes a Channel and checks its settings. It makes no request yet.
func New(c Config) (*Channel, error) {
	if c.Name == "" {
		return nil, errors.New("discord: the channel has no name")
	}
	token := strings.TrimPrefix(c.Token, "Bot ")
	if fault := describeTokenProblem(token); fault != "" {
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
	// Only the Dispatcher retries, because only it knows what the book says about a send.
	session.LogLevel = discordgo.LogError - 1 // every error that matters is also returned
	session.MaxRestRetries, session.ShouldRetryOnRateLimit = 0, false
	a := &api{session: session, apiURL: clients.apiURL, log: c.Log}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.log = a.log.With(slog.String("channel", c.Name))
	book := c.Book
	if book == nil {
		book = noBook{}
	}
	t := &translator{name: c.Name, book: book, mention: c.Mention, unaddressed: &channels.Unaddressed{}, markPattern: newMarkPattern(), directory: newDirectory(a)}
	return &Channel{
		api:         a,
		Unaddressed: t.unaddressed,
		sender:      &sender{api: a, onlySends: c.SendsOnly},
		downloader:  &downloader{api: a, client: clients.fileClient},
		historian:   &historian{api: a, translator: t, directory: t.directory, book: book},
		examiner:    &examiner{api: a, onlySends: c.SendsOnly},
		name:        c.Name, token: token, onlySends: c.SendsOnly, rateLimited: c.RateLimit != NoPace, timing: defaultTiming(), maxQueued: maxWaiting,
	}, nil
}

// describeTokenProblem says what is wrong with a token, without showing any part of it; "" means that the token is well
// formed.
func describeTokenProblem(token string) string {
	switch {
	case token == "":
		return "it's empty"
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\'' }):
		return "it has characters that no token has, such as spaces or quotes"
	case strings.Count(token, ".") != 2:
		return "it needs three parts separated by dots: copy it from Bot in the developer portal"
	}
	return ""
}

// BotName returns the bot's name, with @; "" before the first session.
func (c *Channel) BotName() string {
	if me := c.historian.directory.botUser(); me.Username != "" {
		return "@" + me.Username
	}
	return ""
}

// Limits returns Discord's dialect, its length limits and, unless the channel has NoPace, its rate limits.
func (c *Channel) Limits() channels.Limits {
	l := channels.Limits{Dialect: markup.DiscordMarkdown, Length: messageLength, DraftEvery: draftInterval}
	if c.rateLimited {
		// Discord allows five messages in any five seconds. A burst of two keeps a second answer from waiting; at
		// one every 1.25 seconds after that, it never gets to more than five.
		l.Chat = channels.Pace{Every: 1250 * time.Millisecond, Burst: 2}
		l.Account = channels.Pace{Every: time.Second / 45, Burst: 5}
		l.Drafts = channels.Pace{Every: time.Second / 20, Burst: 10}
	}
	return l
}

// Refusal implements channels.RefusalReader: it says why a send was refused, given Discord's JSON error code or, if
// there was none, the HTTP status; "" if the code says nothing about the place.
func (c *Channel) Refusal(code string) channels.Refusal {
	switch code {
	case "10003": // unknown channel
		return channels.NoSuchChat
	case "50001": // missing access
		return channels.NotInChat
	case "50007": // cannot send messages to this user
		return channels.PersonRefuses
	case "50013": // missing permissions
		return channels.NoRights
	case "10008", // unknown message: the one that the part replies to
		"50083", // the thread is archived
		"50278", // no server in common with this user
		"403", "404":
		return channels.PlaceRefused
	}
	return ""
}
