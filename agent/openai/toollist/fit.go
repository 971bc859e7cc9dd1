package toollist

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"parley/tools"
	"parley/tools/plainjson"
)

// fit returns a tool's schema and description in a form that the server accepts.
func fit(s tools.Spec, f Form) (schema json.RawMessage, description string) {
	schema, note := fitSchema(s.Schema)
	return schema, fitDescription(s.Description, note, f.MaxDescription)
}

// fitDescription returns a description followed by a note, in at most most characters; 0 means any number. If both
// are too long, the description's end is cut off. The note is dropped if it would leave the description less than
// half of the room.
func fitDescription(text, note string, most int) string {
	if note != "" {
		note = "\n\n" + note
	}
	if most <= 0 || utf16Length(text)+utf16Length(note) <= most {
		return strings.TrimSpace(text + note)
	}
	cut := fmt.Sprintf(" … [%d more characters are left out]", utf16Length(text))
	room := most - utf16Length(note) - utf16Length(cut)
	if room < most/2 {
		note, room = "", most-utf16Length(cut)
	}
	at, n := 0, 0
	for i, r := range text {
		if n += utf16Length(string(r)); n > room {
			break
		}
		at = i + len(string(r))
	}
	kept := text[:at]
	if space := strings.LastIndexAny(kept, " \n\t"); space > at*3/4 {
		kept = kept[:space]
	}
	kept = strings.TrimSpace(kept)
	return kept + fmt.Sprintf(" … [%d more characters are left out]", utf16Length(text)-utf16Length(kept)) + note
}

// utf16Length counts the characters of a text. Those that need two code units in UTF-16 count twice, because
// servers may count them that way.
func utf16Length(text string) (n int) {
	for _, r := range text {
		if n++; r > 0xffff {
			n++
		}
	}
	return n
}

// Limits on how deeply a schema is examined, because it may refer to itself.
const (
	maxDepth   = 32
	maxObjects = 1000
)

// choiceKeywords are the keywords that OpenAI and Anthropic refuse at the top of a schema, and $ref, whose target may
// contain one of them.
func choiceKeywords() []string { return []string{"anyOf", "oneOf", "allOf", "enum", "not", "$ref"} }

