package schema

import (
	"slices"
	"strconv"
)

// TakeEnv takes from the environment those settings that the file leaves out and that declare a
// variable.
func (v *Values) TakeEnv() {
	for i := range v.sections {
		sec := &v.sections[i]
		for j := range sec.Settings {
			set, path := &sec.Settings[j], sec.Name+"."+sec.Settings[j].Key
			if set.Env != "" && !v.Mentioned(path) && (set.EnvIf == nil || set.EnvIf(v)) {
				v.TakeVariable(path, set.Env)
			}
		}
	}
}

// TakeVariable takes the value of the setting at this path from the environment variable name, if
// that is set.
func (v *Values) TakeVariable(path, name string) {
	text, ok := v.Env(name)
	if !ok {
		return
	}
	set, at := v.setting(path), Origin{Var: name}
	v.places[path] = at
	d := &Decoder{set: set, key: set.Key, x: &expander{lookup: v.lookup, verbatim: true}}
	decoded, f := set.Kind.Decode(d, text)
	switch {
	case f == nil:
		v.values[path] = &value{path: path, set: set, v: decoded, from: at}
	case set.EnvStops:
		v.found = append(v.found, at.Problem(path, f))
	default:
		v.inVars = append(v.inVars, at.Problem(path, f))
	}
}

// Complete sets every setting that was left out to its default, and records which settings were
// written although they have no effect yet.
func (v *Values) Complete() {
	for i := range v.sections {
		sec := &v.sections[i]
		if !sec.Named {
			v.fill(sec, sec.Name)
			continue
		}
		if sec.Always != "" {
			v.addName(sec.Name, sec.Always)
		}
		if sec.KeysAreNames() {
			continue
		}
		for _, name := range v.names[sec.Name] {
			if sec.Inherit != "" {
				v.inherit(sec, name)
			}
			v.fill(sec, sec.Name+"."+name)
			v.fillName(sec, name)
		}
	}
	v.noteWithoutEffect()
}

// fill sets a table's missing settings to their defaults.
func (v *Values) fill(sec *Section, table string) {
	for i := range sec.Settings {
		set := &sec.Settings[i]
		path := table + "." + set.Key
		if v.Mentioned(path) || v.values[path] != nil || set.Default == nil || set.NotYet {
			continue
		}
		v.values[path] = &value{path: path, set: set, v: set.Default}
	}
}

// inherit copies to a table those values of the section's table Inherit that it doesn't set itself.
func (v *Values) inherit(sec *Section, name string) {
	for i := range sec.Settings {
		key := sec.Settings[i].Key
		path := sec.Name + "." + name + "." + key
		if from, ok := v.values[sec.Name+"."+sec.Inherit+"."+key]; ok && !v.Mentioned(path) {
			own := *from
			own.path = path
			v.values[path] = &own
		}
	}
}

// fillName uses a table's own name as the value of the key in the section's ByName, if that key is left out and the name
// is one of its values: a channel named telegram has the platform telegram, and one named work has none.
func (v *Values) fillName(sec *Section, name string) {
	path := sec.Name + "." + name + "." + sec.ByName
	if set := sec.find(sec.ByName); set != nil && !v.Mentioned(path) && slices.Contains(set.OneOf, name) {
		v.values[path] = &value{path: path, set: set, v: name}
	}
}

// tables returns the names of the section's tables that may contain settings.
func (v *Values) tables(sec *Section) []string {
	if !sec.Named {
		return []string{sec.Name}
	}
	var tables []string
	for _, name := range v.names[sec.Name] {
		tables = append(tables, sec.Name+"."+name)
	}
	if sec.Inherit != "" {
		tables = append(tables, sec.Name+"."+sec.Inherit)
	}
	return tables
}

// noteWithoutEffect records each setting that the operator has set although it has no effect yet,
// or the whole table if none of its settings has an effect.
func (v *Values) noteWithoutEffect() {
	for i := range v.sections {
		sec := &v.sections[i]
		for _, table := range v.tables(sec) {
			if at, written := v.places[table]; written && sec.hasNoEffectYet() {
				v.Notify(at.Problem("["+table+"]", &Fault{Wrong: notYet}))
				continue
			}
			for j := range sec.Settings {
				v.noteSetting(&sec.Settings[j], table+"."+sec.Settings[j].Key)
			}
		}
	}
}

func (v *Values) noteSetting(set *Setting, path string) {
	at, written := v.places[path]
	if !written {
		return
	}
	if set.NotYet {
		v.Notify(at.Problem(path, &Fault{Wrong: notYet}))
	}
	if len(set.Planned) == 0 {
		return
	}
	for i, word := range v.Texts(path) {
		if slices.Contains(set.Planned, word) {
			v.Notify(v.ElementAt(path, i).Problem(path, &Fault{Wrong: strconv.Quote(word) + ": " + notYet}))
		}
	}
}

// notYet is the notice that nothing reads a setting, or one of its values, yet.
const notYet = "no effect yet"
