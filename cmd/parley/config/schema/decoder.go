package schema

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A Decoder converts a value from the file or the environment into the type of its setting.
type Decoder struct {
	set     *Setting
	key     string // the key as written, for the remedy
	x       *expander
	literal bool // whether the file itself contains a secret, rather than a reference to one
}

// typeInWords returns the type of a TOML value in words.
func typeInWords(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case int64:
		return "an integer"
	case float64:
		return "a decimal number"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}

// WrongType returns the fault for a value of the wrong type.
func (d *Decoder) WrongType(want string, v any) *Fault {
	return &Fault{Wrong: "has to be " + want + ", not " + typeInWords(v), Remedy: d.Example()}
}

// Example returns a remedy that shows an example of the setting.
func (d *Decoder) Example() string {
	if d.set.Key == "" {
		return "write something like " + d.key + " = " + d.set.ExampleTOML()
	}
	return "write something like " + d.set.Key[strings.LastIndexByte(d.set.Key, '.')+1:] + " = " + d.set.ExampleTOML()
}

// ExampleTOML returns an example of the setting's value, in TOML.
func (s *Setting) ExampleTOML() string {
	if s.Example == "" {
		return toTOML(s.show(s.Default))
	}
	return s.Example
}

// show returns a value of the setting in a form that anybody may see, without secrets: as JSON
// types, or a Table.
func (s *Setting) show(v any) any {
	if s.Secret || s.Kind == Opaque {
		return masked(v)
	}
	return s.Kind.Show(v)
}

// masked returns what is shown in place of a secret value; an empty one is shown as it is.
func masked(v any) any {
	if list, ok := v.([]string); ok && len(list) == 0 {
		return list
	}
	if s, ok := v.(string); ok && s == "" {
		return ""
	}
	return hidden
}

// Text decodes a string and replaces the references in it, such as ${VAR}, with what they refer to. If the setting is a
// secret, it refuses a text that no key or token can be.
func (d *Decoder) Text(v any) (string, *Fault) {
	s, ok := v.(string)
	if !ok {
		return "", d.WrongType("a string in quotes", v)
	}
	whole, own, f := d.x.expand(s)
	if f != nil {
		return "", f
	}
	if d.set.Secret && d.set.Kind == Texts { // entries of the form NAME=VALUE
		d.literal = d.literal || !d.x.verbatim && len(secretIn(own)) > 0
		return whole, nil
	}
	if d.set.Secret {
		d.literal = d.literal || own != "" && !d.x.verbatim
		return whole, d.secret(whole)
	}
	if d.set.Kind == URL && !d.x.verbatim {
		u, err := url.Parse(own)
		d.literal = d.literal || err == nil && hasPassword(u)
	}
	return whole, nil
}

// secret returns a fault if a text cannot be a key or a token; otherwise nil.
func (d *Decoder) secret(s string) *Fault {
	if s == "" && !d.set.MayBeEmpty {
		return &Fault{Wrong: "is empty", Remedy: "give it a value, or remove the line"}
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar }) {
		return &Fault{Wrong: "contains a space, a line break or a character that no key or token has", Remedy: "write only the secret"}
	}
	return nil
}

// ID decodes a text that may be written as an integer, because platforms' ids are often integers.
func (d *Decoder) ID(v any) (string, *Fault) {
	if n, ok := v.(int64); ok {
		v = strconv.FormatInt(n, 10)
	}
	return d.Text(v)
}

// Texts decodes a list of strings.
func (d *Decoder) Texts(v any) ([]string, *Fault) { return d.list(v, d.Text) }

// list decodes a list of strings, none of which may be empty or, if the setting has a OneOf, missing there; item
// decodes one.
func (d *Decoder) list(v any, item func(v any) (string, *Fault)) ([]string, *Fault) {
	items, ok := v.([]any)
	if !ok {
		return nil, d.WrongType("a list", v)
	}
	return Each(items, func(v any) (string, *Fault) {
		s, f := item(v)
		if f == nil && d.set.OneOf != nil && !slices.Contains(d.set.OneOf, s) {
			f = &Fault{Wrong: fmt.Sprintf("unknown value %q", v), Remedy: OneOf(s, d.set.OneOf)}
		}
		if f == nil && s == "" {
			f = &Fault{Wrong: "the list contains an empty string", Remedy: "remove it"}
		}
		return s, f
	})
}

// Tables decodes a list of tables, item by item.
func Tables[T any](d *Decoder, v any, decode func(d *Decoder, table map[string]any) (T, *Fault)) ([]T, *Fault) {
	items, ok := v.([]any)
	if !ok {
		return nil, d.WrongType("a list of tables", v)
	}
	return Each(items, func(item any) (one T, f *Fault) {
		table, ok := item.(map[string]any)
		if !ok {
			return one, d.WrongType("tables in the list", item)
		}
		return decode(d, table)
	})
}

// UnknownKey returns the fault for a table that contains a key that is not among keys; nil for any other table.
// kind says in the message what the table is.
func UnknownKey(table map[string]any, kind string, keys ...string) *Fault {
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if !slices.Contains(keys, key) {
			return &Fault{Wrong: kind + " has no " + strconv.Quote(key), Remedy: OneOf(key, keys)}
		}
	}
	return nil
}

// Each decodes a list, item by item. The fault for an item says which one it is.
func Each[T any](items []any, decode func(item any) (T, *Fault)) ([]T, *Fault) {
	list := []T{}
	for i, item := range items {
		one, f := decode(item)
		if f != nil {
			f.Index = i + 1
			return nil, f
		}
		list = append(list, one)
	}
	return list, nil
}
