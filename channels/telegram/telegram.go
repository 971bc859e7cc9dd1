// Package telegram is the channel to one Telegram bot account.
//
// Updates are received by a long poll of our own: Telegram forgets an update as soon as a
// poll asks for a later one, so a poll confirms only updates that are published. Or Telegram
// makes requests (package webhook), each of which is answered once its update is published.
// Messages are sent through go-telegram/bot, with an HTTP client underneath that knows
// whether a failed request had begun to leave: a request that certainly was not sent may be
// repeated, the outcome of any other is unknown.
//
// The files, in reading order: telegram.go is the channel and its settings; poll.go
// receives by polls, with the unpublished updates in backlog.go, and requests.go by requests;
// moved.go follows groups whose ids change; translate.go, content.go and quotes.go translate
// an update into a message for the agent, and files.go fetches its files; send.go sends and
// edits, and photos.go knows which files are shown as pictures; buttons.go shows buttons and
// receives presses; menu.go lists the commands, and reaction.go reads reactions; wire.go is
// the HTTP client, its errors and its waits.
package telegram

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-telegram/bot"

	"parley/channels"
	"parley/channels/backoff"
	"parley/channels/markup"
	"parley/channels/telegram/webhook"
)

// DefaultAPIURL is Telegram's own Bot API server.
const DefaultAPIURL = "https://api.telegram.org"

// The values of Config.RateLimit.
const (
	PlatformPace = "platform" // keeps to the rate limits that Telegram sets for bots; the default
	NoPace       = "none"     // sends without rate limits, for a Bot API server of one's own
)

// messageLength is the longest message that Telegram accepts, in UTF-16 units of the text
// without its tags.
const messageLength = 4096

// captionLength is the longest text beside a file, in the same units.
const captionLength = 1024

// checkTimeout bounds the call that asks Telegram who the bot is.
const checkTimeout = 10 * time.Second

// Config says which bot account to use and how to reach it.
type Config struct {
	Name      string // the channel's configured name
	Token     string // the bot's token, as BotFather gives it
	APIURL    string // another Bot API server; "" is DefaultAPIURL
	RateLimit string // PlatformPace or NoPace; "" is PlatformPace
	SendsOnly bool   // true if no process receives for this account
	// Webhook is the address to which Telegram makes requests; "" polls Telegram instead.
	Webhook string
	// Book keeps what must outlive the process; with nil nothing is remembered.
	Book Book
	// Mention says in which groups a message must mention the bot to be meant for it.
	Mention channels.MentionIn
	Log     *slog.Logger
	HTTP    *http.Client // the client to use; with nil the Channel makes its own
}

// A Channel is one Telegram bot account. Besides what every channel does, it shows typing, buttons
// and previews, edits, sends and fetches files and makes invitations.
type Channel struct {
	name             string
	id               int64  // the account's id, which the token contains
	methodBase       string // the URL of the API's methods, with the token
	fileBase         string // the URL of files, with the token
	isOfficialServer bool   // whether the server is DefaultAPIURL
	http             *http.Client
	library          *bot.Bot
	paced            bool
	sendsOnly        bool
	mention          channels.MentionIn
	webhook          string                 // the address to which Telegram makes requests; "" polls
	deliveries       chan webhook.Delivery  // the updates of those requests
	secret           atomic.Pointer[string] // the secret by which Telegram's requests are recognised
	book             Book
	moves            *moves
	forums           forums
	// noPreviews is when Telegram refused a preview, as a Unix time; 0 if it has not.
	noPreviews atomic.Int64
	log        *slog.Logger

	first            prefetch
	isPolling        atomic.Bool           // whether polls tell that Telegram can be reached
	pollReachability channels.Reachability // whether the last getUpdates reached Telegram
	callReachability channels.Reachability // whether the last other call reached Telegram

	accountKnown chan struct{} // closed once account is set
	accountOnce  sync.Once
	account      atomic.Pointer[Account]
}

var (
	_ channels.Channel       = (*Channel)(nil)
	_ channels.Typer         = (*Channel)(nil)
	_ channels.Editor        = (*Channel)(nil)
	_ channels.Fetcher       = (*Channel)(nil)
	_ channels.FileSender    = (*Channel)(nil)
	_ channels.Captioner     = (*Channel)(nil)
	_ channels.Inviter       = (*Channel)(nil)
	_ channels.ButtonShower  = (*Channel)(nil)
	_ channels.Connector     = (*Channel)(nil)
	_ channels.RefusalReader = (*Channel)(nil)
	_ channels.HTTPReceiver  = (*Channel)(nil)
	_ channels.Previewer     = (*Channel)(nil)
	_ channels.Replier       = (*Channel)(nil)
	_ channels.Prefetcher    = (*Channel)(nil)
)

