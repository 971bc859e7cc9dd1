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

// config makes the typed form of the values.
func (k *kept) config() (*Config, error) {
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
	shareOut(k, c.MCP, c.Agents)
	c.Tokens = filled(k, "tokens", func(name string) Token { return Token{Name: name} })
	c.Limits.TokensWritten = k.written("limits.user_tokens_day")
	c.Budget.Written = k.capped()
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

// written tells whether a setting is the operator's own.
func (k *kept) written(path string) bool {
	v, ok := k.values[path]
	return ok && v.from != (origin{})
}

// capped tells whether the operator bounds what models may cost.
func (k *kept) capped() bool {
	for _, key := range []string{"user_day", "session_day", "day", "month"} {
		if k.written("budget." + key) {
			return true
		}
	}
	if k.written("heartbeat.day") {
		return true
	}
	return slices.ContainsFunc(k.names["agents"], func(name string) bool { return k.written("agents." + name + ".day") })
}

// filled makes the T of each table of a section.
func filled[T any](k *kept, tables string, empty func(name string) T) map[string]T {
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
func (k *kept) fill(sec *section, table string, owner any) {
	for i := range sec.settings {
		set := &sec.settings[i]
		if v, ok := k.values[table+"."+set.key]; ok && set.fills != nil {
			put(set.fills(owner), v.v)
		}
	}
}

// put stores a decoded value where a declaration points to.
func put(field, v any) {
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
			if set.laterWord(s) {
				tell(l.element(path, j), path, strconv.Quote(s)+": "+notYet)
			}
		}
	}
}
