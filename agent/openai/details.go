package openai

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Bounds of an answer's reasoning_details.
const (
	maxDetails     = 4096
	maxDetailsSize = 4 << 20 // bytes as they came
)

// details are the reasoning_details of an answer: entries that arrive in parts.
type details struct {
	entries []*detail
	size    int
}

// A detail is one entry. Its texts grow apart from its other fields.
type detail struct {
	fields map[string]any
	texts  map[string]*strings.Builder
}

// add takes more entries, or parts of the last. What is no list is ignored.
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

// continuedBy tells whether an entry is the next part of this one. Encrypted entries come
// whole.
func (d *detail) continuedBy(next map[string]any) bool {
	kind, _ := next["type"].(string)
	before, _ := d.fields["type"].(string)
	from, _ := d.fields["index"].(float64)
	to, _ := next["index"].(float64)
	return kind == before && from == to && (kind == "reasoning.text" || kind == "reasoning.summary")
}

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

// raw is all entries as they are sent back.
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
