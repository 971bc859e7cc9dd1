// Package toollist writes the tools of a request as JSON, in a form that the server accepts, and keeps the
// lists that it has written.
//
// A server that objects to one tool refuses the whole request, and so every turn of an agent. So a tool is
// adapted as far as possible (fit.go); its own description and schema stay unchanged, and its arguments are
// still checked with these. A tool that can't be adapted is left out and reported.
package toollist

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"parley/tools"
	"parley/tools/plainjson"
)

const (
	// maxKeptLists limits how many lists a Writer keeps: different agents and conversations have different tools.
	maxKeptLists = 8
	// DefaultMaxTools is the most tools that most servers accept.
	DefaultMaxTools = 128
	// maxReported limits how many tools a Writer remembers to have reported.
	maxReported = 4096
)

// A Form says in what form a server accepts tools.
type Form struct {
	// Flat selects the form of OpenAI's Responses API, in which a function's name and schema are in the tool
	// itself.
	Flat bool
	// MaxDescription is how many characters a description may have; 0 means any number.
	MaxDescription int
	// MaxTools is how many tools the server accepts; 0 means DefaultMaxTools.
	MaxTools int
}

// A List is a list of tools as written in a request. Nobody may change it.
type List struct {
	JSON    []byte       // nil if there are none
	Sent    []tools.Spec // the tools in the list, in order
	LeftOut []LeftOut    // the tools that are not in the list, by name
	specs   []tools.Spec // all tools for which the list was made
	form    Form
}

// A LeftOut is a tool that is left out of a list.
type LeftOut struct {
	Name string
	Why  string // in a few words
}

// A Writer writes lists of tools as JSON. Each model call sends a list, nearly always the same one as the call
// before, and in a short conversation the list is the largest part of a request. A Writer is safe for
// concurrent use. The zero Writer is ready to use.
type Writer struct {
	mu          sync.Mutex
	recentLists []*List // most recently used last
	refused     []refusal
	reported    map[LeftOut]bool // tools that List has already returned as newly left out
}

// A refusal is a tool that the server refuses.
type refusal struct {
	spec tools.Spec
	why  string
}

// The form of a tool in a request.
type (
	tool struct {
		Type     string `json:"type"`
		Function spec   `json:"function"`
	}
	spec struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	flatTool struct {
		Type string `json:"type"`
		spec
		// Strict would make the server refuse schemas with optional properties. The API assumes it unless it is
		// told otherwise.
		Strict bool `json:"strict"`
	}
)

// List returns a list of tools in the server's form. newly are the tools that are left out of it and were not
// left out of any list before.
func (w *Writer) List(specs []tools.Spec, f Form) (l *List, newly []LeftOut, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, l := range w.recentLists {
		if l.form == f && slices.EqualFunc(l.specs, specs, looksLike) {
			w.recentLists = append(slices.Delete(w.recentLists, i, i+1), l)
			return l, nil, nil
		}
	}
	l = &List{specs: slices.Clone(specs), form: f}
	l.Sent, l.LeftOut = w.selectTools(specs, f)
	if l.JSON, err = encode(l.Sent, f); err != nil {
		return nil, nil, fmt.Errorf("encode the tools: %w", err)
	}
	if len(w.recentLists) == maxKeptLists {
		w.recentLists = slices.Delete(w.recentLists, 0, 1)
	}
	w.recentLists = append(w.recentLists, l)
	for _, one := range l.LeftOut {
		if !w.reported[one] {
			newly = append(newly, one)
		}
	}
	w.rememberReported(newly)
	return l, newly, nil
}

// rememberReported remembers which tools were reported as left out. It forgets all of them rather than grow
// with each change of a server's tools.
func (w *Writer) rememberReported(newly []LeftOut) {
	if w.reported == nil || len(w.reported) > maxReported {
		w.reported = map[LeftOut]bool{}
	}
	for _, one := range newly {
		w.reported[one] = true
	}
}

