package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Changes names the settings in which two configurations differ. It holds no
// values.
type Changes struct {
	Live    []string // in effect at once
	Restart []string // in effect after a restart
}

// Reload takes from next what a running process can change: who may talk, the
// limits on people, where agents may write, and who comes in over HTTP. It
// returns old with that changed, and what differs. Both it was given stay as
// they are.
func Reload(old, next *Config) (*Config, Changes, error) {
	r := reload{
		old: old.kept, next: next.kept, steady: slices.Equal(old.kept.names["channels"], next.kept.names["channels"]),
		values: maps.Clone(old.kept.values), names: maps.Clone(old.kept.names),
	}
	r.tables()
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
	old, next *kept
	// steady says that both have the same channels. Where they differ, a new
	// target may lead to a channel that does not run yet.
	steady  bool
	values  map[string]*value
	names   map[string][]string
	changes Changes
}

// tables notes which channels, agents, webhooks and tokens the new file has added to the
// old one, and which it has removed.
func (r *reload) tables() {
	for i := range r.old.sections {
		sec := &r.old.sections[i]
		if !sec.named {
			continue
		}
		if r.opens(sec) {
			r.names[sec.name] = r.next.names[sec.name]
		}
		if sec.leaf() {
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

// opens says that tables of the section can come and go while serving.
func (r *reload) opens(sec *section) bool { return r.takes(sec.reload) }

// takes says that a running server can take such a change.
func (r *reload) takes(when reloading) bool {
	return when == atOnce || when == withChannels && r.steady
}

func (r *reload) both(section, name string) bool {
	return slices.Contains(r.old.names[section], name) && slices.Contains(r.next.names[section], name)
}

// setting compares one setting of the two.
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
	if sec.named && !sec.leaf() && !r.both(parts[0], parts[1]) {
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
