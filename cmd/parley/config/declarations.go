package config

import (
	"slices"
	"strings"
	"time"
)

// A kind says how the value of a setting is written.
type kind int

const (
	asText        kind = iota // a string
	asPath                    // a path, relative to the file's folder
	asURL                     // a URL of one of the setting's schemes
	asListen                  // HOST:PORT, or "" for off
	asDuration                // a string like "10s" or "2d"
	asCount                   // an integer
	asTruth                   // true or false
	asMoney                   // dollars: 2 or 2.0
	asTexts                   // a list of strings
	asPaths                   // a list of paths, each relative to the file's folder
	asPeople                  // a list of strings or integers
	asPlaces                  // targets or addresses: a string or a list of them
	asChats                   // a list of ids of chats, or of { chat = …, mention = … }
	asRoutes                  // a list of { match = {…}, to = … }
	asAgentRoutes             // a list of { match = { chat, user, mention }, agent = … }
	asOpaque                  // a table that is accepted as it is, because only a later release reads it
)

// Names to which the program itself gives a meaning.
const (
	MainAgent = "main" // the agent that is always there

	defaults = "defaults" // [agents.defaults]: what all agents start from
	demoName = "demo"     // the built-in model

	alertmanager = "alertmanager"
	github       = "github"
)

// The values of since: the release from which on a setting, or one of its values, has an effect.
const (
	first  = "0.1"           // the first release
	notYet = "no effect yet" // the setting is accepted, and the operator is told that it has no effect
)

// A reloading says when a changed setting takes effect: SIGHUP makes a running server read the
// file again.
type reloading int

const (
	afterRestart reloading = iota
	atOnce
	// withChannels means at once if no channel was added to the file or removed from it.
	// Otherwise the changed setting may name a channel that does not run yet, and so takes effect
	// only at the next restart.
	withChannels
	// withAgents means at once if no agent was added or removed, for the same reason.
	withAgents
)

// A setting declares one key that the file may hold. Everything that is known about a
// setting is here, for reading, checking, showing, filling in and reloading it.
type setting struct {
	// key is the setting's name in its table. A dot in it stands for a table below:
	// "shell.timeout" in [agents.NAME] is timeout in [agents.NAME.shell].
	key        string
	kind       kind
	def        any      // the default as decode returns it, or a homePath; nil means none
	least      int64    // of a number; micro-dollars for money, nanoseconds for durations
	large      bool     // a count that may pass 32 bits
	zeroIsOff  bool     // of a number: its smallest value is 0, which means none at all
	oneOf      []choice // the only values
	schemes    []string // of a URL
	parameters []string // the query parameters that a URL may have
	env        string   // the environment variable that fills it if the file does not
	inChat     bool     // a mistake in that variable stops the command "parley chat" too
	example    string   // as it is written in a file; "" means the default
	secret     bool
	mayBeEmpty bool // of a secret: "" means that none is sent
	since      string
	reload     reloading
	// fills returns a pointer to the field of dest that gets the value. dest is the Config, or what
	// the table describes (an *Agent, a *Channel …).
	fills func(dest any) any
}

// into makes the function for a setting's fills from a function that returns a pointer to a field
// of a T.
func into[T any](field func(*T) any) func(any) any {
	return func(dest any) any { return field(dest.(*T)) }
}

// A homePath is the default of a setting that holds a path: a file or folder of that name in the home.
type homePath string

// A choice is a value that a setting can have, and the first release in which it has an effect;
// notYet if it is planned only, so that who writes it is told so.
type choice struct{ name, since string }

// built makes choices that have an effect since the first release.
func built(names ...string) []choice {
	var all []choice
	for _, name := range names {
		all = append(all, choice{name, first})
	}
	return all
}

// hasNoEffectYet reports whether no release reads the setting yet.
func (s setting) hasNoEffectYet() bool { return s.since == notYet }

// words returns the values that the setting can have; nil means that any value is possible.
func (s setting) words() []string {
	var words []string
	for _, c := range s.oneOf {
		words = append(words, c.name)
	}
	return words
}

// hasNoEffectYetAs reports whether this value of the setting has no effect yet.
func (s setting) hasNoEffectYetAs(word string) bool {
	return slices.Contains(s.oneOf, choice{word, notYet})
}

// exampleValue returns an example of the setting's value, in TOML.
func (s setting) exampleValue() string {
	if s.example == "" {
		return toTOML((&value{set: &s, v: s.def}).shown())
	}
	return s.example
}

// mayOmitHost reports whether an address may leave its host out: a PostgreSQL socket is
// named by a parameter.
func (s setting) mayOmitHost() bool { return slices.Contains(s.schemes, "postgres") }

