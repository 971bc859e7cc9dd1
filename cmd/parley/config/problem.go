package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley/tools/spelling"
)

// A Problem is one thing that is wrong, and what to do about it. It never holds
// a secret.
type Problem struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Var    string `json:"env,omitempty"` // the environment variable at fault
	Key    string `json:"key,omitempty"`
	Wrong  string `json:"wrong"`
	Remedy string `json:"remedy"`
}

// String is file:line: key: what is wrong: remedy.
func (p Problem) String() string {
	var parts []string
	for _, part := range []string{origin{p.File, p.Line, p.Var}.place(), p.Key, p.Wrong, p.Remedy} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// An Error is every problem that was found, in the order of the file.
type Error struct {
	Problems []Problem `json:"problems"`
}

// Error is one problem a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// A SettingError says which setting keeps the server from starting, though the
// configuration itself is good, and what to do.
type SettingError struct {
	Where  string // file:line or where else the value comes from; may be empty
	Key    string
	Remedy string
}

// Error says where the setting stands, its name and what to do.
func (e *SettingError) Error() string {
	if e.Where == "" {
		return e.Key + ": " + e.Remedy
	}
	return e.Where + ": " + e.Key + ": " + e.Remedy
}

// problems makes an *Error of what was found, or nil.
func problems(found []Problem) error {
	if len(found) == 0 {
		return nil
	}
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key))
	})
	return &Error{Problems: slices.Compact(found)}
}

// An origin is where a value came from; the zero origin is the default.
type origin struct {
	file string
	line int
	env  string
}

// place is the origin, and "" for a default.
func (o origin) place() string {
	switch {
	case o.env != "":
		return o.env + " (environment)"
	case o.file != "" && o.line > 0:
		return fmt.Sprintf("%s:%d", o.file, o.line)
	}
	return o.file
}

// at makes a problem of this place.
func (o origin) at(key string, f *fault) Problem {
	return Problem{File: o.file, Line: o.line, Var: o.env, Key: key, Wrong: f.wrong, Remedy: f.remedy}
}

// A fault is what is wrong with a value, before its place is known.
type fault struct {
	wrong  string
	remedy string
	index  int // of the list element at fault, counted from 1; 0 is the whole
}

// oneOf is the remedy for a word that is not among the known ones: the nearest,
// or all of them.
func oneOf(word string, known []string) string {
	if near := spelling.Nearest(word, known); near != "" {
		return fmt.Sprintf("write %q", near)
	}
	quoted := make([]string, len(known))
	for i, k := range known {
		quoted[i] = fmt.Sprintf("%q", k)
	}
	if len(quoted) == 1 {
		return "write " + quoted[0]
	}
	return "write one of " + strings.Join(quoted, ", ")
}
