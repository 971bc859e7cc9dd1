// Package telegram implements the channel to one Telegram bot account.
//
// Updates are received by long polls of our own: Telegram forgets an update as soon as a poll asks for a later one,
// so each poll confirms only updates that have been published. Alternatively, Telegram sends HTTP requests (package
// webhook), each of which is answered once its update has been published. Messages are sent through
// go-telegram/bot, on top of an HTTP client that knows whether any bytes of a failed request may have been sent: a
// request that certainly was not sent may be repeated; the outcome of any other is unknown.
//
// The files, in reading order: telegram.go is the channel, its settings and its parts; identity.go knows who the
// bot is; api.go makes the calls to the Bot API, with request_trace.go, which records how far a request got, and
// refusals.go, which says what a refusal means. poll.go receives by polling, with the unpublished updates in
// backlog.go, and webhook.go by HTTP requests; updates.go decodes an update, and publish.go and button_presses.go
// publish it. translate.go, content.go, quotes.go and reaction.go translate an update into a message for the agent,
// forums.go remembers which groups have topics, and files.go fetches files; moved_groups.go follows groups whose
// ids change, and roster.go knows who is in a group. send.go sends and edits, previews.go shows unfinished answers,
// address.go names chats, buttons.go shows buttons, and photos.go decides which files are shown as pictures;
// menu.go lists the commands.
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
	"time"

	"github.com/go-telegram/bot"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/channels/telegram/webhook"
)

// DefaultAPIURL is Telegram's own Bot API server.
const DefaultAPIURL = "https://api.telegram.org"

// The values of Config.RateLimit.
const (
	PlatformPace = "platform" // keeps to the rate limits that Telegram sets for bots; the default
	NoPace       = "none"     // sends without rate limits, for your own Bot API server
)

// messageLength is the length of the longest message that Telegram accepts, in UTF-16 units of the text without its
// tags.
const messageLength = 4096

// Config says which bot account to use and how to reach it.
type Config struct {
	Name      string // the channel's configured name
	Token     string // the bot's token, as BotFather gives it
	APIURL    string // another Bot API server; "" means DefaultAPIURL
	RateLimit string // PlatformPace or NoPace; "" means PlatformPace
	SendsOnly bool   // true if no process receives for this account
	// Webhook is the address to which Telegram sends requests; "" means that Telegram is polled instead.
	Webhook string
	// Book stores what must outlive the process; if nil, nothing is remembered.
	Book Book
	// Mention says in which groups only messages that mention the bot are meant for it; nil means MentionThreads in
	// all of them.
	Mention channels.MentionIn
	Log     *slog.Logger
	HTTP    *http.Client // the client to use; if nil, the Channel makes its own
}

// A Channel is one Telegram bot account. It also implements the optional interfaces for showing typing, buttons and
// previews, editing, sending and fetching files, making invitations, and linking to messages.
type Channel struct {
	*identity
	*movedGroups
	*sender
	*downloader
	*pollReceiver
	*webhookReceiver
	*channels.Unaddressed
	*roster

	translator  *translator
	menus       *menus
	rateLimited bool
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
	_ channels.BotNamer      = (*Channel)(nil)
	_ channels.RefusalReader = (*Channel)(nil)
	_ channels.HTTPReceiver  = (*Channel)(nil)
	_ channels.Previewer     = (*Channel)(nil)
	_ channels.Replier       = (*Channel)(nil)
	_ channels.Roster        = (*Channel)(nil)
	_ channels.Linker        = (*Channel)(nil)

	_ channels.UnaddressedTeller = (*Channel)(nil)
)

// New makes a Channel and checks its settings. It doesn't call Telegram yet.
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
	a, err := newAPI(c, server)
	if err != nil {
		return nil, err
	}
	book := c.Book
	if book == nil {
		book = noBook{}
	}
	self := &identity{api: a, name: c.Name, id: id, accountKnown: make(chan struct{})}
	moves, forums, unaddressed := newMovedGroups(book, c.Name), new(forums), new(channels.Unaddressed)
	return &Channel{
		identity:        self,
		Unaddressed:     unaddressed,
		movedGroups:     moves,
		sender:          &sender{api: a, moves: moves, forums: forums, onlySends: c.SendsOnly},
		downloader:      &downloader{a},
		pollReceiver:    &pollReceiver{api: a},
		webhookReceiver: &webhookReceiver{identity: self, webhook: c.Webhook, deliveries: make(chan webhook.Delivery), book: book},
		translator:      &translator{identity: self, quoter: quoter{self}, mention: c.Mention, unaddressed: unaddressed, moves: moves, forums: forums},
		menus:           &menus{a},
		roster:          &roster{a, moves},
		rateLimited:     c.RateLimit != NoPace,
	}, nil
}