// A section is a table of the file, such as [model], or all tables of a kind, such as
// [channels.NAME].
type section struct {
	name   string
	named  bool      // the operator names its tables: [channels.NAME]
	byName string    // the key that gets the table's own name as its value if it is left out
	reload reloading // when a table that was added to the file or removed from it takes effect
	// settings are in the order in which they are shown.
	settings []setting
}

// keysAreNames reports whether the operator names the section's keys themselves:
// [targets].
func (s section) keysAreNames() bool {
	return s.named && len(s.settings) == 1 && s.settings[0].key == ""
}

// depth returns how many names stand before a setting's key in its path: the section's name and,
// if the operator names its tables, the table's.
func (s section) depth() int {
	if s.named {
		return 2
	}
	return 1
}

// hasNoEffectYet reports whether no release reads any setting of the section yet.
func (s section) hasNoEffectYet() bool {
	return !slices.ContainsFunc(s.settings, func(set setting) bool { return !set.hasNoEffectYet() })
}

// find returns the section's setting with that key; nil if there is none.
func (s section) find(key string) *setting {
	for i := range s.settings {
		if s.settings[i].key == key {
			return &s.settings[i]
		}
	}
	return nil
}

// keys returns the keys directly in the section's table, or in one of the tables below
// it: "" is the section's table itself, "shell" the one of "shell.timeout". It returns
// none for a table that does not exist.
func (s section) keys(table string) []string {
	var keys []string
	for _, set := range s.settings {
		rest := set.key
		if table != "" {
			var inside bool
			if rest, inside = strings.CutPrefix(rest, table+"."); !inside {
				continue
			}
		}
		key, _, _ := strings.Cut(rest, ".")
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// declarations returns every setting, in the order in which they are shown. A section
// that has a file of its own (agents.go, tools.go …) is declared there, below the type
// that its settings fill; the others are declared here. A new setting needs its line, the
// field that it fills, and its line in docs/configuration.md. The platforms are those
// that a channel can be on.
func declarations(platforms []Platform) []section {
	return slices.Concat(processSections(), agentSections(), channelSections(platformNames(platforms)), httpSections(), toolSections(), sandboxSections(), jobSections(), mcpSections(), skillSections(), webSections(), transcribeSections(), auditSections(), scheduleSections(), budgetSections())
}

func processSections() []section {
	return []section{
		{name: "bus", settings: []setting{
			{key: "url", kind: asURL, schemes: []string{"redis", "rediss"}, env: "REDIS_URL", example: `"redis://127.0.0.1:6379"`,
				since: first, fills: into(func(c *Config) any { return &c.Bus.URL })},
			{key: "prefix", kind: asText, example: `"parley"`, since: first, fills: into(func(c *Config) any { return &c.Bus.Prefix })},
		}},
		{name: "store", settings: []setting{
			{key: "url", kind: asURL, schemes: []string{"postgres", "postgresql"}, env: "DATABASE_URL", example: `"postgres://127.0.0.1/parley"`,
				since: first, fills: into(func(c *Config) any { return &c.Store.URL })},
		}},
		{name: "workspace", settings: []setting{
			{key: "root", kind: asPath, def: homePath("workspaces"), example: `"workspaces"`,
				since: first, fills: into(func(c *Config) any { return &c.Workspace.Root })},
			{key: "max_mb", kind: asCount, def: int64(200), least: 1, since: first, fills: into(func(c *Config) any { return &c.Workspace.MaxMB })},
			{key: "undo_turns", kind: asCount, def: int64(20), zeroIsOff: true, since: first, fills: into(func(c *Config) any { return &c.Workspace.UndoTurns })},
		}},
		{name: "serve", settings: []setting{
			{key: "drain", kind: asDuration, def: 10 * time.Second, least: int64(time.Millisecond),
				since: first, fills: into(func(c *Config) any { return &c.Serve.Drain })},
			{key: "max_in_flight", kind: asCount, def: int64(4096), least: 1, since: first, fills: into(func(c *Config) any { return &c.Serve.MaxInFlight })},
		}},
		{name: "log", settings: []setting{
			{key: "level", kind: asText, def: "info", oneOf: built("debug", "info", "warn", "error"),
				since: first, fills: into(func(c *Config) any { return &c.Log.Level })},
			{key: "format", kind: asText, oneOf: built("text", "json"), example: `"json"`, since: first, fills: into(func(c *Config) any { return &c.Log.Format })},
		}},
		{name: "limits", settings: limitSettings()},
		{name: "approvals", settings: approvalSettings()},
		{name: "notices", settings: noticeSettings()},
	}
}

func limitSettings() []setting {
	return []setting{
		{key: "user_turns", kind: asCount, def: int64(3), least: 1,
			since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Limits.UserTurns })},
		{key: "user_turns_hour", kind: asCount, def: int64(120), least: 1,
			since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Limits.UserTurnsHour })},
		{key: "user_tokens_day", kind: asCount, def: int64(5_000_000), least: 1, large: true,
			since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Limits.UserTokensDay })},
		{key: "waiting", kind: asCount, def: int64(20), least: 1, since: first, fills: into(func(c *Config) any { return &c.Limits.Waiting })},
		{key: "outbound", kind: asCount, def: int64(100_000), least: 1, since: first, fills: into(func(c *Config) any { return &c.Limits.Outbound })},
	}
}