// Refuse leaves a tool that the server has refused out of all further lists, as long as the tool doesn't
// change. It returns false if the tool is already left out.
func (w *Writer) Refuse(spec tools.Spec, why string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refusal(spec) != "" {
		return false
	}
	w.refused = append(w.refused, refusal{spec, why})
	w.recentLists = nil
	return true
}

// Readmit undoes Refuse for these tools.
func (w *Writer) Readmit(specs []tools.Spec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused = slices.DeleteFunc(w.refused, func(r refusal) bool {
		return slices.ContainsFunc(specs, func(s tools.Spec) bool { return looksLike(r.spec, s) })
	})
	w.recentLists = nil
}

// Left returns the tools that are left out of the recently used lists, by name. It doesn't return a tool that
// has changed since and is in a more recently used list.
func (w *Writer) Left() (all []LeftOut) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, l := range w.recentLists {
		for _, one := range l.LeftOut {
			if !slices.Contains(all, one) && !slices.ContainsFunc(w.recentLists[i+1:], func(later *List) bool { return later.readmits(l, one.Name) }) {
				all = append(all, one)
			}
		}
	}
	slices.SortFunc(all, func(a, b LeftOut) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// readmits reports whether a tool that an earlier list had to leave out has changed and is in this list.
func (l *List) readmits(earlier *List, name string) bool {
	named := func(s tools.Spec) bool { return s.Name == name }
	is, was := slices.IndexFunc(l.Sent, named), slices.IndexFunc(earlier.specs, named)
	return is >= 0 && was >= 0 && !looksLike(l.Sent[is], earlier.specs[was])
}

// refusal returns why the server has refused a tool, or "" if it has not.
func (w *Writer) refusal(spec tools.Spec) string {
	i := slices.IndexFunc(w.refused, func(r refusal) bool { return looksLike(r.spec, spec) })
	if i < 0 {
		return ""
	}
	return w.refused[i].why
}

// selectTools returns the tools to send, in order, and those to leave out: the tools that the server has refused,
// and those beyond its maximum. The program's own tools come before those of MCP servers and skills.
func (w *Writer) selectTools(specs []tools.Spec, f Form) (sent []tools.Spec, left []LeftOut) {
	own := 0
	for _, s := range specs {
		if why := w.refusal(s); why != "" {
			left = append(left, LeftOut{s.Name, why})
			continue
		}
		sent = append(sent, s)
		if !isForeign(s) {
			own++
		}
	}
	most := f.MaxTools
	if most == 0 {
		most = DefaultMaxTools
	}
	if len(sent) <= most {
		return sent, left
	}
	room := map[bool]int{false: min(own, most), true: most - min(own, most)}
	sent = slices.DeleteFunc(sent, func(s tools.Spec) bool {
		if room[isForeign(s)]--; room[isForeign(s)] >= 0 {
			return false
		}
		left = append(left, LeftOut{s.Name, fmt.Sprintf("the model's server accepts at most %d tools", most)})
		return true
	})
	slices.SortFunc(left, func(a, b LeftOut) int { return strings.Compare(a.Name, b.Name) })
	return sent, left
}

// isForeign reports whether a tool belongs to an MCP server or a skill.
func isForeign(s tools.Spec) bool { return strings.Contains(s.Name, "__") }

// looksLike reports whether two tools are the same for a model: they have the same name, description and
// schema.
func looksLike(a, b tools.Spec) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
}

// encode writes a list of tools as JSON; nil if there are none. A tool without a schema gets that of an object
// without properties.
func encode(specs []tools.Spec, f Form) ([]byte, error) {
	if len(specs) == 0 {
		return nil, nil
	}
	all := make([]any, len(specs))
	for i, s := range specs {
		function := spec{Name: s.Name}
		function.Parameters, function.Description = fit(s, f)
		if f.Flat {
			all[i] = flatTool{Type: "function", spec: function}
		} else {
			all[i] = tool{Type: "function", Function: function}
		}
	}
	return plainjson.Marshal(all)
}