// New makes a Channel and checks its settings. It makes no call yet.
func New(c Config) (*Channel, error) {
	if c.Name == "" {
		return nil, errors.New("telegram: the channel has no name")
	}
	id, err := accountID(c.Token)
	if err != nil {
		return nil, fmt.Errorf("telegram: bot_token of %s: %w", c.Name, err)
	}
	if c.RateLimit != "" && c.RateLimit != PlatformPace && c.RateLimit != NoPace {
		return nil, fmt.Errorf("telegram: rate_limit of %s is %q: want %q or %q", c.Name, c.RateLimit, PlatformPace, NoPace)
	}
	server := strings.TrimRight(c.APIURL, "/")
	if server == "" {
		server = DefaultAPIURL
	}
	ch := &Channel{
		name:             c.Name,
		id:               id,
		methodBase:       server + "/bot" + c.Token + "/",
		fileBase:         server + "/file/bot" + c.Token + "/",
		isOfficialServer: server == DefaultAPIURL,
		http:             c.HTTP,
		paced:            c.RateLimit != NoPace,
		sendsOnly:        c.SendsOnly,
		mention:          c.Mention,
		webhook:          c.Webhook,
		deliveries:       make(chan webhook.Delivery),
		book:             c.Book,
		log:              c.Log,
		accountKnown:     make(chan struct{}),
	}
	if ch.book == nil {
		ch.book = noBook{}
	}
	ch.moves = newMoves(ch.book, c.Name)
	if ch.log == nil {
		ch.log = slog.New(slog.DiscardHandler)
	}
	ch.log = ch.log.With(slog.String("channel", c.Name))
	if ch.http == nil {
		ch.http = newClient()
	}
	ch.library, err = bot.New(c.Token,
		bot.WithSkipGetMe(),
		bot.WithServerURL(server),
		bot.WithHTTPClient(0, bufferingClient{ch.http}),
		bot.WithErrorsHandler(func(error) {}), // every error that matters is returned too
	)
	if err != nil {
		return nil, fmt.Errorf("telegram: prepare %s: %w", c.Name, err)
	}
	return ch, nil
}

// accountID returns the account's id, which is the part of the token before the colon. Its
// errors say what is wrong with a token, without showing any of it.
func accountID(token string) (int64, error) {
	if token == "" {
		return 0, errors.New("it is empty")
	}
	number, secret, found := strings.Cut(token, ":")
	if !found {
		return 0, errors.New("it has no colon: want NUMBER:SECRET, as BotFather gives it")
	}
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil || id <= 0 {
		return 0, errors.New("what stands before its colon is not the bot's number: want NUMBER:SECRET, as BotFather gives it")
	}
	if secret == "" {
		return 0, errors.New("nothing stands after its colon: want NUMBER:SECRET, as BotFather gives it")
	}
	if strings.ContainsFunc(secret, isNoTokenRune) {
		return 0, errors.New("it has characters that no token has, such as spaces or quotes")
	}
	return id, nil
}

// isNoTokenRune reports whether a character cannot be in a token, which becomes part of a
// URL's path.
func isNoTokenRune(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
}

// draftEvery is the time between two edits of a draft in a group, where Telegram allows 20
// messages a minute in all.
const draftEvery = 4 * time.Second

// Limits returns the dialect, the lengths and the rate limits that Telegram demands.
func (c *Channel) Limits() channels.Limits {
	l := channels.Limits{
		Dialect:    markup.TelegramHTML,
		Length:     messageLength,
		IsGroup:    isGroup,
		DraftEvery: draftEvery,
	}
	if c.paced {
		l.Chat = channels.Pace{Every: time.Second, Burst: 3}
		l.Group = channels.Pace{Every: 3 * time.Second, Burst: 5}
		l.Account = channels.Pace{Every: time.Second / 30, Burst: 30}
		l.Drafts = channels.Pace{Every: time.Second / 15, Burst: 10}
	}
	return l
}

// isGroup reports whether a chat's id is that of a group or a channel, and not a person's:
// it is negative or a name.
func isGroup(chat string) bool {
	return strings.HasPrefix(chat, "-") || strings.HasPrefix(chat, "@")
}

// An Account is the bot's own user, as Telegram describes it.
type Account struct {
	ID       int64  `json:"id"`
	Username string `json:"username"` // without @
	Name     string `json:"first_name"`
	// HearsGroups says whether the bot also gets messages in groups that do not mention it, which
	// is so if its privacy mode is off.
	HearsGroups bool `json:"can_read_all_group_messages"`
}

// Check asks Telegram who the bot is. A refused token gives a *channels.SendError of kind
// Stop.
func (c *Channel) Check(ctx context.Context) (Account, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var a Account
	err := c.call(ctx, "getMe", nil, &a)
	c.callReachability.Note(err)
	if err != nil {
		return Account{}, err
	}
	c.account.Store(&a)
	c.accountOnce.Do(func() { close(c.accountKnown) })
	return a, nil
}

// Connected reports whether Telegram was reached by the last poll or, without polls, by
// the last call.
func (c *Channel) Connected() bool {
	if c.isPolling.Load() {
		return c.pollReachability.Connected()
	}
	return c.callReachability.Connected()
}

// Invite returns a link that makes a person's first message to the bot "/start CODE"; ""
// while the bot's name is not known.
func (c *Channel) Invite(code string) string {
	a := c.account.Load()
	if a == nil || a.Username == "" {
		return ""
	}
	return "https://t.me/" + a.Username + "?start=" + code
}

// learnName asks Telegram for the bot's name until Telegram answers, refuses the token, or
// ctx ends.
func (c *Channel) learnName(ctx context.Context) {
	var wait backoff.Series
	for c.account.Load() == nil {
		_, err := c.Check(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		refusal, ok := errors.AsType[*channels.SendError](err)
		if ok && refusal.Fault == channels.Stop {
			return // the poll meets the same refusal and reports it
		}
		c.log.LogAttrs(ctx, slog.LevelDebug, "the bot's own name is not known yet", slog.Any("error", err))
		if !backoff.Sleep(ctx, wait.Next(maxTelegramWait)) {
			return
		}
	}
}

// awaitUsername waits until the bot's username is known, and returns it. It fails only when ctx
// ends.
func (c *Channel) awaitUsername(ctx context.Context) (string, error) {
	select {
	case <-c.accountKnown:
		return c.account.Load().Username, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
