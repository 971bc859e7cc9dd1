package config

import (
	"slices"
	"strconv"
	"strings"

	"parley/cmd/parley/config/schema"
	"parley/tools/spelling"
)

// A Channel is one account on one platform.
type Channel struct {
	Name     string
	Platform string // one of Options.Platforms
	Mode     string // "chat", or "send": it receives nothing
	BotToken Secret
	AppToken Secret // only Slack has one
	// Receive is how the channel receives what people say: "socket", "poll" or "http"; "" means the
	// platform's usual way.
	Receive       string
	SigningSecret Secret // verifies Slack's requests
	PublicURL     string // the URL at which the platform reaches the server; no trailing slash
	APIURL        string // "" means the platform's own; no trailing slash
	Access        Access
	RateLimit     string // whether to observe the platform's rate limits: "platform" or "none"
	OnUnknown     string // what to do if it is unknown whether a message was sent: "resend" or "drop"
	Stream        string // how to show answers while they are being made: "auto", "edit" or "off"
	FilesMB       int    // the largest file in MB, received or sent
	Agent         string // the agent that answers if no route matches
	Routes        []AgentRoute
	History       int    // how many earlier messages to read when the bot is called into a thread; 0 means none
	Reactions     string // which reactions the agent learns of: ReactionsThumbs or ReactionsAll
	Introduce     string // who gets an introduction to the bot: IntroduceOnce or IntroduceNever
	About         string // text to add to the introduction
	Session       string // what gets a conversation of its own: SessionThread, SessionChannel or SessionUser
	Speak         string // which answers are read aloud: SpeakOff or SpeakAsked
}

// DefaultFilesMB is the largest size of a file, in MB, if the operator has not set one.
const DefaultFilesMB = 20

// DefaultHistory is how many earlier messages of a thread are read when the bot is called into it,
// if the operator has not set a number.
const DefaultHistory = 20

// These are the values of Channel.Reactions: the reactions to its answers that an agent learns of.
const (
	ReactionsThumbs = "thumbs" // 👍 and 👎, which are stored as ratings
	ReactionsAll    = "all"
)

// These are the values of Channel.Introduce: the people who get an introduction to the bot.
const (
	IntroduceOnce  = "once" // each person, at the first contact
	IntroduceNever = "never"
)

// These are the values of Channel.Session: what gets a conversation of its own.
const (
	SessionThread  = "thread"  // each thread, and each chat outside its threads
	SessionChannel = "channel" // each chat with all its threads
	SessionUser    = "user"    // in groups, each person in each thread
)

// ByHTTP reports whether the platform sends what people say as HTTP requests to this server.
func (c Channel) ByHTTP() bool { return c.Receive == byHTTP }

