package schema

import (
	"fmt"
	"io"
	"strings"
)

// A Shown is one setting that is in effect, in a form that anybody may see.
type Shown struct {
	Key      string `json:"key"`
	Value    any    `json:"value"` // secrets are shown as ***
	From     string `json:"from"`
	NoEffect bool   `json:"no_effect,omitempty"`
}

// Show lists every setting that has a value, in the order of the sections, with secrets hidden.
func (s *Settings) Show() []Shown {
	var all []Shown
	s.each(func(_ string, v *value) {
		all = append(all, Shown{Key: v.path, Value: v.shown(), From: v.source(), NoEffect: v.set.NotYet})
	})
	return all
}

// Origin returns where the value of the setting at this path comes from: file and line, or a
// variable; "" for a default.
func (s *Settings) Origin(path string) string {
	if !s.IsSet(path) {
		return ""
	}
	return s.values[path].source()
}

// source returns in words where the value was written, or "default" if it was not.
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

// shown returns the value in a form that anybody may see.
func (v *value) shown() any {
	if v.hidden {
		return masked(v.v)
	}
	return v.set.show(v.v)
}

// Print writes every effective setting as lines of TOML, each with a comment that says where it
// came from, below a comment with the lines in head. Secrets are shown as ***.
func (s *Settings) Print(w io.Writer, head ...string) error {
	var out strings.Builder
	for _, line := range head {
		fmt.Fprintf(&out, "# %s\n", comment(line))
	}
	last := ""
	s.each(func(table string, v *value) {
		if table != last {
			fmt.Fprintf(&out, "\n[%s]\n", table)
			last = table
		}
		key := strings.TrimPrefix(v.path, table+".") // the key has dots if it is in a table below this one
		note := v.source()
		if v.set.NotYet {
			note += "; " + notYet
		}
		fmt.Fprintf(&out, "%s = %s  # %s\n", key, toTOML(v.shown()), comment(note))
	})
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("print the configuration: %w", err)
	}
	return nil
}

// Secrets returns all texts that no output may show, so that they can be removed wherever they
// occur: values that are declared as secrets, the content of secret files, what variables in headers stand for, and
// passwords in URLs.
func (s *Settings) Secrets() []string {
	var all []string
	s.each(func(_ string, v *value) {
		text, isText := v.v.(string)
		list, isList := v.v.([]string)
		all = append(all, v.secrets...)
		switch {
		case isList && v.set.Secret:
			for _, pair := range list {
				found := secretIn(pair)
				if _, text, ok := strings.Cut(pair, ":"); ok && len(found) == 0 && v.set.Headers == AllValues {
					found = []string{strings.TrimSpace(text)}
				}
				all = append(all, found...)
			}
		case v.hidden || v.set.Secret:
			all = append(all, textsIn(v.v)...)
		case isText && v.set.Kind == URL:
			all = append(all, passwordsOf(text)...)
		}
	})
	return all
}
