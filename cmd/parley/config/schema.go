package config

import (
	"slices"
	"time"
)

// A kind is how a setting is written.
type kind int

const (
	asText     kind = iota // a string
	asPath                 // a string, from the file's folder on
	asURL                  // a URL of one of the setting's schemes
	asListen               // HOST:PORT, or "" for off
	asDuration             // a string like "10s" or "2d"
	asCount                // an integer
	asMoney                // dollars: 2 or 2.0
	asTexts                // a list of strings
	asPeople               // a list of strings or integers
	asPlaces               // targets or addresses: a string or a list of them
	asRoutes               // a list of { match = {…}, to = … }
	asOpaque               // a table that a later release reads
)

// Names that the program itself gives a meaning.
const (
	telegram = "telegram"
	slack    = "slack"
	discord  = "discord"
	mainName = "main"     // the agent that is always there
	defaults = "defaults" // [agents.defaults]: what all agents start from
	demoName = "demo"     // the built-in model

	alertmanager = "alertmanager"
	github       = "github"
)

// A setting is one key that the file may hold.
type setting struct {
	key     string
	kind    kind
	def     any      // the default, decoded; nil is none
	least   int64    // of a number; micro-dollars for money, nanoseconds for durations
	oneOf   []string // the only values
	laterOf []string // those of them that have no effect yet
	schemes []string // of an address
	env     string   // the variable that fills it
	example string   // as it is written in a file
	secret  bool
	later   bool // not built yet: accepted, and told as without effect
	live    bool // a reload applies it; the rest needs a restart
}

// localHost says that an address may leave its host out: a PostgreSQL socket is
// named by a parameter.
func (s setting) localHost() bool { return slices.Contains(s.schemes, "postgres") }

// A section is a table of the file.
type section struct {
	name     string
	named    bool // its tables are called by the operator: [channels.NAME]
	live     bool // a reload opens and closes its tables
	settings []setting
}

// leaf says that the section's keys themselves are the operator's: [targets].
func (s section) leaf() bool { return s.named && len(s.settings) == 1 && s.settings[0].key == "" }

// later says that nothing of the section is built.
func (s section) later() bool {
	return !slices.ContainsFunc(s.settings, func(set setting) bool { return !set.later })
}

// find is the setting of that key, or nil.
func (s section) find(key string) *setting {
	for i := range s.settings {
		if s.settings[i].key == key {
			return &s.settings[i]
		}
	}
	return nil
}

// keys are what the section knows.
func (s section) keys() []string {
	var keys []string
	for _, set := range s.settings {
		keys = append(keys, set.key)
	}
	return keys
}

// schema is every setting there is, in the order in which they are shown. A
// later release makes one work by taking `later` off its line.
func schema() []section {
	return slices.Concat(processSections(), agentSections(), channelSections(), frontSections(), laterSections())
}

func processSections() []section {
	return []section{
		{name: "bus", settings: []setting{
			{key: "url", kind: asURL, schemes: []string{"redis", "rediss"}, env: "REDIS_URL", example: `"redis://127.0.0.1:6379"`},
			{key: "prefix", kind: asText, example: `"parley"`},
		}},
		{name: "store", settings: []setting{
			{key: "url", kind: asURL, schemes: []string{"postgres", "postgresql"}, env: "DATABASE_URL", example: `"postgres://127.0.0.1/parley"`},
		}},
		{name: "workspace", settings: []setting{
			{key: "root", kind: asPath, example: `"workspaces"`},
			{key: "max_mb", kind: asCount, def: int64(200), least: 1, example: `200`},
		}},
		{name: "serve", settings: []setting{
			{key: "drain", kind: asDuration, def: 10 * time.Second, least: int64(time.Millisecond), example: `"10s"`},
			{key: "max_in_flight", kind: asCount, def: int64(4096), least: 1, example: `4096`},
		}},
		{name: "log", settings: []setting{
			{key: "level", kind: asText, def: "info", oneOf: []string{"debug", "info", "warn", "error"}, example: `"info"`},
			{key: "format", kind: asText, oneOf: []string{"text", "json"}, example: `"json"`},
		}},
		{name: "limits", settings: []setting{
			{key: "user_turns", kind: asCount, def: int64(3), least: 1, example: `3`, live: true},
			{key: "user_turns_hour", kind: asCount, def: int64(120), least: 1, example: `120`, live: true},
			{key: "user_tokens_day", kind: asCount, def: int64(5_000_000), least: 1, example: `5000000`, live: true},
			{key: "waiting", kind: asCount, def: int64(20), least: 1, example: `20`},
			{key: "outbound", kind: asCount, def: int64(100_000), least: 1, example: `100000`},
		}},
	}
}

