package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/tools/plainjson"
)

// Limits on an answer's reasoning_details.
const (
	maxDetails     = 4096
	maxDetailsSize = 4 << 20 // bytes of JSON
)

// details holds a model's reasoning, as the entries of reasoning_details in its answer. They arrive in parts.
type details struct {
	entries []*detail
	size    int
}

// A detail is one entry of an answer's reasoning_details, as far as it has arrived. Its fields text and
// summary, which arrive in pieces, are collected in texts; its other fields are in fields.
type detail struct {
	fields map[string]any
	texts  map[string]*strings.Builder
}

// add adds a list of entries, or of parts of the last entry. It ignores raw if it is not a list, and what follows an
// entry that is not an object. It returns errGarbled if the details get too large.
func (ds *details) add(raw json.RawMessage) error {
	var more []json.RawMessage
	if json.Unmarshal(raw, &more) != nil {
		return nil
	}
	ds.size += len(raw)
	if ds.size > maxDetailsSize || len(ds.entries)+len(more) > maxDetails {
		return fmt.Errorf("%w: its reasoning details do not end", errGarbled)
	}
	for _, m := range more {
		var fields map[string]any
		if json.Unmarshal(m, &fields) != nil {
			return nil
		}
		last := len(ds.entries) - 1
		if last < 0 || !ds.entries[last].continuedBy(fields) {
			ds.entries = append(ds.entries, &detail{fields: map[string]any{}, texts: map[string]*strings.Builder{}})
			last++
		}
		ds.entries[last].merge(fields)
	}
	return nil
}

// continuedBy reports whether next is another part of this entry. Encrypted entries are never continued,
// because they arrive whole.
func (d *detail) continuedBy(next map[string]any) bool {
	kind, _ := next["type"].(string)
	before, _ := d.fields["type"].(string)
	from, _ := d.fields["index"].(float64)
	to, _ := next["index"].(float64)
	return kind == before && from == to && (kind == "reasoning.text" || kind == "reasoning.summary")
}

// merge adds the fields of an entry's next part to the entry: texts are appended, other values are replaced,
// though not by null.
func (d *detail) merge(next map[string]any) {
	for k, v := range next {
		part, isText := v.(string)
		switch {
		case isText && (k == "text" || k == "summary"):
			if d.texts[k] == nil {
				d.texts[k] = &strings.Builder{}
			}
			d.texts[k].WriteString(part)
		case v != nil || d.fields[k] == nil:
			d.fields[k] = v
		}
	}
}

// raw returns all details as a JSON array, which the next request sends back to the server; nil if the answer
// had none.
func (ds *details) raw() json.RawMessage {
	if len(ds.entries) == 0 {
		return nil
	}
	var all []map[string]any
	for _, d := range ds.entries {
		for k, text := range d.texts {
			d.fields[k] = text.String()
		}
		all = append(all, d.fields)
	}
	return toRaw(all)
}

// toRaw encodes a value for the Provider field of a block. The values were read from JSON, so they can always
// be encoded.
func toRaw(v any) json.RawMessage {
	raw, err := plainjson.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}
