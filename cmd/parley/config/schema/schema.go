// Package schema reads settings from a file and the environment, as sections declare them.
//
// A Section declares a table of the file, and each Setting in it one key: its kind, default, limits
// and example, whether it has an effect yet, and when a reload applies it. The package knows
// nothing else: its callers say which sections there are.
//
// Read takes the values from the file according to these declarations, and finds the line of each.
// The Values that it returns are completed, first from the environment, then with defaults, and
// callers check with them whether settings are consistent. Everything that is wrong is collected,
// each with its place and a remedy, and returned at once: an Error. If nothing is wrong, the values
// become Settings, which fill the fields of the caller's types, are shown without their secrets,
// and are merged with those of the changed file when it is read again.
//
// Read this file first, then values.go, and settings.go.
package schema

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// A Reloading says when a changed setting takes effect if a running server reads the file again.
// Besides the values below it can be the name of a section. Then the change takes effect at once if
// no table of that section was added to the file or removed from it. Otherwise the changed setting
// may name a table that nothing uses yet, so it takes effect only at the next restart.
type Reloading string

// These are the usual values of a Reloading.
const (
	AfterRestart Reloading = ""
	AtOnce       Reloading = "at once"
)

// A Setting declares one key that the file may contain. Everything that is known about a setting is
// here, for reading, checking, showing, filling in and reloading it.
type Setting struct {
	// Key is the setting's name in its table. A dot in it means a table below: "shell.timeout" in
	// [agents.NAME] is timeout in [agents.NAME.shell].
	Key       string
	Kind      Kind
	Default   any      // as decoded by Kind; nil if there is no default
	Least     int64    // the minimum of a number; micro-dollars for money, nanoseconds for durations
	Large     bool     // a count that may exceed 32 bits
	ZeroIsOff bool     // for a number without Least: 0 is allowed, and means none at all
	OneOf     []string // the only allowed values
	Planned   []string // those of them that are accepted, but have no effect yet
	Schemes   []string // the allowed schemes of a URL
	// Check returns what else is wrong with a URL; nil means that nothing else is checked.
	Check      func(address string) *Fault
	Parameters []string // the query parameters that a URL may have
	Env        string   // the environment variable that fills it if the file doesn't
	// EnvIf says whether that variable may fill it now; nil means yes.
	EnvIf func(v *Values) bool
	// EnvStops says that a mistake in that variable counts as one in the settings. Otherwise only
	// Settings.InVariables reports it, because other programs use the variable, too.
	EnvStops   bool
	Example    string // as written in a file; "" means the default
	Secret     bool
	Headers    Hidden // for a secret list of headers, NAME: VALUE
	MayBeEmpty bool   // for a secret: "" means that none is sent
	NotYet     bool   // whether it is accepted but has no effect yet, which the operator is told
	Reload     Reloading
	// Fill assigns the value to its field in dest, which is a value of the type that the table
	// describes. See Into.
	Fill func(dest, v any)
}

// A Kind says how the value of a setting is written, and how it is shown.
type Kind interface {
	// Decode converts a value, either from TOML or the text of a variable, to the setting's value.
	Decode(d *Decoder, v any) (any, *Fault)
	// Show converts what Decode has returned to JSON types, or a Table.
	Show(v any) any
}

// Into makes a setting's Fill from a function that returns a pointer to the field in a T.
func Into[T any](field func(*T) any) func(dest, v any) {
	return func(dest, v any) { store(field(dest.(*T)), v) }
}

// store assigns a decoded value to the field that a pointer refers to. The field's type may differ
// from the value's if one converts to the other, for example a list of named strings.
func store(field, v any) {
	switch f := field.(type) {
	case encoding.TextUnmarshaler:
		if err := f.UnmarshalText([]byte(v.(string))); err != nil {
			panic(fmt.Sprintf("a value is declared that its field does not take: %v", err))
		}
	case *int:
		*f = int(v.(int64))
	default:
		assign(reflect.ValueOf(field).Elem(), reflect.ValueOf(v))
	}
}

