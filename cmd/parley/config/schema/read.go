package schema

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley/tools/spelling"
)

// Read reads the file of a source according to the declarations in sections. The sections and their
// settings must not change from then on.
func Read(sections []Section, src Source) *Values {
	v := &Values{
		sections: sections, lookup: lookup{env: src.Env}, file: document{lines: &lines{}}, found: slices.Clone(src.Wrong),
		values: map[string]*value{}, places: map[string]Origin{}, names: map[string][]string{},
	}
	if tree, ok := v.open(src); ok {
		r := &reader{Values: v, retired: src.Retired, withoutSecrets: src.WithoutSecrets}
		r.read(tree)
		v.checkMode()
	}
	return v
}

// A reader takes values from a parsed file.
type reader struct {
	*Values
	retired        []Retired
	withoutSecrets bool
}

// read takes the values from a tree of tables.
func (r *reader) read(tree map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		sec := sectionOf(r.sections, name)
		if sec == nil {
			r.unknown([]string{name}, r.sectionNames())
			continue
		}
		table, ok := tree[name].(map[string]any)
		if !ok {
			r.noTable([]string{name}, tree[name], sec.header("NAME"))
			continue
		}
		r.places[name] = r.file.lineOf(name)
		if sec.Named {
			r.readNamed(sec, table)
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(table)) {
			r.readKey(sec, []string{name, key}, table[key])
		}
	}
}

func (r *reader) sectionNames() []string {
	var names []string
	for _, s := range r.sections {
		names = append(names, s.Name)
	}
	return names
}

// noTable reports a value in place of a table that begins with the line header.
func (r *reader) noTable(full []string, v any, header string) {
	r.refuse(r.file.lineOf(full...), strings.Join(full, "."), "has to be a table, not "+typeInWords(v), "write "+header+" on its own line, and its settings below it")
}

// readNamed reads the tables of a section whose tables the operator names, such as [channels.NAME].
func (r *reader) readNamed(sec *Section, tables map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		full := []string{sec.Name, name}
		path := sec.Name + "." + name
		at := r.file.lineOf(full...)
		if f := sec.refuse(name); f != nil {
			r.found = append(r.found, at.Problem(path, f))
			continue
		}
		table, ok := tables[name].(map[string]any)
		if !ok && !sec.KeysAreNames() {
			r.noTable(full, tables[name], sec.header(name))
			continue
		}
		r.places[path] = at
		if name != sec.Inherit {
			r.addName(sec.Name, name)
		}
		if sec.KeysAreNames() {
			r.readValue(&sec.Settings[0], full, full, tables[name])
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(table)) {
			r.readKey(sec, []string{sec.Name, name, key}, table[key])
		}
	}
}

// readKey reads one key of a table, or a table below it.
func (r *reader) readKey(sec *Section, full []string, v any) {
	key := strings.Join(full[sec.depth():], ".")
	if set := sec.find(key); set != nil {
		r.readValue(set, full, full, v)
		return
	}
	if len(sec.keys(key)) > 0 {
		r.readTable(sec, full, v)
		return
	}
	i := slices.IndexFunc(r.retired, func(gone Retired) bool { return gone.Old == sec.Name+"."+key })
	if i < 0 {
		r.unknown(full, sec.keys(strings.Join(full[sec.depth():len(full)-1], ".")))
		return
	}
	gone := &Fault{Wrong: "this key is going away", Remedy: r.retired[i].Tip}
	r.Notify(r.file.lineOf(full...).Problem(strings.Join(full, "."), gone))
	if set := sec.find(r.retired[i].Now); set != nil {
		now := append(slices.Clone(full[:sec.depth()]), strings.Split(set.Key, ".")...)
		r.readValue(set, now, full, v)
	}
}

// readTable reads a table within a table of the section, such as [agents.NAME.shell].
func (r *reader) readTable(sec *Section, full []string, v any) {
	table, ok := v.(map[string]any)
	if !ok {
		r.noTable(full, v, "["+strings.Join(full, ".")+"]")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		r.readKey(sec, append(slices.Clone(full), key), table[key])
	}
}

// readValue decodes the value v of a setting. full is the setting's path; written is the path as it
// is in the file, which may use a key's former name.
func (r *reader) readValue(set *Setting, full, written []string, v any) {
	path := strings.Join(full, ".")
	at := r.file.lineOf(written...)
	r.places[path] = at
	x := &expander{lookup: r.lookup, headers: set.Headers}
	d := &Decoder{set: set, key: written[len(written)-1], x: x}
	decoded, f := set.Kind.Decode(d, v)
	if d.literal {
		r.file.literals = append(r.file.literals, at)
	}
	if f != nil && set.Secret && len(x.refs) > 0 && r.withoutSecrets {
		var unread any = "unread:" + path // no two tokens may be the same
		if set.Kind == Texts {
			unread = []string{}
		}
		r.values[path] = &value{path: path, set: set, v: unread, from: at, refs: x.refs, hidden: true}
		return
	}
	if f != nil {
		if f.Index > 0 {
			at = r.file.lineOf(append(slices.Clone(written), strconv.Itoa(f.Index-1))...)
		}
		r.found = append(r.found, at.Problem(strings.Join(written, "."), f))
		return
	}
	r.values[path] = &value{path: path, set: set, v: decoded, from: at, refs: x.refs, hidden: x.fromFile, secrets: x.secrets}
}

// unknown reports a key that doesn't exist; known are the keys that do.
func (r *reader) unknown(full, known []string) {
	key := full[len(full)-1]
	r.refuse(r.file.lineOf(full...), strings.Join(full, "."), "unknown key", r.suggestion(key, len(full) == 1, known))
}

// suggestion returns a remedy for an unknown key: the known key that may have been meant or, for a
// key at the top of the file, the tables that have such a key.
func (r *reader) suggestion(key string, top bool, known []string) string {
	if near := spelling.Nearest(key, known); near != "" {
		if top {
			return "did you mean [" + near + "]?"
		}
		return "did you mean " + near + "?"
	}
	var homes []string
	for i := range r.sections {
		if sec := &r.sections[i]; !sec.KeysAreNames() && sec.find(key) != nil {
			homes = append(homes, sec.header("NAME"))
		}
	}
	if len(homes) > 0 {
		return "it belongs in " + strings.Join(homes, " or ")
	}
	return "the keys here are " + strings.Join(known, ", ")
}