func agentSections() []section {
	return []section{
		{name: "model", settings: []setting{
			{key: "name", kind: asText, env: "OPENAI_MODEL", example: `"gpt-5-mini"`},
			{key: "base_url", kind: asURL, schemes: []string{"http", "https"}, env: "OPENAI_BASE_URL", example: `"http://127.0.0.1:11434/v1"`},
			{key: "api_key", kind: asText, secret: true, env: "OPENAI_API_KEY", example: `"${OPENAI_API_KEY}"`},
		}},
		{name: "agents", named: true, settings: []setting{
			{key: "capabilities", kind: asTexts, def: []string{"file_read", "file_write"},
				oneOf:   []string{"file_read", "file_write", "shell", "network", "git", "session"},
				laterOf: []string{"shell", "network", "git", "session"},
				example: `["file_read", "file_write"]`},
			{key: "may_message", kind: asTexts, def: []string{}, example: `["oncall", "telegram:42"]`, live: true},
			{key: "max_tool_iterations", kind: asCount, def: int64(20), least: 1, example: `20`},
			{key: "tool_error_limit", kind: asCount, def: int64(3), least: 1, example: `3`},
			{key: "max_parallel_tools", kind: asCount, def: int64(5), least: 1, example: `5`},
			{key: "context_tokens", kind: asCount, def: int64(64_000), least: 1000, example: `64000`},
			{key: "queue", kind: asText, def: "steer", oneOf: []string{"steer", "followup"}, example: `"steer"`},
			{key: "prompt", kind: asText, later: true, example: `"You are …"`},
			{key: "model", kind: asText, later: true, example: `"gpt-5-mini"`},
		}},
	}
}

func channelSections() []section {
	return []section{
		{name: "channels", named: true, settings: []setting{
			{key: "platform", kind: asText, oneOf: []string{telegram, slack, discord}, example: `"telegram"`},
			{key: "mode", kind: asText, def: "chat", oneOf: []string{"chat", "send"}, example: `"send"`},
			{key: "bot_token", kind: asText, secret: true, example: `"${TELEGRAM_BOT_TOKEN}"`},
			{key: "app_token", kind: asText, secret: true, example: `"${SLACK_APP_TOKEN}"`},
			{key: "api_url", kind: asURL, schemes: []string{"http", "https"}, example: `"http://127.0.0.1:8081"`},
			{key: "access", kind: asText, def: "pairing", oneOf: []string{"pairing", "list", "members", "open"}, example: `"pairing"`, live: true},
			{key: "allow_from", kind: asPeople, def: []string{}, example: `["42"]`, live: true},
			{key: "owners", kind: asPeople, def: []string{}, example: `["42"]`, live: true},
			{key: "approvers", kind: asPeople, later: true, live: true, example: `["42"]`},
			{key: "rate_limit", kind: asText, def: "platform", oneOf: []string{"platform", "none"}, example: `"platform"`},
			{key: "on_unknown", kind: asText, def: "resend", oneOf: []string{"resend", "drop"}, example: `"drop"`},
			{key: "agent", kind: asText, def: mainName, example: `"main"`},
		}},
		{name: "targets", named: true, settings: []setting{
			{kind: asPlaces, example: `["telegram:42"]`, live: true},
		}},
	}
}

func frontSections() []section {
	return []section{
		{name: "http", settings: []setting{
			{key: "listen", kind: asListen, def: "127.0.0.1:7275", example: `"127.0.0.1:7275"`},
			{key: "hosts", kind: asTexts, def: []string{}, example: `["parley.internal"]`, live: true},
		}},
		{name: "webhooks", named: true, live: true, settings: []setting{
			{key: "kind", kind: asText, oneOf: []string{alertmanager, github, "json"}, example: `"alertmanager"`, live: true},
			{key: "token", kind: asText, secret: true, example: `"${file:/run/secrets/webhook}"`, live: true},
			{key: "secret", kind: asText, secret: true, example: `"${file:/run/secrets/webhook}"`, live: true},
			{key: "to", kind: asPlaces, example: `"oncall"`, live: true},
			{key: "routes", kind: asRoutes, example: `[{ match = { severity = "critical" }, to = "oncall" }]`, live: true},
			{key: "template", kind: asText, example: `"{{ .commonLabels.severity }}"`, live: true},
		}},
		{name: "tokens", named: true, live: true, settings: []setting{
			{key: "token", kind: asText, secret: true, example: `"${file:/run/secrets/ci}"`, live: true},
			{key: "may", kind: asTexts, example: `["send:oncall"]`, live: true},
		}},
		{name: "retention", settings: []setting{
			{key: "days", kind: asCount, least: 1, example: `30`},
		}},
	}
}

func laterSections() []section {
	return []section{
		{name: "tools", settings: []setting{
			{key: "mcp_servers", kind: asOpaque, later: true, example: `{ … }`},
		}},
		{name: "budget", settings: []setting{
			{key: "user_day", kind: asMoney, least: 1, later: true, example: `2.0`},
			{key: "day", kind: asMoney, least: 1, later: true, example: `20.0`},
			{key: "month", kind: asMoney, least: 1, later: true, example: `300.0`},
		}},
	}
}

// A key that was given up: it still works as its successor says, and warns for
// two releases.
type retiredKey struct {
	old string // section and key, as in "limits.turns"
	now string // the key of the same section that took its place; "" is none
	tip string // what to write instead
}

// retired lists the keys that were given up. There are none yet.
func retired() []retiredKey { return nil }

// tokenVars are the variables that switch a platform on where there is no file,
// and fill its missing tokens where there is one.
func tokenVars(platform string) map[string]string {
	switch platform {
	case telegram:
		return map[string]string{"bot_token": "TELEGRAM_BOT_TOKEN"}
	case slack:
		return map[string]string{"bot_token": "SLACK_BOT_TOKEN", "app_token": "SLACK_APP_TOKEN"}
	case discord:
		return map[string]string{"bot_token": "DISCORD_BOT_TOKEN"}
	}
	return nil
}