func assign(to, from reflect.Value) {
	switch {
	case from.Type().AssignableTo(to.Type()):
		to.Set(from)
	case from.Kind() == reflect.Slice && to.Kind() == reflect.Slice:
		list := reflect.Zero(to.Type())
		for _, item := range from.Seq2() {
			list = reflect.Append(list, item.Convert(to.Type().Elem()))
		}
		to.Set(list)
	default:
		to.Set(from.Convert(to.Type()))
	}
}

// mayOmitHost reports whether an address may omit its host: a PostgreSQL socket is named in a
// parameter.
func (s *Setting) mayOmitHost() bool { return slices.Contains(s.Schemes, "postgres") }

// A Section is a table of the file, such as [model], or all tables of a kind, such as
// [channels.NAME].
type Section struct {
	Name   string
	Named  bool   // whether the operator names its tables: [channels.NAME]
	ByName string // the key whose value, if it is left out, is the table's own name, if that is one of its values
	Always string // the name of a table that exists even if nobody writes it
	// Inherit is the name of the table that contains what all others in the section start from.
	Inherit   string
	WideNames bool // whether the tables' names may also contain A-Z and _
	// RefuseName returns why no table may have this name; nil means that all names are allowed.
	RefuseName func(name string) *Fault
	Reload     Reloading // when an added or removed table takes effect
	// Settings are in the order in which they are shown.
	Settings []Setting
}

// A Retired key was given up: for two releases it still works like its replacement, with a warning.
type Retired struct {
	Old string // the retired key, as SECTION.KEY
	Now string // the key of the same section that replaces it; "" if there is none
	Tip string // what to write instead
}

// KeysAreNames reports whether the operator chooses the names of the section's keys: [targets].
func (s *Section) KeysAreNames() bool {
	return s.Named && len(s.Settings) == 1 && s.Settings[0].Key == ""
}

// depth returns how many names precede a setting's key in its path: the section's name and, if the
// operator names its tables, the table's.
func (s *Section) depth() int {
	if s.Named {
		return 2
	}
	return 1
}

// hasNoEffectYet reports whether no release reads any setting in the section yet.
func (s *Section) hasNoEffectYet() bool {
	return !slices.ContainsFunc(s.Settings, func(set Setting) bool { return !set.NotYet })
}

// find returns the section's setting with that key; nil if there is none.
func (s *Section) find(key string) *Setting {
	for i := range s.Settings {
		if s.Settings[i].Key == key {
			return &s.Settings[i]
		}
	}
	return nil
}

// keys returns the keys directly in the section's table, or in one of the tables below it: "" means
// the section's table itself, "shell" the one in "shell.timeout". It returns none for a table that
// doesn't exist.
func (s *Section) keys(table string) []string {
	var keys []string
	for _, set := range s.Settings {
		rest := set.Key
		if table != "" {
			var inside bool
			if rest, inside = strings.CutPrefix(rest, table+"."); !inside {
				continue
			}
		}
		key, _, _ := strings.Cut(rest, ".")
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// sectionOf returns the section with that name; nil if there is none.
func sectionOf(sections []Section, name string) *Section {
	for i := range sections {
		if sections[i].Name == name {
			return &sections[i]
		}
	}
	return nil
}

// header returns the line that begins a table of the section in the file, such as [channels.ops].
func (s *Section) header(name string) string {
	if !s.Named || s.KeysAreNames() {
		return "[" + s.Name + "]"
	}
	return "[" + s.Name + "." + name + "]"
}

// refuse returns why a table of the section cannot have a name; nil if it can.
func (s *Section) refuse(name string) *Fault {
	if s.RefuseName != nil {
		if f := s.RefuseName(name); f != nil {
			return f
		}
	}
	ok := name != "" && len(name) <= 64
	for _, c := range []byte(name) {
		plain := 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-'
		wide := 'A' <= c && c <= 'Z' || c == '_'
		ok = ok && (plain || s.WideNames && wide)
	}
	if ok {
		return nil
	}
	return &Fault{Wrong: "not a valid name", Remedy: "use at most 64 characters: a-z, 0-9 and -"}
}