func channelSections(platforms []string) []section {
	return []section{
		{name: "channels", named: true, byName: "platform", settings: []setting{
			{key: "platform", kind: asText, oneOf: built(platforms...), example: `"telegram"`, since: first, fills: into(func(c *Channel) any { return &c.Platform })},
			{key: "mode", kind: asText, def: "chat", oneOf: built("chat", "send"), example: `"send"`, since: first, fills: into(func(c *Channel) any { return &c.Mode })},
			{key: botToken, kind: asText, secret: true, example: `"${TELEGRAM_BOT_TOKEN}"`, since: first, fills: into(func(c *Channel) any { return &c.BotToken })},
			{key: "app_token", kind: asText, secret: true, example: `"${SLACK_APP_TOKEN}"`, since: first, fills: into(func(c *Channel) any { return &c.AppToken })},
			{key: "receive", kind: asText, oneOf: built("socket", "poll", byHTTP), example: `"http"`, since: first, fills: into(func(c *Channel) any { return &c.Receive })},
			{key: "signing_secret", kind: asText, secret: true, example: `"${SLACK_SIGNING_SECRET}"`, since: first, fills: into(func(c *Channel) any { return &c.SigningSecret })},
			{key: "public_url", kind: asURL, schemes: []string{"http", "https"}, example: `"https://bot.example.com"`,
				since: first, fills: into(func(c *Channel) any { return &c.PublicURL })},
			{key: "api_url", kind: asURL, schemes: []string{"http", "https"}, example: `"http://127.0.0.1:8081"`,
				since: first, fills: into(func(c *Channel) any { return &c.APIURL })},
			{key: "access", kind: asText, def: "pairing", oneOf: built("pairing", "list", "members", "open"),
				since: first, reload: atOnce, fills: into(func(c *Channel) any { return &c.Access.Policy })},
			{key: "allow_from", kind: asPeople, def: []string{}, example: `["42"]`,
				since: first, reload: atOnce, fills: into(func(c *Channel) any { return &c.Access.AllowFrom })},
			{key: "owners", kind: asPeople, def: []string{}, example: `["42"]`,
				since: first, reload: atOnce, fills: into(func(c *Channel) any { return &c.Access.Owners })},
			{key: "approvers", kind: asPeople, example: `["42"]`,
				since: first, reload: atOnce, fills: into(func(c *Channel) any { return &c.Access.Approvers })},
			{key: "chats", kind: asChats, example: `["C1", { chat = "C2", mention = "always" }]`,
				since: first, reload: atOnce, fills: into(func(c *Channel) any { return &c.Access.Chats })},
			{key: "mention", kind: asText, def: "threads", oneOf: built(mentions()...), example: `"always"`,
				since: first, reload: atOnce, fills: into(func(c *Channel) any { return &c.Access.Mention })},
			{key: "rate_limit", kind: asText, def: "platform", oneOf: built("platform", "none"), since: first, fills: into(func(c *Channel) any { return &c.RateLimit })},
			{key: "on_unknown", kind: asText, def: "resend", oneOf: built("resend", "drop"), example: `"drop"`,
				since: first, fills: into(func(c *Channel) any { return &c.OnUnknown })},
			{key: "stream", kind: asText, def: "auto", oneOf: built("auto", "edit", "off"), since: first, fills: into(func(c *Channel) any { return &c.Stream })},
			{key: "files_mb", kind: asCount, def: int64(DefaultFilesMB), least: 1, since: first, reload: atOnce, fills: into(func(c *Channel) any { return &c.FilesMB })},
			{key: "agent", kind: asText, def: MainAgent, since: first, fills: into(func(c *Channel) any { return &c.Agent })},
			{key: "routes", kind: asAgentRoutes, example: `[{ match = { mention = "ops" }, agent = "ops" }]`,
				since: first, reload: withAgents, fills: into(func(c *Channel) any { return &c.Routes })},
			{key: "history", kind: asCount, def: int64(DefaultHistory), zeroIsOff: true, since: first, reload: atOnce, fills: into(func(c *Channel) any { return &c.History })},
			{key: "reactions", kind: asText, def: ReactionsThumbs, oneOf: built(ReactionsThumbs, ReactionsAll), example: `"all"`,
				since: first, reload: atOnce, fills: into(func(c *Channel) any { return &c.Reactions })},
			{key: "introduce", kind: asText, def: IntroduceOnce, oneOf: built(IntroduceOnce, IntroduceNever), example: `"never"`,
				since: first, reload: atOnce, fills: into(func(c *Channel) any { return &c.Introduce })},
			{key: "about", kind: asText, example: `"Run by the IT desk: it@example.com"`,
				since: first, reload: atOnce, fills: into(func(c *Channel) any { return &c.About })},
			{key: "session", kind: asText, def: SessionThread, oneOf: built(SessionThread, SessionChannel, SessionUser), example: `"user"`,
				since: first, fills: into(func(c *Channel) any { return &c.Session })},
		}},
		{name: "targets", named: true, reload: withChannels, settings: []setting{
			{kind: asPlaces, example: `["telegram:42"]`, since: first, reload: withChannels},
		}},
	}
}

