package config

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A Setting is one setting that is in force, in a form that anybody may see.
type Setting struct {
	Key      string `json:"key"`
	Value    any    `json:"value"` // secrets are shown as ***
	From     string `json:"from"`
	NoEffect bool   `json:"no_effect,omitempty"`
}

// Settings lists every setting that has a value, in the order of the sections of the
// documentation, with secrets hidden.
func (c *Config) Settings() []Setting {
	var all []Setting
	c.kept.each(func(_ string, v *value) {
		all = append(all, Setting{Key: v.path, Value: v.shown(), From: v.source(), NoEffect: v.set.hasNoEffectYet()})
	})
	return all
}

// Origin returns where a setting's value comes from: file and line, or a variable; "" if
// it is a default.
func (c *Config) Origin(key string) string {
	if c.kept == nil { // it was made by hand
		return ""
	}
	for _, s := range c.Settings() {
		if s.Key == key && s.From != "default" {
			return s.From
		}
	}
	return ""
}

// each calls visit for every value, in the order in which settings are shown, with the name of
// the value's table.
func (k *parsedSettings) each(visit func(table string, v *value)) {
	for i := range k.sections {
		sec := &k.sections[i]
		tables := []string{""}
		if sec.named {
			tables = k.names[sec.name]
		}
		for _, name := range tables {
			table := sec.name
			if sec.named && !sec.keysAreNames() {
				table += "." + name
			}
			for j := range sec.settings {
				path := table + "." + sec.settings[j].key
				if sec.keysAreNames() {
					path = table + "." + name
				}
				if v, ok := k.values[path]; ok {
					visit(table, v)
				}
			}
		}
	}
}

// source returns in words where the value was written.
func (v *value) source() string {
	from := v.from.inWords()
	if from == "" {
		return "default"
	}
	if len(v.refs) > 0 {
		from += ", " + strings.Join(v.refs, " ")
	}
	return from
}

// shown returns the value as anybody may see it, without secrets, in types that JSON has.
func (v *value) shown() any {
	if v.hidden || v.set.secret || v.set.kind == asOpaque {
		if list, ok := v.v.([]string); ok && len(list) == 0 {
			return list
		}
		if s, ok := v.v.(string); ok && s == "" {
			return ""
		}
		return hidden
	}
	switch x := v.v.(type) {
	case time.Duration:
		if hours := x / time.Hour; hours > 0 && x%time.Hour == 0 {
			return fmt.Sprintf("%dh", hours) // and not 24h0m0s
		}
		return x.String()
	case int64:
		if v.set.kind == asMoney {
			return json.Number(dollarsOf(x))
		}
		return x
	case []Chat:
		return shownChats(x)
	case []AgentRoute:
		return shownAgentRoutes(x)
	case []Route:
		list := []any{}
		for _, r := range x {
			list = append(list, map[string]any{"match": r.Match, "to": r.To})
		}
		return list
	case string:
		if v.set.kind == asURL {
			return withoutPassword(x)
		}
	}
	return v.v
}

// hasPassword reports whether a URL holds a password, or parameters that may be secret.
func hasPassword(u *url.URL) bool {
	for name, values := range u.Query() {
		name = strings.ToLower(name)
		if strings.Join(values, "") == "" {
			continue
		}
		if strings.Contains(name, "pass") || strings.Contains(name, "key") || strings.Contains(name, "token") || strings.Contains(name, "secret") {
			return true
		}
	}
	if u.User == nil {
		return false
	}
	password, _ := u.User.Password()
	return password != ""
}

// withoutPassword returns a URL without its password and its parameters. Parameters hold
// passwords under too many names to recognise all of them.
func withoutPassword(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return hidden
	}
	var b strings.Builder
	b.WriteString(u.Scheme + "://")
	if u.User != nil {
		b.WriteString(url.User(u.User.Username()).String())
		if _, password := u.User.Password(); password {
			b.WriteString(":" + hidden)
		}
		b.WriteString("@")
	}
	b.WriteString(u.Host + u.EscapedPath())
	if u.RawQuery != "" {
		b.WriteString("?" + hidden)
	}
	return b.String()
}

