package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley/tools/spelling"
)

// A Problem is one mistake in the configuration, and what to do about it. It never contains a
// secret.
type Problem struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Var    string `json:"env,omitempty"` // the environment variable whose value is wrong, if any
	Key    string `json:"key,omitempty"`
	Wrong  string `json:"wrong"`
	Remedy string `json:"remedy"`
}

// String returns "file:line: key: what is wrong: remedy".
func (p Problem) String() string {
	var parts []string
	for _, part := range []string{Origin{p.File, p.Line, p.Var}.inWords(), p.Key, p.Wrong, p.Remedy} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// An Error lists every problem that was found, in the order of the file.
type Error struct {
	Problems []Problem `json:"problems"`
}

// Error returns one problem on each line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// ErrorOf returns an *Error with the problems, each once, in the order of the file; nil if there are none.
func ErrorOf(found []Problem) error {
	if len(found) == 0 {
		return nil
	}
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key))
	})
	return &Error{Problems: slices.Compact(found)}
}

// An Origin is the place where a value was written: a line of the file, or an environment
// variable. The zero Origin means that the value is the default.
type Origin struct {
	File string
	Line int
	Var  string
}

// inWords returns the origin in words; "" for a default.
func (o Origin) inWords() string {
	switch {
	case o.Var != "":
		return o.Var + " (environment)"
	case o.File != "" && o.Line > 0:
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	}
	return o.File
}

// Problem returns a Problem for a fault in the value of the setting key that was written at this
// origin.
func (o Origin) Problem(key string, f *Fault) Problem {
	return Problem{File: o.File, Line: o.Line, Var: o.Var, Key: key, Wrong: f.Wrong, Remedy: f.Remedy}
}

// A Fault says what is wrong with a value, before it is known where the value was written.
type Fault struct {
	Wrong  string
	Remedy string
	Index  int // which element of a list is wrong, counted from 1; 0 means the whole value
}

// OneOf returns the remedy for a word that is not one of the known ones: it names the nearest of
// them, or all.
func OneOf(word string, known []string) string {
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
