package schema

import "strings"

// Settings are the values of all settings, complete and checked, stored so that they can be shown,
// and compared with those in the file when it is read again. They are immutable.
type Settings struct {
	file     string
	sections []Section
	names    map[string][]string // the names that operators have given to a section's tables or keys, by section, sorted
	values   map[string]*value   // complete with defaults, by path
	notices  []string
	inVars   []Problem
}

// Settings returns the values as Settings, or an *Error that lists every problem that was found.
func (v *Values) Settings() (*Settings, error) {
	if err := ErrorOf(v.found); err != nil {
		return nil, err
	}
	return &Settings{file: v.path(), sections: v.sections, names: v.names, values: v.values, notices: v.notices, inVars: v.inVars}, nil
}

// File returns the absolute path of the file that was read; "" if there was none.
func (s *Settings) File() string { return s.file }

// Names returns the names that the operator has given to a section's tables or keys, sorted.
func (s *Settings) Names(section string) []string { return s.names[section] }

// Texts returns the strings of the setting at this path; nil if it has none.
func (s *Settings) Texts(path string) []string {
	if found, ok := s.values[path]; ok {
		return found.v.([]string)
	}
	return nil
}

// HasValue reports whether the setting at this path has a value, even if it is the default.
func (s *Settings) HasValue(path string) bool { return s.values[path] != nil }

// IsSet reports whether the operator has set the setting at this path.
func (s *Settings) IsSet(path string) bool {
	found, ok := s.values[path]
	return ok && found.from != Origin{}
}

// Notices returns what the operator should know, one line each: settings without effect yet, keys
// that will be removed, an unused key.
func (s *Settings) Notices() []string { return s.notices }

// InVariables returns what is wrong with environment variables that other programs may use, too.
func (s *Settings) InVariables() []Problem { return s.inVars }

// Fill assigns the values of a table's settings to the fields of dest, which is a value of the type
// that the table describes.
func (s *Settings) Fill(table string, dest any) {
	name, _, _ := strings.Cut(table, ".")
	sec := sectionOf(s.sections, name)
	for i := range sec.Settings {
		set := &sec.Settings[i]
		if found, ok := s.values[table+"."+set.Key]; ok && set.Fill != nil {
			set.Fill(dest, found.v)
		}
	}
}

// each calls visit for every value, in the order in which settings are shown, with the name of the
// value's table.
func (s *Settings) each(visit func(table string, v *value)) {
	for i := range s.sections {
		sec := &s.sections[i]
		tables := []string{""}
		if sec.Named {
			tables = s.names[sec.Name]
		}
		for _, name := range tables {
			table := sec.Name
			if sec.Named && !sec.KeysAreNames() {
				table += "." + name
			}
			for j := range sec.Settings {
				path := table + "." + sec.Settings[j].Key
				if sec.KeysAreNames() {
					path = table + "." + name
				}
				if found, ok := s.values[path]; ok {
					visit(table, found)
				}
			}
		}
	}
}
