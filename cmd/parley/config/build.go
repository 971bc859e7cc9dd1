package config

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/bus"
	"parley/tools"
)

// parsedSettings are the values from which a Config was made, kept so that the Config can be shown,
// and compared with the next one when the file is read again.
type parsedSettings struct {
	file, home string
	fileSearch FileSearch
	sections   []section
	names      map[string][]string // the names that operators have given to tables of a section, by section, sorted
	values     map[string]*value   // complete with defaults, by path
	notices    []string
	serving    []Problem
	answering  []Problem
}

func (l *loader) build() (*Config, error) {
	k := &parsedSettings{home: l.home, fileSearch: l.fileSearch, sections: l.sections, names: l.names, values: l.values, serving: l.serving, answering: l.answering}
	if l.file != "" {
		k.file = filepath.Join(l.folder, filepath.Base(l.file))
	}
	k.notices = slices.Concat(l.warnings, l.withoutEffect(), l.exposed())
	return k.config()
}

// config makes a Config of the values.
func (k *parsedSettings) config() (*Config, error) {
	c := &Config{File: k.file, Home: k.home, FileSearch: k.fileSearch, kept: k, Targets: map[string][]bus.Address{}}
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
func (k *parsedSettings) isSet(path string) bool {
	v, ok := k.values[path]
	return ok && v.from != (origin{})
}

// capsCost reports whether the operator has set any bound on what models may cost.
func (k *parsedSettings) capsCost() bool {
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

// filled makes, for each table that the operator has named in a section, a T with the table's
// values. It returns them by the table's name; empty makes the T before it is filled.
func filled[T any](k *parsedSettings, tables string, empty func(name string) T) map[string]T {
	i := slices.IndexFunc(k.sections, func(s section) bool { return s.name == tables })
	all := map[string]T{}
	for _, name := range k.names[tables] {
		one := empty(name)
		k.fill(&k.sections[i], tables+"."+name, &one)
		all[name] = one
	}
	return all
}

// fill puts the values of a table's settings into the fields of dest, which the table describes: the
// Config, or for example an *Agent.
func (k *parsedSettings) fill(sec *section, table string, dest any) {
	for i := range sec.settings {
		set := &sec.settings[i]
		if v, ok := k.values[table+"."+set.key]; ok && set.fills != nil {
			store(set.fills(dest), v.v)
		}
	}
}

// store assigns a decoded value to a field; field is a pointer to it, as the setting's
// declaration returns it.
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
	case *[]AgentRoute:
		*f = v.([]AgentRoute)
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

// CheckServe returns what keeps "parley serve" from starting although other commands can work:
// channels that hear people while no model answers them, and mistakes in variables that only a
// server needs. Its error is an *Error; nil if serve can start.
func (c *Config) CheckServe() error {
	return problems(slices.Concat(c.kept.serving, c.kept.answering))
}

// CheckGateway is CheckServe for a process that only connects channels, while other processes
// answer.
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

// withoutEffect returns a notice for each setting that the operator has set although it has no
// effect yet, or one for the whole table if none of its settings has an effect.
func (l *loader) withoutEffect() []string {
	var notices []string
	tell := func(at origin, key, what string) {
		notices = append(notices, at.problemAt(key, &fault{wrong: what}).String())
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

// Changes lists the settings in which two configurations differ, without their values.
type Changes struct {
	Live    []string // in effect at once
	Restart []string // in effect after a restart
}

// Reload compares the configuration that a running process has with the next one, which was read
// from the changed file. It returns old with those settings from next that can change while the
// process runs: who may talk, the limits on people, where agents may write, and who may send
// requests over HTTP. It also returns what differs. It changes neither old nor next.
func Reload(old, next *Config) (*Config, Changes, error) {
	r := reload{
		old: old.kept, next: next.kept, steady: slices.Equal(old.kept.names["channels"], next.kept.names["channels"]),
		sameAgents: slices.Equal(old.kept.names["agents"], next.kept.names["agents"]),
		values:     maps.Clone(old.kept.values), names: maps.Clone(old.kept.names),
	}
	r.addTables()
	paths := maps.Clone(r.old.values)
	maps.Copy(paths, r.next.values)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		r.setting(path, paths[path].set)
	}
	merged := *old.kept
	merged.values, merged.names = r.values, r.names
	merged.notices, merged.serving, merged.answering = next.kept.notices, next.kept.serving, next.kept.answering
	c, err := merged.config()
	return c, r.changes, err
}

type reload struct {
	old, next *parsedSettings
	// steady says that both have the same channels. If they differ, a new target may lead
	// to a channel that does not run yet.
	steady bool
	// sameAgents says that both have the same agents.
	sameAgents bool
	values     map[string]*value
	names      map[string][]string
	changes    Changes
}

// addTables records which channels, agents, webhooks and tokens the new file has added,
// and which it has removed.
func (r *reload) addTables() {
	for i := range r.old.sections {
		sec := &r.old.sections[i]
		if !sec.named {
			continue
		}
		if r.opens(sec) {
			r.names[sec.name] = r.next.names[sec.name]
		}
		if sec.keysAreNames() {
			continue
		}
		for _, name := range slices.Concat(r.old.names[sec.name], r.next.names[sec.name]) {
			table := sec.name + "." + name
			told := &r.changes.Restart
			if r.opens(sec) {
				told = &r.changes.Live
			}
			if !r.both(sec.name, name) && !slices.Contains(*told, table) {
				*told = append(*told, table)
			}
		}
	}
}

// opens reports whether tables of the section can be added and removed while the server runs.
func (r *reload) opens(sec *section) bool { return r.canApply(sec.reload) }

// canApply reports whether a running server can apply a change of a setting, which takes effect as
// declared.
func (r *reload) canApply(declared reloading) bool {
	return declared == atOnce || declared == withChannels && r.steady || declared == withAgents && r.sameAgents
}

func (r *reload) both(section, name string) bool {
	return slices.Contains(r.old.names[section], name) && slices.Contains(r.next.names[section], name)
}

// setting compares one setting in both configurations, and applies or records its change.
func (r *reload) setting(path string, set *setting) {
	was, is := r.old.values[path], r.next.values[path]
	if was != nil && is != nil && reflect.DeepEqual(was.v, is.v) {
		r.values[path] = is // it may stand on another line now
		return
	}
	if set.hasNoEffectYet() {
		return
	}
	parts := strings.Split(path, ".")
	sec := r.section(parts[0])
	if sec.named && !sec.keysAreNames() && !r.both(parts[0], parts[1]) {
		if r.opens(sec) {
			r.take(path, is)
		}
		return // the table is told as a whole
	}
	if !r.canApply(set.reload) {
		r.changes.Restart = append(r.changes.Restart, path)
		return
	}
	r.changes.Live = append(r.changes.Live, path)
	r.take(path, is)
}

func (r *reload) section(name string) *section {
	i := slices.IndexFunc(r.old.sections, func(s section) bool { return s.name == name })
	return &r.old.sections[i]
}

func (r *reload) take(path string, is *value) {
	if is == nil {
		delete(r.values, path)
		return
	}
	r.values[path] = is
}