// Print writes every effective setting as lines of TOML, each with a comment
// that says where it came from. Secrets are ***.
func (c *Config) Print(w io.Writer) error {
	var out strings.Builder
	file := c.File
	if file == "" {
		file = "none"
	}
	fmt.Fprintf(&out, "# file: %s\n# home: %s\n", comment(file), comment(c.Home))
	last := ""
	c.kept.each(func(table string, v *value) {
		if table != last {
			fmt.Fprintf(&out, "\n[%s]\n", table)
			last = table
		}
		key := strings.TrimPrefix(v.path, table+".") // dotted in a table below this one
		note := v.source()
		if v.set.hasNoEffectYet() {
			note += "; " + notYet
		}
		fmt.Fprintf(&out, "%s = %s  # %s\n", key, toTOML(v.shown()), comment(note))
	})
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("print the configuration: %w", err)
	}
	return nil
}

// MarshalJSON returns in JSON the settings that Print prints, and the notices.
func (c *Config) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		File     string    `json:"file"`
		Home     string    `json:"home"`
		Settings []Setting `json:"settings"`
		Notices  []string  `json:"notices,omitempty"`
	}{c.File, c.Home, c.Settings(), c.Notices()})
}

// comment returns a text without line breaks and control characters, so that it can stand in a
// TOML comment.
func comment(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
}

// toTOML returns a value, as shown returns it, written in TOML.
func toTOML(v any) string {
	switch x := v.(type) {
	case string:
		return quoted(x)
	case []string:
		items := make([]string, len(x))
		for i, s := range x {
			items[i] = quoted(s)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case []any:
		items := make([]string, len(x))
		for i, item := range x {
			items[i] = itemToTOML(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case int64:
		return strconv.FormatInt(x, 10)
	}
	return fmt.Sprint(v) // money, as it is
}

// itemToTOML returns an item of a list of chats or of routes in TOML.
func itemToTOML(item any) string {
	table, ok := item.(map[string]any)
	if !ok {
		return toTOML(item)
	}
	if chat, ok := table["chat"]; ok {
		return "{ chat = " + toTOML(chat) + ", mention = " + toTOML(table["mention"]) + " }"
	}
	match := "{ match = " + matches(table["match"].(map[string]string))
	if agent, ok := table["agent"]; ok {
		return match + ", agent = " + toTOML(agent) + " }"
	}
	return match + ", to = " + toTOML(table["to"]) + " }"
}

func matches(m map[string]string) string {
	var items []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		items = append(items, quoted(name)+" = "+quoted(m[name]))
	}
	return "{ " + strings.Join(items, ", ") + " }"
}

// quoted returns a text in quotes, as TOML writes it.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Secrets returns all texts that no output may show, so that they can be removed wherever they
// turn up: values that are declared as secrets, what was read from secret files and variables,
// and passwords in URLs.
func (c *Config) Secrets() []string {
	var all []string
	c.kept.each(func(_ string, v *value) {
		text, isText := v.v.(string)
		list, isList := v.v.([]string)
		switch {
		case isList && v.set.secret:
			for _, pair := range list {
				all = append(all, secretIn(pair)...)
			}
		case v.hidden || v.set.secret:
			all = append(all, textsIn(v.v)...)
		case isText && v.set.kind == asURL:
			all = append(all, passwordOf(text)...)
		}
	})
	return all
}

// textsIn returns all texts within a value.
func textsIn(v any) []string {
	var all []string
	switch v := v.(type) {
	case string:
		return []string{v}
	case []string:
		return v
	case []any:
		for _, inner := range v {
			all = append(all, textsIn(inner)...)
		}
	case map[string]any:
		for _, inner := range v {
			all = append(all, textsIn(inner)...)
		}
	}
	return all
}

// passwordOf returns a URL's password as a list of one, unless it is a word that the rest of the
// URL holds anyway, or there is none: then the list is empty.
func passwordOf(address string) []string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return nil
	}
	secret, _ := u.User.Password()
	if secret == "" || strings.Count(address, secret) > 1 {
		return nil
	}
	return []string{secret}
}