// fitSchema returns a schema that describes an object, has no choice between alternatives at its top, and
// declares the items of each list. If the result says less than the original, note says in words which
// arguments belong together. If nothing has to be changed, it returns the same bytes.
func fitSchema(raw json.RawMessage) (fitted json.RawMessage, note string) {
	const empty = `{"type":"object","properties":{}}`
	if len(raw) == 0 {
		return json.RawMessage(empty), ""
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var top map[string]any
	if d.Decode(&top) != nil {
		return raw, "" // encoding it reports the error
	}
	changed := fillLists(top, maxDepth)
	if top["type"] != "object" {
		top["type"], changed = "object", true
	}
	if slices.ContainsFunc(choiceKeywords(), func(word string) bool { _, has := top[word]; return has }) {
		note = requiredTogether(top)
		top, changed = mergeAlternatives(top), true
	}
	if !changed {
		return raw, ""
	}
	fitted, err := plainjson.Marshal(top)
	if err != nil { // it was decoded a moment ago
		return raw, ""
	}
	return fitted, note
}

// fillLists declares the items of each list in a schema that doesn't do so itself, as a whole or for each
// position: they may be anything. It reports whether there was such a list.
func fillLists(v any, depth int) (changed bool) {
	if depth == 0 {
		return false
	}
	switch v := v.(type) {
	case []any:
		for _, inner := range v {
			changed = fillLists(inner, depth-1) || changed
		}
	case map[string]any:
		isList := v["type"] == "array" || slices.Contains(texts(v["type"]), "array")
		if _, each := v["items"].([]any); each || isList && v["items"] == nil && v["prefixItems"] == nil {
			v["items"], changed = map[string]any{}, true
		}
		for word, inner := range v {
			if word == "enum" || word == "const" || word == "default" || word == "examples" {
				continue // these hold values, not schemas
			}
			changed = fillLists(inner, depth-1) || changed
		}
	}
	return changed
}

// mergeAlternatives returns the schema of one object that allows everything that the alternatives of another schema
// allow, and more: it has the properties of all of them, and requires those that each of them requires.
func mergeAlternatives(top map[string]any) map[string]any {
	flat := map[string]any{}
	for word, v := range top {
		if !slices.Contains(choiceKeywords(), word) {
			flat[word] = v
		}
	}
	o := newSchemaReader(top).object(top, maxDepth)
	flat["properties"] = o.merged()
	delete(flat, "required")
	if len(o.required) > 0 {
		flat["required"] = slices.Sorted(maps.Keys(o.required))
	}
	own, _ := top["properties"].(map[string]any)
	if len(own) != len(o.properties) {
		delete(flat, "additionalProperties") // it applied only to the top's own properties
	}
	return flat
}

// An object is what a schema says about an object's properties.
type object struct {
	properties map[string][]any // by name: the schemas that each may have
	required   map[string]bool
}

// A schemaReader finds out what the objects in a schema are. It limits how many of them are examined.
type schemaReader struct {
	root map[string]any // the root that references are relative to
	left int
}

func newSchemaReader(root map[string]any) *schemaReader { return &schemaReader{root, maxObjects} }

// object returns what a part of the schema and its choices say together.
func (r *schemaReader) object(schema map[string]any, depth int) object {
	o := object{map[string][]any{}, map[string]bool{}}
	if r.left--; depth == 0 || r.left < 0 {
		return o
	}
	own, _ := schema["properties"].(map[string]any)
	for name, one := range own {
		o.add(name, one)
	}
	for _, name := range texts(schema["required"]) {
		o.required[name] = true
	}
	all := subschemas(schema["allOf"])
	if to := resolve(schema["$ref"], r.root); to != nil {
		all = append(all, to)
	}
	for _, one := range all {
		other := r.object(one, depth-1)
		o.addAll(other)
		maps.Copy(o.required, other.required)
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		var common map[string]bool
		for i, one := range subschemas(schema[word]) {
			other := r.object(one, depth-1)
			o.addAll(other)
			if i == 0 {
				common = other.required
			}
			maps.DeleteFunc(common, func(name string, _ bool) bool { return !other.required[name] })
		}
		maps.Copy(o.required, common)
	}
	return o
}

// add says that a property may be what a schema describes.
func (o object) add(name string, schema any) {
	if !slices.ContainsFunc(o.properties[name], func(known any) bool { return reflect.DeepEqual(known, schema) }) {
		o.properties[name] = append(o.properties[name], schema)
	}
}

// addAll adds the properties of another object.
func (o object) addAll(other object) {
	for name, all := range other.properties {
		for _, one := range all {
			o.add(name, one)
		}
	}
}

// maxAlternatives is how many schemas one property may have; with more, it may be anything.
const maxAlternatives = 10

// merged returns one schema for each property. A property may be anything if its schema refers to an
// alternative that is no longer there.
func (o object) merged() map[string]any {
	all := map[string]any{}
	for name, schemas := range o.properties {
		switch {
		case len(schemas) == 1:
			all[name] = schemas[0]
		case len(schemas) > maxAlternatives:
			all[name] = map[string]any{}
		default:
			all[name] = map[string]any{"anyOf": schemas}
		}
		raw, err := plainjson.Marshal(all[name])
		if err != nil || slices.ContainsFunc(choiceKeywords(), func(word string) bool { return bytes.Contains(raw, []byte(`"$ref":"#/`+word)) }) {
			all[name] = map[string]any{}
		}
	}
	return all
}

// requiredTogether says in words which arguments belong together, if the alternatives at the top of a schema
// require different ones; otherwise it returns "".
func requiredTogether(top map[string]any) string {
	for _, word := range []string{"oneOf", "anyOf"} {
		var all []string
		for _, one := range subschemas(top[word]) {
			names := slices.Sorted(maps.Keys(newSchemaReader(top).object(one, maxDepth).required))
			if len(names) == 0 {
				return ""
			}
			all = append(all, strings.Join(names, " and "))
		}
		if all = slices.Compact(all); len(all) > 1 {
			return "It wants one of these sets of arguments: " + strings.Join(all, "; ") + "."
		}
	}
	return ""
}

// resolve returns the schema within root that a reference points to; nil if it is not a reference, or there is no
// such schema.
func resolve(reference any, root map[string]any) map[string]any {
	text, _ := reference.(string)
	path, ok := strings.CutPrefix(text, "#/")
	if !ok {
		return nil
	}
	at := root
	for step := range strings.SplitSeq(path, "/") {
		at, _ = at[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)].(map[string]any)
	}
	return at
}

// subschemas returns the schemas in a list.
func subschemas(v any) (all []map[string]any) {
	list, _ := v.([]any)
	for _, one := range list {
		if schema, ok := one.(map[string]any); ok {
			all = append(all, schema)
		}
	}
	return all
}

// texts returns the texts in a list.
func texts(v any) (all []string) {
	list, _ := v.([]any)
	for _, one := range list {
		if text, ok := one.(string); ok {
			all = append(all, text)
		}
	}
	return all
}
