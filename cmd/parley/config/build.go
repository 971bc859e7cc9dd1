package config

import (
	"cmp"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"parley/bus"
	"parley/tools"
)

// parsed has the values from which a Config was made, for showing it and for comparing it
// with the next one.
type parsed struct {
	file, home string
	sought     Sought
	sections   []section
	names      map[string][]string // of the tables that operators name, sorted
	values     map[string]*value   // complete with defaults, by path
	notices    []string
	serving    []Problem
	answering  []Problem
}

func (l *loader) build() (*Config, error) {
	k := &parsed{home: l.home, sought: l.sought, sections: l.sections, names: l.names, values: l.values, serving: l.serving, answering: l.answering}
	if l.file != "" {
		k.file = filepath.Join(l.folder, filepath.Base(l.file))
	}
	k.notices = slices.Concat(l.warnings, l.withoutEffect(), l.exposed())
	return k.config()
}

// config makes a Config of the values.
func (k *parsed) config() (*Config, error) {
	c := &Config{File: k.file, Home: k.home, Sought: k.sought, kept: k, Targets: map[string][]bus.Address{}}
	for i := range k.sections {
		if sec := &k.sections[i]; !sec.named {
			k.fill(sec, sec.name, c)
		}
	}
	c.Agents = filled(k, "agents", func(name string) Agent { return Agent{Name: name} })
	c.Models = filled(k, "models", func(string) Model { return Model{Configured: true} })
	c.Channels = filled(k, "channels", func(name string) Channel { return Channel{Name: name} })
	c.Webhooks = filled(k, "webhooks", func(name string) Webhook { return Webhook{Name: name} })
	c.MCP = filled(k, "mcp", func(name string) MCPServer { return MCPServer{Name: name} })
	assignServers(k, c.MCP, c.Agents)
	c.Tokens = filled(k, "tokens", func(name string) Token { return Token{Name: name} })
	c.Limits.TokensWritten = k.isSet("limits.user_tokens_day")
	c.Budget.Written = k.capsCost()
	for name, channel := range c.Channels {
		channel.PublicURL = cmp.Or(channel.PublicURL, c.HTTP.PublicURL)
		c.Channels[name] = channel
	}
	if c.Model.Name == demoName {
		c.Model = Model{Demo: true}
	}
	c.Model.Configured = c.Model.Demo || c.Model.BaseURL != "" || c.Model.APIKey != ""
	for _, name := range k.names["targets"] {
		for _, s := range k.values["targets."+name].v.([]string) {
			to, err := bus.ParseAddress(s)
			if err != nil {
				return nil, fmt.Errorf("target %s: %w", name, err)
			}
			c.Targets[name] = append(c.Targets[name], to)
		}
	}
	return c, nil
}

// isSet reports whether the operator has set a setting.
func (k *parsed) isSet(path string) bool {
	v, ok := k.values[path]
	return ok && v.from != (origin{})
}

// capsCost reports whether the operator has bounded what models may cost.
func (k *parsed) capsCost() bool {
	for _, key := range []string{"user_day", "session_day", "day", "month"} {
		if k.isSet("budget." + key) {
			return true
		}
	}
	if k.isSet("heartbeat.day") {
		return true
	}
	return slices.ContainsFunc(k.names["agents"], func(name string) bool { return k.isSet("agents." + name + ".day") })
}

// filled makes a T of each table of a section, by name.
func filled[T any](k *parsed, tables string, empty func(name string) T) map[string]T {
	i := slices.IndexFunc(k.sections, func(s section) bool { return s.name == tables })
	all := map[string]T{}
	for _, name := range k.names[tables] {
		one := empty(name)
		k.fill(&k.sections[i], tables+"."+name, &one)
		all[name] = one
	}
	return all
}

// fill puts the values of a table's settings into the fields of its owner.
func (k *parsed) fill(sec *section, table string, owner any) {
	for i := range sec.settings {
		set := &sec.settings[i]
		if v, ok := k.values[table+"."+set.key]; ok && set.fills != nil {
			store(set.fills(owner), v.v)
		}
	}
}

// store assigns a decoded value to the field that a declaration points to.
func store(field, v any) {
	switch f := field.(type) {
	case *string:
		*f = v.(string)
	case *Secret:
		*f = Secret(v.(string))
	case *int:
		*f = int(v.(int64))
	case *bool:
		*f = v.(bool)
	case *int64:
		*f = v.(int64)
	case *time.Duration:
		*f = v.(time.Duration)
	case *[]string:
		*f = v.([]string)
	case *[]tools.Permission:
		*f = nil
		for _, name := range v.([]string) {
			*f = append(*f, tools.Permission(name))
		}
	case *[]Chat:
		*f = v.([]Chat)
	case *[]Route:
		*f = v.([]Route)
	case *slog.Level:
		if err := f.UnmarshalText([]byte(v.(string))); err != nil {
			panic(fmt.Sprintf("a level is declared that the log does not have: %v", err))
		}
	default:
		panic(fmt.Sprintf("a setting fills a field of type %T, which put does not know", field))
	}
}

// CheckServe returns what keeps a server from starting although other commands can work:
// channels that hear people while no model answers them, and mistakes in variables that
// only a server needs. Its error is an *Error.
func (c *Config) CheckServe() error {
	return problems(slices.Concat(c.kept.serving, c.kept.answering))
}

// CheckGateway is CheckServe for a process whose channels are answered by others.
func (c *Config) CheckGateway() error { return problems(c.kept.serving) }

// Notices returns what the operator should know, one line each: settings without effect
// yet, keys that will be removed, a key that is not used.
func (c *Config) Notices() []string { return c.kept.notices }

// settingTableNames returns the names of the section's tables that can hold settings.
func (l *loader) settingTableNames(sec *section) []string {
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

// withoutEffect returns a notice for each setting that is set but has no effect yet, or
// one for the whole table if none of its settings has an effect.
func (l *loader) withoutEffect() []string {
	var notices []string
	tell := func(at origin, key, what string) {
		notices = append(notices, at.at(key, &fault{wrong: what}).String())
	}
	for i := range l.sections {
		sec := &l.sections[i]
		for _, table := range l.settingTableNames(sec) {
			at, written := l.places[table]
			switch {
			case written && sec.hasNoEffectYet():
				tell(at, "["+table+"]", notYet)
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
		if written && set.hasNoEffectYet() {
			tell(at, path, notYet)
		}
		if !written || !slices.ContainsFunc(set.oneOf, func(c choice) bool { return c.since == notYet }) {
			continue
		}
		for j, s := range l.list(path) {
			if set.hasNoEffectYetAs(s) {
				tell(l.element(path, j), path, strconv.Quote(s)+": "+notYet)
			}
		}
	}
}
