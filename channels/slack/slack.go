// Package slack implements the channel to one Slack app in one workspace.
//
// Messages are sent through slack-go. Each carries its part's key as metadata; if the sending of a part was cut
// off, FindSent uses the key to find the part in history.
//
// Events are received in Socket Mode over two connections of our own or, with a signing secret, as HTTP requests
// from Slack (package events). An event is acknowledged the way it came, and only after it is published, so if a
// crash interrupts that, Slack delivers the event again. Messages that Slack could not deliver either way are read
// from history. The messages of one chat are published one after another, and each only once (identified by its
// id), no matter which socket delivers it and how often.
//
// The files, in reading order:
//
//   - slack.go: the Channel, its settings and its parts; book.go: data that must outlive the process
//   - wire.go: HTTP calls, what their errors mean, waits between them
//   - identity.go: who the bot is, and its scopes; people.go: users, who are remembered for a while;
//     conversations.go: the workspace's chats
//   - message.go, translate.go: a Slack message, and its translation into what the agent gets
//   - history.go: reading earlier messages; speakers.go: who spoke last in a thread
//   - send.go, blocks.go: sending and editing, and what a message shows besides its text: Markdown as Slack renders
//     it, and buttons; channels/slack/stream shows growing answers
//   - find.go: finding a part that was sent; reactions.go: marking people's messages
//   - panes.go: the app's home and panes, which channels/slack/assistant shows
//   - receive.go: a run of Receive, which consists of the files below
//   - socket.go, requests.go: the connections to Slack, and the requests from Slack
//   - lanes.go, publish.go: keeping each chat's messages in order; publishing, and retrying it
//   - actions.go: buttons, commands, shortcuts and reactions, which channels/slack/interaction reads
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
	"strings"
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
	NoPace       = "none"     // sends without rate limits, for a test server
)

const (
	// messageLength is the length, in UTF-16 units, up to which Slack recommends texts.
	messageLength = 4000
	// editBytes is the length of the longest text that chat.update accepts, in bytes as it is sent, with entities
	// such as &amp;. chat.postMessage accepts more.
	editBytes = 4000
)

// Config says which app to use and how to reach it.
type Config struct {
	Name     string // the channel's configured name
	BotToken string // xoxb-…
	AppToken string // xapp-…; needed to receive over sockets
	// SigningSecret, if set, makes the channel receive by HTTP requests from Slack instead of over sockets.
	SigningSecret string
	APIURL        string // the root of another Web API; "" means DefaultAPIURL
	RateLimit     string // PlatformPace or NoPace; "" means PlatformPace
	Log           *slog.Logger
	HTTP          *http.Client // the client to use; if nil, the Channel makes its own
	// JoinedThreads and Cursors store what must outlive the process: the threads that the bot takes part in, and how far
	// Slack has been read. Without JoinedThreads, no thread counts as one that the bot takes part in; without Cursors, the
	// bot does not read what was said before it started.
	JoinedThreads JoinedThreads
	Cursors       Cursors
	// Mention says in which channels only messages that mention the bot are meant for it; nil means MentionThreads in
	// all of them.
	Mention channels.MentionIn
}

// A Channel is one Slack app in one workspace. It also implements the optional interfaces for editing, sending
// files, finding sent parts, knowing members, having a command prefix, reacting, showing typing, having places that
// people open, reading threads, whispering and showing buttons.
type Channel struct {
	*identity
	*people
	*conversations
	*historian
	*finder
	*sender
	*reactor
	*panes
	*requestReceiver
	*socketAddresses
	*channels.Unaddressed

	name        string
	api         *slackgo.Client
	translator  *translator
	files       *files.Fetcher
	rateLimited bool // whether it keeps to rate limits
	cursors     Cursors
	timing      timing
	maxQueued   int // how many messages may wait to be published
	log         *slog.Logger
}