// AllAgents returns the agents that answer on the channel.
func (c Channel) AllAgents() []string {
	all := []string{c.Agent}
	for _, r := range c.Routes {
		all = append(all, r.Agent)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// channelsSection declares the settings of channels on these platforms.
func channelsSection(platforms []Platform) section {
	settings := channelSettings(platforms)
	return section{
		Section: schema.Section{Name: "channels", Named: true, ByName: "platform", RefuseName: refuseOwnName, Settings: settings},
		prepare: func(l *loader) {
			if !l.FromFile() {
				addChannels(l)
			}
			fillTokens(l)
		},
		check: func(l *loader) {
			seen := map[string]string{}
			for _, name := range l.Names("channels") {
				checkChannel(l, name, settings)
				checkSharedToken(l, name, seen)
			}
		},
	}
}

// channelSettings declares the settings of a channel, each with the field of Channel that it fills.
func channelSettings(platforms []Platform) []schema.Setting {
	return []schema.Setting{
		{Key: "platform", Kind: schema.Text, OneOf: platformNames(platforms), Example: `"telegram"`, Fill: schema.Into(func(c *Channel) any { return &c.Platform })},
		{Key: "mode", Kind: schema.Text, Default: "chat", OneOf: []string{"chat", "send"}, Example: `"send"`, Fill: schema.Into(func(c *Channel) any { return &c.Mode })},
		{Key: botToken, Kind: schema.Text, Secret: true, Example: `"${TELEGRAM_BOT_TOKEN}"`, Fill: schema.Into(func(c *Channel) any { return &c.BotToken })},
		{Key: "app_token", Kind: schema.Text, Secret: true, Example: `"${SLACK_APP_TOKEN}"`, Fill: schema.Into(func(c *Channel) any { return &c.AppToken })},
		{Key: "receive", Kind: schema.Text, OneOf: []string{"socket", "poll", byHTTP}, Example: `"http"`, Fill: schema.Into(func(c *Channel) any { return &c.Receive })},
		{Key: "signing_secret", Kind: schema.Text, Secret: true, Example: `"${SLACK_SIGNING_SECRET}"`, Fill: schema.Into(func(c *Channel) any { return &c.SigningSecret })},
		{Key: "public_url", Kind: schema.URL, Schemes: []string{"http", "https"}, Example: `"https://bot.example.com"`,
			Fill: schema.Into(func(c *Channel) any { return &c.PublicURL })},
		{Key: "api_url", Kind: schema.URL, Schemes: []string{"http", "https"}, Example: `"http://127.0.0.1:8081"`,
			Fill: schema.Into(func(c *Channel) any { return &c.APIURL })},
		{Key: "access", Kind: schema.Text, Default: "pairing", OneOf: []string{"pairing", "list", "members", "open"},
			Reload: schema.AtOnce, Fill: schema.Into(func(c *Channel) any { return &c.Access.Policy })},
		{Key: "allow_from", Kind: schema.IDs, Default: []string{}, Example: `["42"]`,
			Reload: schema.AtOnce, Fill: schema.Into(func(c *Channel) any { return &c.Access.AllowFrom })},
		{Key: "owners", Kind: schema.IDs, Default: []string{}, Example: `["42"]`,
			Reload: schema.AtOnce, Fill: schema.Into(func(c *Channel) any { return &c.Access.Owners })},
		{Key: "approvers", Kind: schema.IDs, Example: `["42"]`,
			Reload: schema.AtOnce, Fill: schema.Into(func(c *Channel) any { return &c.Access.Approvers })},
		{Key: "chats", Kind: chatList{}, Example: `["C1", { chat = "C2", mention = "always" }]`,
			Reload: schema.AtOnce, Fill: schema.Into(func(c *Channel) any { return &c.Access.Chats })},
		{Key: "mention", Kind: schema.Text, Default: "threads", OneOf: mentionValues(), Example: `"always"`,
			Reload: schema.AtOnce, Fill: schema.Into(func(c *Channel) any { return &c.Access.Mention })},
		{Key: "rate_limit", Kind: schema.Text, Default: "platform", OneOf: []string{"platform", "none"}, Fill: schema.Into(func(c *Channel) any { return &c.RateLimit })},
		{Key: "on_unknown", Kind: schema.Text, Default: "resend", OneOf: []string{"resend", "drop"}, Example: `"drop"`,
			Fill: schema.Into(func(c *Channel) any { return &c.OnUnknown })},
		{Key: "stream", Kind: schema.Text, Default: "auto", OneOf: []string{"auto", "edit", "off"}, Fill: schema.Into(func(c *Channel) any { return &c.Stream })},
		{Key: "files_mb", Kind: schema.Count, Default: int64(DefaultFilesMB), Least: 1, Reload: schema.AtOnce, Fill: schema.Into(func(c *Channel) any { return &c.FilesMB })},
		{Key: "agent", Kind: schema.Text, Default: MainAgent, Fill: schema.Into(func(c *Channel) any { return &c.Agent })},
		{Key: "routes", Kind: agentRoutes{}, Example: `[{ match = { mention = "ops" }, agent = "ops" }]`,
			Reload: withAgents, Fill: schema.Into(func(c *Channel) any { return &c.Routes })},
		{Key: "history", Kind: schema.Count, Default: int64(DefaultHistory), ZeroIsOff: true, Reload: schema.AtOnce, Fill: schema.Into(func(c *Channel) any { return &c.History })},
		{Key: "reactions", Kind: schema.Text, Default: ReactionsThumbs, OneOf: []string{ReactionsThumbs, ReactionsAll}, Example: `"all"`,
			Reload: schema.AtOnce, Fill: schema.Into(func(c *Channel) any { return &c.Reactions })},
		{Key: "introduce", Kind: schema.Text, Default: IntroduceOnce, OneOf: []string{IntroduceOnce, IntroduceNever}, Example: `"never"`,
			Reload: schema.AtOnce, Fill: schema.Into(func(c *Channel) any { return &c.Introduce })},
		{Key: "about", Kind: schema.Text, Example: `"Run by the IT desk: it@example.com"`,
			Reload: schema.AtOnce, Fill: schema.Into(func(c *Channel) any { return &c.About })},
		{Key: "session", Kind: schema.Text, Default: SessionThread, OneOf: []string{SessionThread, SessionChannel, SessionUser}, Example: `"user"`,
			Fill: schema.Into(func(c *Channel) any { return &c.Session })},
		{Key: "speak", Kind: schema.Text, Default: SpeakOff, OneOf: []string{SpeakOff, SpeakAsked}, Example: `"asked"`,
			Reload: schema.AtOnce, Fill: schema.Into(func(c *Channel) any { return &c.Speak })},
	}
}

// checkChannel reports settings of a channel that don't fit its platform or each other.
func checkChannel(l *loader, name string, settings []schema.Setting) {
	path := "channels." + name
	at := l.At(path)
	platform := platformOf(l.opts.Platforms, l.Text(path+".platform"))
	if platform.Name == "" {
		if !l.Mentioned(path + ".platform") {
			remedy := platformRemedy(l.opts.Platforms)
			if near := spelling.Nearest(name, platformNames(l.opts.Platforms)); near != "" {
				remedy = "did you mean [channels." + near + "]? Otherwise, " + remedy
			}
			l.Report(at, path, "it doesn't name a platform", remedy)
		}
		return
	}
	checkReceive(l, name, platform)
	checkTokens(l, path, platform, settings)
	if agent := l.Text(path + ".agent"); agent != "" {
		checkAgentExists(l, l.At(path+".agent"), path+".agent", agent)
	}
	checkAgentRoutes(l, path, platform)
	checkAccess(l, path, platform)
	for _, key := range []string{"allow_from", "owners", "approvers"} {
		checkPeople(l, path+"."+key, platform)
	}
	checkChats(l, path+".chats", platform)
}

// platformRemedy returns the remedy for a channel whose platform is unknown.
func platformRemedy(platforms []Platform) string {
	var quoted []string
	for _, name := range platformNames(platforms) {
		quoted = append(quoted, strconv.Quote(name))
	}
	return "write platform = " + strings.Replace(strings.Join(quoted, " or "), " or ", ", or ", 1)
}