func httpSections() []section {
	return []section{
		{name: "http", settings: []setting{
			{key: "listen", kind: asListen, def: "127.0.0.1:7275", since: first, fills: into(func(c *Config) any { return &c.HTTP.Listen })},
			{key: "hosts", kind: asTexts, def: []string{}, example: `["parley.internal"]`,
				since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.HTTP.Hosts })},
			{key: "public_url", kind: asURL, schemes: []string{"http", "https"}, example: `"https://bot.example.com"`,
				since: first, fills: into(func(c *Config) any { return &c.HTTP.PublicURL })},
		}},
		{name: "webhooks", named: true, byName: "kind", reload: withChannels, settings: []setting{
			{key: "kind", kind: asText, oneOf: built(alertmanager, github, "json"), example: `"alertmanager"`,
				since: first, reload: atOnce, fills: into(func(w *Webhook) any { return &w.Kind })},
			{key: "token", kind: asText, secret: true, example: `"${file:/run/secrets/webhook}"`,
				since: first, reload: atOnce, fills: into(func(w *Webhook) any { return &w.Token })},
			{key: "secret", kind: asText, secret: true, example: `"${file:/run/secrets/webhook}"`,
				since: first, reload: atOnce, fills: into(func(w *Webhook) any { return &w.Secret })},
			{key: "to", kind: asPlaces, example: `"oncall"`, since: first, reload: withChannels, fills: into(func(w *Webhook) any { return &w.To })},
			{key: "routes", kind: asRoutes, example: `[{ match = { severity = "critical" }, to = "oncall" }]`,
				since: first, reload: withChannels, fills: into(func(w *Webhook) any { return &w.Routes })},
			{key: "template", kind: asText, example: `"{{ .commonLabels.severity }}"`,
				since: first, reload: atOnce, fills: into(func(w *Webhook) any { return &w.Template })},
			{key: "agent", kind: asText, example: `"main"`, since: first, fills: into(func(w *Webhook) any { return &w.Agent })},
			{key: "group", kind: asText, example: `"{{ .build.id }}"`, since: first, reload: atOnce, fills: into(func(w *Webhook) any { return &w.Group })},
		}},
		{name: "tokens", named: true, reload: atOnce, settings: []setting{
			{key: "token", kind: asText, secret: true, example: `"${file:/run/secrets/ci}"`,
				since: first, reload: atOnce, fills: into(func(t *Token) any { return &t.Token })},
			{key: "may", kind: asTexts, example: `["send:oncall"]`, since: first, reload: atOnce, fills: into(func(t *Token) any { return &t.May })},
		}},
		{name: "retention", settings: []setting{
			{key: "days", kind: asCount, least: 1, example: `30`, since: first, fills: into(func(c *Config) any { return &c.Retention.Days })},
		}},
		{name: "knowledge", settings: []setting{
			{key: "dir", kind: asPath, example: `"knowledge"`, since: first, fills: into(func(c *Config) any { return &c.Knowledge.Dir })},
		}},
	}
}

func approvalSettings() []setting {
	return []setting{
		{key: "expires", kind: asDuration, def: 24 * time.Hour, least: int64(time.Second),
			since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Approvals.Expires })},
		{key: "to", kind: asPlaces, example: `"oncall"`, since: first, reload: withChannels, fills: into(func(c *Config) any { return &c.Approvals.To })},
	}
}

func noticeSettings() []setting {
	return []setting{
		{key: "to", kind: asPlaces, example: `"oncall"`, since: first, reload: withChannels, fills: into(func(c *Config) any { return &c.Tell.To })},
		{key: "after", kind: asDuration, def: 3 * time.Minute, least: int64(time.Second), since: first, fills: into(func(c *Config) any { return &c.Tell.After })},
	}
}

// A retiredKey is a key that was given up: for two releases it still works like its
// successor, with a warning.
type retiredKey struct {
	old string // section and key, as in "limits.turns"
	now string // the key of the same section that replaces it; "" if there is none
	tip string // what to write instead
}

// retired lists the keys that were given up. There are none yet.
func retired() []retiredKey { return nil }
