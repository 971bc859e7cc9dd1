package schema

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Changes lists the settings in which two configurations differ, without their values.
type Changes struct {
	Live    []string // take effect at once
	Restart []string // take effect after a restart
}

// Merge compares the settings of a running process with the next ones, which were read from the
// changed file. It returns old with those settings from next that can change while the process
// runs, and what differs. It changes neither old nor next.
func Merge(old, next *Settings) (*Settings, Changes) {
	m := merger{old: old, next: next, values: maps.Clone(old.values), names: maps.Clone(old.names)}
	m.addTables()
	paths := maps.Clone(old.values)
	maps.Copy(paths, next.values)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		m.setting(path, paths[path].set)
	}
	merged := *old
	merged.values, merged.names = m.values, m.names
	merged.notices, merged.inVars = next.notices, next.inVars
	return &merged, m.changes
}

// A merger does the work of Merge. Its values and names are those of the result.
type merger struct {
	old, next *Settings
	values    map[string]*value
	names     map[string][]string
	changes   Changes
}

// addTables records which tables, such as channels and tokens, the new file adds and removes.
func (m *merger) addTables() {
	for i := range m.old.sections {
		sec := &m.old.sections[i]
		if !sec.Named {
			continue
		}
		if m.canApply(sec.Reload) {
			m.names[sec.Name] = m.next.names[sec.Name]
		}
		if sec.KeysAreNames() {
			continue
		}
		for _, name := range slices.Concat(m.old.names[sec.Name], m.next.names[sec.Name]) {
			table := sec.Name + "." + name
			told := &m.changes.Restart
			if m.canApply(sec.Reload) {
				told = &m.changes.Live
			}
			if !m.both(sec.Name, name) && !slices.Contains(*told, table) {
				*told = append(*told, table)
			}
		}
	}
}

// canApply reports whether a running server can apply the change of a setting or table whose
// declaration contains this Reloading.
func (m *merger) canApply(declared Reloading) bool {
	switch declared {
	case AfterRestart:
		return false
	case AtOnce:
		return true
	}
	return slices.Equal(m.old.names[string(declared)], m.next.names[string(declared)])
}

// both reports whether both configurations have a table with that name in a section.
func (m *merger) both(section, name string) bool {
	return slices.Contains(m.old.names[section], name) && slices.Contains(m.next.names[section], name)
}

// setting compares one setting in both configurations, and applies or records its change.
func (m *merger) setting(path string, set *Setting) {
	was, is := m.old.values[path], m.next.values[path]
	if was != nil && is != nil && reflect.DeepEqual(was.v, is.v) {
		m.values[path] = is // the line may have changed
		return
	}
	if set.NotYet {
		return
	}
	parts := strings.Split(path, ".")
	sec := sectionOf(m.old.sections, parts[0])
	if sec.Named && !sec.KeysAreNames() && !m.both(parts[0], parts[1]) {
		if m.canApply(sec.Reload) {
			m.take(path, is)
		}
		return // the whole table is reported
	}
	if !m.canApply(set.Reload) {
		m.changes.Restart = append(m.changes.Restart, path)
		return
	}
	m.changes.Live = append(m.changes.Live, path)
	m.take(path, is)
}

// take makes is the value at this path in the result. If is is nil, it removes the value.
func (m *merger) take(path string, is *value) {
	if is == nil {
		delete(m.values, path)
		return
	}
	m.values[path] = is
}
