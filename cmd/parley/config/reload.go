package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Changes lists the settings in which two configurations differ, without their values.
type Changes struct {
	Live    []string // in effect at once
	Restart []string // in effect after a restart
}

// Reload returns old with the settings from next that a running process can change: who
// may talk, the limits on people, where agents may write, and who may send requests over
// HTTP. It also returns what differs. It changes neither old nor next.
func Reload(old, next *Config) (*Config, Changes, error) {
	r := reload{
		old: old.kept, next: next.kept, steady: slices.Equal(old.kept.names["channels"], next.kept.names["channels"]),
		values: maps.Clone(old.kept.values), names: maps.Clone(old.kept.names),
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
	old, next *parsed
	// steady says that both have the same channels. If they differ, a new target may lead
	// to a channel that does not run yet.
	steady  bool
	values  map[string]*value
	names   map[string][]string
	changes Changes
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

// opens reports whether tables of the section can be added and removed while the server
// runs.
func (r *reload) opens(sec *section) bool { return r.takes(sec.reload) }

// takes reports whether a running server can apply a change of that kind.
func (r *reload) takes(when reloading) bool {
	return when == atOnce || when == withChannels && r.steady
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
	if !r.takes(set.reload) {
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
