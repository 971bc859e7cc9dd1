// Package toollist writes the tools of a request as JSON, and keeps the lists that it
// has written.
package toollist

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"parley/tools"
)

// maxKept bounds how many lists a Writer keeps: agents and conversations have different
// tools.
const maxKept = 8

// A Writer writes lists of tools as JSON. Each model call sends a list, nearly always
// the same as the call before, and in a short conversation the list is the largest part
// of a request. A Writer is safe for concurrent use.
type Writer struct {
	// Flat writes the form of OpenAI's Responses API, in which a function's name and
	// schema stand in the tool itself.
	Flat bool

	mu   sync.Mutex
	kept []list // the list that was used last stands last
}

// A list is a list of tools and its JSON.
type list struct {
	specs []tools.Spec
	json  []byte
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
		// Strict would make the server refuse schemas with properties that may be left
		// out. The API assumes it unless it is told otherwise.
		Strict bool `json:"strict"`
	}
)

// JSON returns a list of tools in the protocol's form. The caller must not change it.
func (w *Writer) JSON(specs []tools.Spec) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, l := range w.kept {
		if slices.EqualFunc(l.specs, specs, looksLike) {
			w.kept = append(slices.Delete(w.kept, i, i+1), l)
			return l.json, nil
		}
	}
	written, err := encode(specs, w.Flat)
	if err != nil {
		return nil, fmt.Errorf("encode the tools: %w", err)
	}
	if len(w.kept) == maxKept {
		w.kept = slices.Delete(w.kept, 0, 1)
	}
	w.kept = append(w.kept, list{slices.Clone(specs), written})
	return written, nil
}

// looksLike reports whether two tools are the same for a model: their name, description
// and schema.
func looksLike(a, b tools.Spec) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
}

// encode writes a list of tools as JSON. A tool without a schema gets that of an object
// without properties.
func encode(specs []tools.Spec, flat bool) ([]byte, error) {
	all := make([]any, len(specs))
	for i, s := range specs {
		schema := s.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		function := spec{Name: s.Name, Description: s.Description, Parameters: schema}
		if flat {
			all[i] = flatTool{Type: "function", spec: function}
		} else {
			all[i] = tool{Type: "function", Function: function}
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the escape \u003c would cost the model more tokens than <
	if err := e.Encode(all); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