// newAPI makes the api that calls the Bot API at a server.
func newAPI(c Config, server string) (*api, error) {
	a := &api{
		methodBase:       server + "/bot" + c.Token + "/",
		fileBase:         server + "/file/bot" + c.Token + "/",
		isOfficialServer: server == DefaultAPIURL,
		http:             c.HTTP,
		log:              c.Log,
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.log = a.log.With(slog.String("channel", c.Name))
	if a.http == nil {
		a.http = newClient()
	}
	var err error
	a.library, err = bot.New(c.Token,
		bot.WithSkipGetMe(),
		bot.WithServerURL(server),
		bot.WithHTTPClient(0, bufferingClient{a.http}),
		bot.WithErrorsHandler(func(error) {}), // every error that matters is also returned
	)
	if err != nil {
		return nil, fmt.Errorf("telegram: prepare %s: %w", c.Name, err)
	}
	return a, nil
}

// accountID returns the account's id, which is the part of the token before the colon. Its errors say what is wrong
// with a token, without showing any part of it.
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
		return 0, errors.New("what comes before its colon isn't the bot's number: it has to be NUMBER:SECRET, the way BotFather gives it")
	}
	if secret == "" {
		return 0, errors.New("nothing comes after its colon: it has to be NUMBER:SECRET, the way BotFather gives it")
	}
	if strings.ContainsFunc(secret, isNoTokenRune) {
		return 0, errors.New("it has characters that no token has, such as spaces or quotes")
	}
	return id, nil
}

// isNoTokenRune reports whether a character can't occur in a token, which becomes part of a URL's path.
func isNoTokenRune(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
}

// Receive passes what people say to publish until ctx is done, then returns nil. It fails only with the fault Stop:
// Telegram refuses the account. The first poll starts immediately; the bot's name is looked up concurrently.
func (c *Channel) Receive(ctx context.Context, publish func(context.Context, bus.Inbound) error) error {
	var learning sync.WaitGroup
	defer learning.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	learning.Go(func() {
		c.learnName(ctx)
		c.menus.showMenu(ctx)
	})
	p := &publisher{translator: c.translator, publish: publish}
	if c.ReceivesHTTP() {
		return c.webhookReceiver.receive(ctx, p)
	}
	if err := c.removeWebhook(ctx); err != nil {
		return err
	}
	return c.pollReceiver.receive(ctx, p)
}

// draftEvery is the time between two edits of a draft in a group, where Telegram allows 20 messages a minute in
// total.
const draftEvery = 4 * time.Second

// Limits returns Telegram's dialect, its length limits and, unless RateLimit is NoPace, its rate limits.
func (c *Channel) Limits() channels.Limits {
	l := channels.Limits{
		Dialect:    markup.TelegramHTML,
		Length:     messageLength,
		IsGroup:    isGroup,
		DraftEvery: draftEvery,
	}
	if c.rateLimited {
		l.Chat = channels.Pace{Every: time.Second, Burst: 3}
		l.Group = channels.Pace{Every: 3 * time.Second, Burst: 5}
		l.Account = channels.Pace{Every: time.Second / 30, Burst: 30}
		l.Drafts = channels.Pace{Every: time.Second / 15, Burst: 10}
	}
	return l
}

// Connected reports whether the last poll reached Telegram or, without polling, whether the last call did.
func (ps *pollReceiver) Connected() bool {
	if ps.isPolling.Load() {
		return ps.reachability.Connected()
	}
	return ps.reached.Connected()
}

// Refusal implements channels.RefusalReader: it says why a send was refused, given a code from refusalCode; "" if
// the code says nothing about the place.
func (c *Channel) Refusal(code string) channels.Refusal {
	switch code {
	case "chat_not_found":
		return channels.NoSuchChat
	case "not_a_member", "kicked":
		return channels.NotInChat
	case "blocked", "deactivated", "not_started":
		return channels.PersonRefuses
	case "no_rights":
		return channels.NoRights
	case "thread_not_found", "topic_closed", "403":
		return channels.PlaceRefused
	}
	return ""
}
