package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"parley/bus"
	"parley/tools"
)

// kept is what a Config was made of: for showing it, and for comparing it with
// the next one.
type kept struct {
	file, home string
	sought     Sought
	sections   []section
	names      map[string][]string // of the tables that operators name, sorted
	values     map[string]*value   // complete, by path
	notices    []string
	serving    []Problem
	answering  []Problem
}

func (l *loader) build() (*Config, error) {
	k := &kept{home: l.home, sought: l.sought, sections: l.sections, names: l.names, values: l.values, serving: l.serving, answering: l.answering}
	if l.file != "" {
		k.file = filepath.Join(l.folder, filepath.Base(l.file))
	}
	k.notices = slices.Concat(l.warnings, l.withoutEffect(), l.exposed())
	return k.config()
}

func (k *kept) str(path string) string {
	if v, ok := k.values[path]; ok {
		return v.v.(string)
	}
	return ""
}

func (k *kept) num(path string) int {
	if v, ok := k.values[path]; ok {
		return int(v.v.(int64))
	}
	return 0
}

func (k *kept) list(path string) []string {
	if v, ok := k.values[path]; ok {
		return v.v.([]string)
	}
	return nil
}

// config makes the typed form of the values.
func (k *kept) config() (*Config, error) {
	c := &Config{
		File: k.file, Home: k.home, Sought: k.sought, kept: k,
		Serve: Serve{MaxInFlight: k.num("serve.max_in_flight"), Drain: k.values["serve.drain"].v.(time.Duration)},
		Log:   Log{Format: k.str("log.format")},
		Limits: Limits{
			UserTurns: k.num("limits.user_turns"), UserTurnsHour: k.num("limits.user_turns_hour"),
			UserTokensDay: k.values["limits.user_tokens_day"].v.(int64),
			Waiting:       k.num("limits.waiting"), Outbound: k.num("limits.outbound"),
		},
		Model:  k.model(),
		Agents: map[string]Agent{}, Channels: map[string]Channel{}, Targets: map[string][]bus.Address{},
		Front: k.front(),
		Keeping: Keeping{
			Workspace: Workspace{Root: k.str("workspace.root"), MaxMB: k.num("workspace.max_mb")},
			Bus:       Bus{URL: Secret(k.str("bus.url")), Prefix: k.str("bus.prefix")},
			Store:     Store{URL: Secret(k.str("store.url"))},
			Retention: Retention{Days: k.num("retention.days")},
		},
	}
	if err := c.Log.Level.UnmarshalText([]byte(k.str("log.level"))); err != nil {
		return nil, fmt.Errorf("log level: %w", err)
	}
	for _, name := range k.names["agents"] {
		c.Agents[name] = k.agent(name)
	}
	for _, name := range k.names["channels"] {
		c.Channels[name] = k.channel(name)
	}
	for _, name := range k.names["targets"] {
		for _, s := range k.list("targets." + name) {
			to, err := bus.ParseAddress(s)
			if err != nil {
				return nil, fmt.Errorf("target %s: %w", name, err)
			}
			c.Targets[name] = append(c.Targets[name], to)
		}
	}
	return c, nil
}

func (k *kept) model() Model {
	m := Model{Name: k.str("model.name"), BaseURL: k.str("model.base_url"), APIKey: Secret(k.str("model.api_key"))}
	if m.Name == demoName {
		return Model{Demo: true, Configured: true}
	}
	m.Configured = m.BaseURL != "" || m.APIKey != ""
	return m
}

func (k *kept) agent(name string) Agent {
	at := "agents." + name + "."
	a := Agent{
		Name:              name,
		MayMessage:        k.list(at + "may_message"),
		MaxToolIterations: k.num(at + "max_tool_iterations"),
		ToolErrorLimit:    k.num(at + "tool_error_limit"),
		MaxParallelTools:  k.num(at + "max_parallel_tools"),
		ContextTokens:     k.num(at + "context_tokens"),
		Queue:             k.str(at + "queue"),
		Prompt:            k.str(at + "prompt"),
		Model:             k.str(at + "model"),
	}
	for _, c := range k.list(at + "capabilities") {
		a.Capabilities = append(a.Capabilities, tools.Permission(c))
	}
	return a
}

func (k *kept) channel(name string) Channel {
	at := "channels." + name + "."
	return Channel{
		Name:     name,
		Platform: k.str(at + "platform"),
		Mode:     k.str(at + "mode"),
		BotToken: Secret(k.str(at + "bot_token")),
		AppToken: Secret(k.str(at + "app_token")),
		APIURL:   k.str(at + "api_url"),
		Access: Access{
			Policy:    k.str(at + "access"),
			AllowFrom: k.list(at + "allow_from"),
			Owners:    k.list(at + "owners"),
			Approvers: k.list(at + "approvers"),
		},
		RateLimit: k.str(at + "rate_limit"),
		OnUnknown: k.str(at + "on_unknown"),
		Agent:     k.str(at + "agent"),
	}
}

// CheckServe says what stops a server that every other command can live with:
// channels that hear people while no model answers them, and what is wrong with
// variables that only a server needs. Its error is an *Error.
func (c *Config) CheckServe() error {
	return problems(slices.Concat(c.kept.serving, c.kept.answering))
}

// CheckGateway is CheckServe for a process whose channels are answered by others.
func (c *Config) CheckGateway() error { return problems(c.kept.serving) }

// Notices are what the operator should know, one line each: settings without
// effect yet, keys that are going away, a key that is not used.
func (c *Config) Notices() []string { return c.kept.notices }

// noEffect is what is said of a setting that is not built yet.
const noEffect = "no effect yet"

// tables are the section's tables that can hold settings.
func (l *loader) tables(sec *section) []string {
	if !sec.named {
		return []string{sec.name}
	}
	var tables []string
	for _, name := range l.names[sec.name] {
		tables = append(tables, sec.name+"."+name)
	}
	if sec.name == "agents" {
		tables = append(tables, "agents."+defaults)
	}
	return tables
}

// withoutEffect names what is set and not built yet, a table at a time where
// nothing of it is.
func (l *loader) withoutEffect() []string {
	var notices []string
	tell := func(at origin, key, what string) {
		notices = append(notices, at.at(key, &fault{wrong: what}).String())
	}
	for i := range l.sections {
		sec := &l.sections[i]
		for _, table := range l.tables(sec) {
			at, written := l.places[table]
			channel := Channel{Platform: l.str(table + ".platform"), Mode: l.str(table + ".mode")}
			switch {
			case written && sec.later():
				tell(at, "["+table+"]", noEffect)
			case sec.name == "channels" && !channel.Built():
				tell(at, "["+table+"]", "platform "+channel.Platform+" has only mode = \"send\": "+noEffect)
			default:
				l.settingsWithout(sec, table, tell)
			}
		}
	}
	return notices
}

func (l *loader) settingsWithout(sec *section, table string, tell func(at origin, key, what string)) {
	for i := range sec.settings {
		set := &sec.settings[i]
		path := table + "." + set.key
		at, written := l.places[path]
		if written && set.later {
			tell(at, path, noEffect)
		}
		if !written || set.laterOf == nil {
			continue
		}
		for j, s := range l.list(path) {
			if slices.Contains(set.laterOf, s) {
				tell(l.element(path, j), path, strconv.Quote(s)+": "+noEffect)
			}
		}
	}
}