var (
	_ channels.Channel           = (*Channel)(nil)
	_ channels.Editor            = (*Channel)(nil)
	_ channels.FileSender        = (*Channel)(nil)
	_ channels.Reconciler        = (*Channel)(nil)
	_ channels.MembershipChecker = (*Channel)(nil)
	_ channels.Connector         = (*Channel)(nil)
	_ channels.BotNamer          = (*Channel)(nil)
	_ channels.RefusalReader     = (*Channel)(nil)
	_ channels.Prefixer          = (*Channel)(nil)
	_ channels.Reactor           = (*Channel)(nil)
	_ channels.Typer             = (*Channel)(nil)
	_ channels.Welcomer          = (*Channel)(nil)
	_ channels.ThreadReader      = (*Channel)(nil)
	_ channels.Whisperer         = (*Channel)(nil)
	_ channels.ButtonShower      = (*Channel)(nil)
	_ channels.Historian         = (*Channel)(nil)
	_ channels.Linker            = (*Channel)(nil)
	_ channels.HTTPReceiver      = (*Channel)(nil)
	_ channels.UnaddressedTeller = (*Channel)(nil)
)

// appToken is the name of the setting that holds the token for sockets.
const appToken = "app_token"

// A timing holds the intervals and time limits of Receive, which tests shorten.
type timing struct {
	pingInterval time.Duration // how often a socket is pinged
	// maxSilence is how long a socket may deliver neither a ping nor an event before it is considered dead.
	maxSilence   time.Duration
	saveInterval time.Duration // how often the cursor is saved
	// Reading a chat's history is tried for readTimeout; if it still fails, the chat is postponed for the
	// time retryAfter.
	readTimeout time.Duration
	retryAfter  time.Duration
}

// defaultTiming returns the timing of every Channel outside of tests.
func defaultTiming() timing {
	return timing{pingInterval: 10 * time.Second, maxSilence: 30 * time.Second, saveInterval: 5 * time.Second, readTimeout: time.Minute, retryAfter: time.Minute}
}

// maxWaiting is the maximum number of messages that wait to be published. An event beyond it is not acknowledged:
// Slack delivers it again, or it is read from history.
const maxWaiting = 20000

// New makes a Channel and checks its settings. It doesn't call Slack yet.
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
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Log = c.Log.With(slog.String("channel", c.Name))
	if c.JoinedThreads == nil {
		c.JoinedThreads = noBook{}
	}
	if c.Cursors == nil {
		c.Cursors = noBook{}
	}
	if c.HTTP == nil {
		c.HTTP = newClient()
	}
	fetcher, err := files.New(root, c.BotToken, c.HTTP)
	if err != nil {
		return nil, &SettingError{c.Name, "api_url", err.Error()}
	}
	return c.assemble(root, fetcher), nil
}

