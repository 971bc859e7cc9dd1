package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley/tools/spelling"
)

// take reads the values from the parsed file, a tree of tables, by the declarations of settings.
func (l *loader) take(tree map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		i := slices.IndexFunc(l.sections, func(s section) bool { return s.name == name })
		if i < 0 {
			l.unknown([]string{name}, l.sectionNames())
			continue
		}
		sec := &l.sections[i]
		table, ok := tree[name].(map[string]any)
		if !ok {
			l.wrong(l.lineOf(name), name, "wants a table, found "+typeInWords(tree[name]), "write "+header(sec, "NAME")+" on a line of its own, and its settings below")
			continue
		}
		l.places[name] = l.lineOf(name)
		if sec.named {
			l.takeNamed(sec, table)
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(table)) {
			l.takeKey(sec, []string{name, key}, table[key])
		}
	}
}

func (l *loader) sectionNames() []string {
	var names []string
	for _, s := range l.sections {
		names = append(names, s.name)
	}
	return names
}

// header returns the line that begins a table of the section in the file, such as [channels.ops].
func header(sec *section, name string) string {
	if !sec.named || sec.keysAreNames() {
		return "[" + sec.name + "]"
	}
	return "[" + sec.name + "." + name + "]"
}

// takeNamed reads the tables of a section whose tables the operator names, such as
// [channels.NAME].
func (l *loader) takeNamed(sec *section, tables map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		path := sec.name + "." + name
		at := l.lineOf(sec.name, name)
		if f := badName(sec.name, name); f != nil {
			l.found = append(l.found, at.problemAt(path, f))
			continue
		}
		table, ok := tables[name].(map[string]any)
		if !ok && !sec.keysAreNames() {
			l.wrong(at, path, "wants a table, found "+typeInWords(tables[name]), "write "+header(sec, name)+" on a line of its own, and its settings below")
			continue
		}
		l.places[path] = at
		if name != defaults || sec.name != "agents" {
			l.names[sec.name] = append(l.names[sec.name], name)
		}
		if sec.keysAreNames() {
			full := []string{sec.name, name}
			l.takeValue(&sec.settings[0], full, full, tables[name])
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(table)) {
			l.takeKey(sec, []string{sec.name, name, key}, table[key])
		}
	}
}

// ownerName is the local owner's name where others have the names of their tokens, so no token
// may have it.
const ownerName = "owner"

// badName returns why a name cannot be given to a table of the section; nil if it can.
func badName(section, name string) *fault {
	if (section == "channels" || section == "targets") && slices.Contains([]string{"agent", "web", "console"}, name) {
		return &fault{wrong: "the name " + name + " is parley's own", remedy: "choose another"}
	}
	if section == "tokens" && name == ownerName {
		return &fault{wrong: "the name owner is the local owner's, whose token is in the home", remedy: "choose another"}
	}
	ok := name != "" && len(name) <= 64
	for _, c := range []byte(name) {
		plain := 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-'
		if section == "webhooks" || section == "tokens" {
			plain = plain || 'A' <= c && c <= 'Z' || c == '_'
		}
		ok = ok && plain
	}
	if ok {
		return nil
	}
	return &fault{wrong: "not a name", remedy: "use at most 64 of a-z, 0-9 and -"}
}

// takeKey reads one key of a table, or a table below it.
func (l *loader) takeKey(sec *section, full []string, v any) {
	key := strings.Join(full[sec.depth():], ".")
	if set := sec.find(key); set != nil {
		l.takeValue(set, full, full, v)
		return
	}
	if len(sec.keys(key)) > 0 {
		l.takeTable(sec, full, v)
		return
	}
	i := slices.IndexFunc(l.retired, func(r retiredKey) bool { return r.old == sec.name+"."+key })
	if i < 0 {
		l.unknown(full, sec.keys(strings.Join(full[sec.depth():len(full)-1], ".")))
		return
	}
	gone := Problem{Key: strings.Join(full, "."), Wrong: "this key is going away", Remedy: l.retired[i].tip}
	at := l.lineOf(full...)
	gone.File, gone.Line = at.file, at.line
	l.warnings = append(l.warnings, gone.String())
	if set := sec.find(l.retired[i].now); set != nil {
		now := append(slices.Clone(full[:sec.depth()]), strings.Split(set.key, ".")...)
		l.takeValue(set, now, full, v)
	}
}

// takeTable reads a table within a table of the section, such as [agents.NAME.shell].
func (l *loader) takeTable(sec *section, full []string, v any) {
	path := strings.Join(full, ".")
	table, ok := v.(map[string]any)
	if !ok {
		l.wrong(l.lineOf(full...), path, "wants a table, found "+typeInWords(v), "write ["+path+"] on a line of its own, and its settings below")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		l.takeKey(sec, append(slices.Clone(full), key), table[key])
	}
}

// takeValue decodes the value v of a setting. full is the setting's path; written is that path as
// the file has it, which may use a key's former name.
func (l *loader) takeValue(set *setting, full, written []string, v any) {
	path := strings.Join(full, ".")
	at := l.lineOf(written...)
	l.places[path] = at
	x := &expander{l: l}
	d := decoder{set: set, key: written[len(written)-1], x: x}
	decoded, f := d.decode(v)
	if d.literal {
		l.literals = append(l.literals, at)
	}
	if f != nil && set.secret && len(x.refs) > 0 && l.opts.WithoutSecrets {
		// It is told from the other secrets, which may not be the same.
		l.values[path] = &value{path: path, set: set, v: "unread:" + path, from: at, refs: x.refs, hidden: true}
		return
	}
	if f != nil {
		if f.index > 0 {
			at = l.lineOf(append(slices.Clone(written), strconv.Itoa(f.index-1))...)
		}
		l.found = append(l.found, at.problemAt(strings.Join(written, "."), f))
		return
	}
	l.values[path] = &value{path: path, set: set, v: decoded, from: at, refs: x.refs, hidden: x.fromFile}
}

// unknown reports a key that does not exist; known are those that do.
func (l *loader) unknown(full, known []string) {
	key := full[len(full)-1]
	l.wrong(l.lineOf(full...), strings.Join(full, "."), "unknown key", l.suggestion(key, len(full) == 1, known))
}

// suggestion returns a remedy for an unknown key: which known key may have been meant or, for a
// key at the top of the file, in which tables there is such a key.
func (l *loader) suggestion(key string, top bool, known []string) string {
	if near := spelling.Nearest(key, known); near != "" {
		if top {
			return "did you mean [" + near + "]?"
		}
		return "did you mean " + near + "?"
	}
	var homes []string
	for i := range l.sections {
		if sec := &l.sections[i]; !sec.keysAreNames() && sec.find(key) != nil {
			homes = append(homes, header(sec, "NAME"))
		}
	}
	if len(homes) > 0 {
		return "it belongs in " + strings.Join(homes, " or ")
	}
	return "known here are " + strings.Join(known, ", ")
}
