// Package telegram is the channel to one Telegram bot account.
//
// Receiving is a long poll of its own: Telegram forgets an update as soon as a
// later one is asked for, so the next poll is sent only after everything of the
// last one has been published. Or Telegram makes requests (package webhook), each of
// which is answered once what it brings is published. Sending goes through go-telegram/bot, with an
// HTTP client underneath that knows whether a request had begun to leave when
// it failed: what certainly was not sent may be sent again, anything else is
// unknown.
//
// The files, in reading order: telegram.go is the channel and its settings; poll.go
// receives, and requests.go does where Telegram makes requests; moved.go follows groups
// whose ids change; translate.go, content.go and quotes.go turn an update into a message for the
// agent, and files.go fetches what came with it; send.go sends and edits, and photos.go knows
// which files are shown as pictures; buttons.go
// shows buttons and takes presses; menu.go lists the commands, and reaction.go reads
// reactions; wire.go is the HTTP client, its errors and its waits.
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
	PlatformPace = "platform" // what Telegram asks of bots; the default
	NoPace       = "none"     // for a Bot API server of one's own
)

// messageLength is what Telegram takes in one message, in UTF-16 units of the
// text without its tags.
const messageLength = 4096

// captionLength is the same for the text beside a file.
const captionLength = 1024

// checkTimeout is how long Telegram may take to say who the bot is.
const checkTimeout = 10 * time.Second

// Config says which account to use and how to reach it.
type Config struct {
	Name      string // the channel's configured name
	Token     string // as BotFather gives it
	APIURL    string // another Bot API server; "" is DefaultAPIURL
	RateLimit string // PlatformPace or NoPace; "" is PlatformPace
	SendsOnly bool   // nobody receives for this account
	// Webhook has Telegram make its requests to that address, in place of being polled.
	Webhook string
	// Book is what must outlive the process; nil remembers nothing.
	Book Book
	// Mention is when what is said in a group is meant for the bot.
	Mention channels.MentionIn
	Log     *slog.Logger
	HTTP    *http.Client // nil: one of our own
}

// A Channel is one Telegram bot account. It is a channels.Channel and shows
// typing and buttons, edits, sends files and makes invitations.
type Channel struct {
	name      string
	id        int64 // the account's, from its token
	base      string
	files     string // the address below which files are
	own       bool   // the server is Telegram's own
	http      *http.Client
	library   *bot.Bot
	paced     bool
	sendsOnly bool
	mention   channels.MentionIn
	webhook   string                // where Telegram makes its requests; "" polls
	requests  chan webhook.Delivery // what those bring
	secret    atomic.Pointer[string]
	book      Book
	moves     *moves
	forums    forums
	// noPreviews is since when Telegram takes no previews, in seconds; 0 is not known.
	noPreviews atomic.Int64
	log        *slog.Logger

	polling atomic.Bool           // it receives: then it is the polls that tell
	polls   channels.Reachability // by getUpdates
	calls   channels.Reachability // by everything else

	known   chan struct{} // closed once account is set
	once    sync.Once
	account atomic.Pointer[Account]
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
)

// New makes a channel. It talks to nobody yet.
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
		name:      c.Name,
		id:        id,
		base:      server + "/bot" + c.Token + "/",
		files:     server + "/file/bot" + c.Token + "/",
		own:       server == DefaultAPIURL,
		http:      c.HTTP,
		paced:     c.RateLimit != NoPace,
		sendsOnly: c.SendsOnly,
		mention:   c.Mention,
		webhook:   c.Webhook,
		requests:  make(chan webhook.Delivery),
		book:      c.Book,
		log:       c.Log,
		known:     make(chan struct{}),
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
		bot.WithErrorsHandler(func(error) {}), // what matters is returned as well
	)
	if err != nil {
		return nil, fmt.Errorf("telegram: prepare %s: %w", c.Name, err)
	}
	return ch, nil
}

// accountID reads the account's id, which stands before the colon. Its errors
// say what is wrong with a token and show nothing of it.
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

// isNoTokenRune reports whether a character cannot be in a token, which is put into a
// URL's path.
func isNoTokenRune(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
}

// draftEvery is how often an answer is shown anew in a group, which has 20 messages a
// minute for everything.
const draftEvery = 4 * time.Second

// Limits says how Telegram is to be talked to.
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

// isGroup tells groups and channels, whose ids are negative or names, from people.
func isGroup(chat string) bool {
	return strings.HasPrefix(chat, "-") || strings.HasPrefix(chat, "@")
}

// An Account is the bot as Telegram knows it.
type Account struct {
	ID       int64  `json:"id"`
	Username string `json:"username"` // without @
	Name     string `json:"first_name"`
	// HearsGroups says that the bot is given what is said in groups without a mention of
	// it, too: its privacy mode is off.
	HearsGroups bool `json:"can_read_all_group_messages"`
}

// Check asks Telegram who the bot is. A token that is refused gives a
// *channels.SendError of kind Stop.
func (c *Channel) Check(ctx context.Context) (Account, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var a Account
	err := c.call(ctx, "getMe", nil, &a)
	c.calls.Note(err)
	if err != nil {
		return Account{}, err
	}
	c.account.Store(&a)
	c.once.Do(func() { close(c.known) })
	return a, nil
}

// Connected reports whether Telegram was reached when it was last tried: by the
// last poll, or where there are none, by the last call.
func (c *Channel) Connected() bool {
	if c.polling.Load() {
		return c.polls.Connected()
	}
	return c.calls.Connected()
}

// Invite is the link by which a person's first message to the bot is
// "/start CODE".
func (c *Channel) Invite(code string) string {
	a := c.account.Load()
	if a == nil || a.Username == "" {
		return ""
	}
	return "https://t.me/" + a.Username + "?start=" + code
}

// learnName asks Telegram for the bot's name until it answers, unless the name is known.
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
		if !backoff.Sleep(ctx, wait.Next(mostWait)) {
			return
		}
	}
}

// username waits until the bot's name is known.
func (c *Channel) username(ctx context.Context) (string, error) {
	select {
	case <-c.known:
		return c.account.Load().Username, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