// assemble makes a Channel from its parts; only optional settings may be empty in c.
func (c Config) assemble(root string, fetcher *files.Fetcher) *Channel {
	api := slackgo.New(c.BotToken,
		slackgo.OptionAppLevelToken(c.AppToken),
		slackgo.OptionAPIURL(root),
		slackgo.OptionHTTPClient(c.HTTP),
		slackgo.OptionLog(log.New(io.Discard, "", 0)), // every error that matters is also returned
	)
	reachability := new(channels.Reachability)
	rs := &requestReceiver{secret: c.SigningSecret, deliveries: make(chan events.Delivery)}
	self := &identity{api: api, receivesMessages: c.AppToken != "" || rs.ReceivesHTTP(), reachability: reachability, log: c.Log}
	team := func(ctx context.Context) (string, error) {
		me, err := self.current(ctx)
		return me.Team, err
	}
	t := &translator{name: c.Name, people: newPeople(api, c.Log, team), joinedThreads: c.JoinedThreads, mentionRule: c.Mention, unaddressed: &channels.Unaddressed{}}
	read, chats := &histories{api}, &conversations{api: api, name: c.Name, directChats: newCache[string](24 * time.Hour)}
	speakers := &speakers{histories: read, translator: t, last: newCache[string](24 * time.Hour), log: c.Log}
	surfaces := assistant.New(api, callRepeatable)
	return &Channel{
		identity:      self,
		people:        t.people,
		Unaddressed:   t.unaddressed,
		conversations: chats,
		historian:     &historian{identity: self, histories: read, translator: t, joinedThreads: c.JoinedThreads},
		finder:        &finder{identity: self, conversations: chats, histories: read},
		sender: &sender{
			api: api, identity: self, reachability: reachability, conversations: chats,
			speakers: speakers, surfaces: surfaces, streams: stream.New(api, callOnce),
		},
		reactor:         &reactor{api},
		panes:           &panes{surfaces: surfaces, conversations: chats, joinedThreads: c.JoinedThreads, log: c.Log},
		requestReceiver: rs,
		socketAddresses: &socketAddresses{api: api, hasAppToken: c.AppToken != ""},
		name:            c.Name, api: api, translator: t, files: fetcher, rateLimited: c.RateLimit != NoPace,
		cursors: c.Cursors, timing: defaultTiming(), maxQueued: maxWaiting, log: c.Log,
	}
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
	if fault := describeTokenProblem(c.BotToken, "xoxb-", textBotToken); fault != "" {
		return &SettingError{c.Name, "bot_token", fault}
	}
	if c.AppToken != "" {
		if fault := describeTokenProblem(c.AppToken, "xapp-", "App-Level Token"); fault != "" {
			return &SettingError{c.Name, appToken, fault}
		}
	}
	if strings.ContainsFunc(c.SigningSecret, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\'' }) || strings.HasPrefix(c.SigningSecret, "x") {
		return &SettingError{c.Name, "signing_secret", "it has to be the app's Signing Secret, from Basic Information"}
	}
	if c.RateLimit != "" && c.RateLimit != PlatformPace && c.RateLimit != NoPace {
		return &SettingError{c.Name, "rate_limit", fmt.Sprintf("it's %q, but has to be %q or %q", c.RateLimit, PlatformPace, NoPace)}
	}
	if c.APIURL != "" {
		if u, err := url.Parse(c.APIURL); err != nil || u.Host == "" {
			return &SettingError{c.Name, "api_url", "it has to be an address such as " + DefaultAPIURL}
		}
	}
	return nil
}

// describeTokenProblem says what is wrong with a token, without showing any part of it; "" means that the token is well
// formed.
func describeTokenProblem(token, prefix, called string) string {
	switch {
	case token == "":
		return "it's empty"
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\'' }):
		return "it has characters that no token has, such as spaces or quotes"
	case !strings.HasPrefix(token, prefix):
		return fmt.Sprintf("it has to be the %s, which begins with %s", called, prefix)
	}
	return ""
}

// Limits returns Slack's dialect, its length limits and, unless RateLimit is NoPace, its rate limits.
func (c *Channel) Limits() channels.Limits {
	l := channels.Limits{Dialect: markup.SlackMrkdwn, Length: messageLength, EditBytes: editBytes, DraftEvery: draftEvery, Markdown: true, Streams: true}
	if c.rateLimited {
		l.Chat = channels.Pace{Every: time.Second, Burst: 3}
		l.Account = channels.Pace{Every: time.Second / 20, Burst: 20}
		l.Drafts = channels.Pace{Every: editEvery, Burst: 10}
	}
	return l
}

const (
	draftEvery = 1500 * time.Millisecond
	// editEvery is the time between two edits. It stays within the 50 calls of chat.update a minute that Slack
	// allows an app in the whole workspace, and leaves some of them for final answers.
	editEvery = 1300 * time.Millisecond
)

// CommandPrefix implements channels.Prefixer: it returns the character with which commands begin instead of a
// slash.
func (*Channel) CommandPrefix() string { return commandPrefix }

// Fetch implements channels.Fetcher: it opens a file that came with a message.
func (c *Channel) Fetch(ctx context.Context, _ bus.Address, a bus.Attachment, most int64) (io.ReadCloser, error) {
	return c.files.Fetch(ctx, a, most)
}

// Refusal implements channels.RefusalReader: it says why a send was refused, given Slack's error code; "" if the
// code says nothing about the place.
func (c *Channel) Refusal(code string) channels.Refusal {
	switch code {
	case "channel_not_found":
		return channels.NoSuchChat
	case "not_in_channel":
		return channels.NotInChat
	case "is_archived":
		return channels.ChatArchived
	case "thread_not_found", "invalid_thread_ts", "restricted_action",
		"user_not_found", "user_disabled", "cannot_dm_bot", "ekm_access_denied":
		return channels.PlaceRefused
	}
	return ""
}
