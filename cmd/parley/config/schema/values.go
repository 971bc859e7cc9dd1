package schema

import (
	"slices"
	"strconv"
	"strings"
)

// Values hold the values of settings, and what is wrong with them, while they are being read and
// checked. Paths identify settings and tables, for example "channels.telegram.access". Read makes
// Values.
type Values struct {
	sections []Section
	lookup   lookup
	file     document

	values  map[string]*value // by path
	places  map[string]Origin // where each table and key is written, including those with a wrong value, by path
	names   map[string][]string
	found   []Problem // problems that stop every command
	inVars  []Problem // problems with variables that other programs may use, too
	notices []string
}

// A value is the value of a setting, with the place where it was written.
type value struct {
	path   string // "channels.telegram.access"
	set    *Setting
	v      any
	from   Origin
	refs   []string // the references ${…} that it was made from
	hidden bool     // whether it must not be shown, although its setting isn't declared secret

	secrets []string // the secret texts that its references stand for
}

// Value returns the value of the setting at this path; nil if it has no valid value.
func (v *Values) Value(path string) any {
	if found, ok := v.values[path]; ok {
		return found.v
	}
	return nil
}

// Text returns the text of the setting at this path; "" if it has none.
func (v *Values) Text(path string) string {
	text, _ := v.Value(path).(string)
	return text
}

// Texts returns the strings of the setting at this path; nil if it has none.
func (v *Values) Texts(path string) []string {
	list, _ := v.Value(path).([]string)
	return list
}

// HasReferences reports whether the value at this path was made from references, so that it may
// contain a secret.
func (v *Values) HasReferences(path string) bool {
	found, ok := v.values[path]
	return ok && len(found.refs) > 0
}

// Mentioned reports whether the file or the environment contains something for a path, valid or
// not.
func (v *Values) Mentioned(path string) bool {
	_, ok := v.places[path]
	return ok
}

// At returns where the setting or table at this path is written; the zero Origin if it isn't.
func (v *Values) At(path string) Origin { return v.places[path] }

// ElementAt returns where the i-th element of the list at this path is written.
func (v *Values) ElementAt(path string, i int) Origin {
	at := v.places[path]
	if at.File != "" {
		return v.file.lineOf(append(strings.Split(path, "."), strconv.Itoa(i))...)
	}
	return at
}

// Names returns the names that the operator has given to a section's tables or keys, sorted.
func (v *Values) Names(section string) []string { return v.names[section] }

// FromFile reports whether there is a file, rather than only the environment.
func (v *Values) FromFile() bool { return v.file.name != "" }

// Env returns the value of an environment variable; false if it is unset or empty.
func (v *Values) Env(name string) (string, bool) { return v.lookup.variable(name) }

// Report records a problem with the setting key: what is wrong and the remedy. If the value comes
// only from the environment, the problem is reported by Settings.InVariables.
func (v *Values) Report(at Origin, key, wrong, remedy string) {
	p := at.Problem(key, &Fault{Wrong: wrong, Remedy: remedy})
	if at.Var != "" {
		v.inVars = append(v.inVars, p)
		return
	}
	v.found = append(v.found, p)
}

// Notify records something that the operator should know, although nothing is wrong.
func (v *Values) Notify(p Problem) { v.notices = append(v.notices, p.String()) }

// Remove removes the value at this path. If the file or the environment contains something for the
// path, Complete doesn't replace it with the default.
func (v *Values) Remove(path string) { delete(v.values, path) }

// AddTable adds a table to a section whose tables the operator names.
func (v *Values) AddTable(section, name string, at Origin) {
	v.places[section+"."+name] = at
	v.addName(section, name)
}

func (v *Values) addName(section, name string) {
	if !slices.Contains(v.names[section], name) {
		v.names[section] = append(v.names[section], name)
		slices.Sort(v.names[section])
	}
}

// setting returns the setting at a path in one of the sections.
func (v *Values) setting(path string) *Setting {
	parts := strings.Split(path, ".")
	sec := sectionOf(v.sections, parts[0])
	return sec.find(strings.Join(parts[sec.depth():], "."))
}
