package tools

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// A fitter converts the arguments that a model has written to the types that a tool's schema
// requires, if the conversion loses nothing: "5" to 5, 42 to "42", 5.0 to 5, an object that was
// encoded twice to the object. It drops a null that a model sends for an optional argument. It
// doesn't look into schemas that leave a choice (such as anyOf). Its notes say what was converted.
type fitter struct{ notes []string }

// fitValue returns a value converted to a type that its schema allows. doc is the schema, and at is
// the value's path, for the notes.
func (f *fitter) fitValue(doc map[string]any, v any, at string) any {
	types := typesOf(doc)
	if len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return isType(t, v) }) {
		if fit, ok := convert(types, v); ok {
			f.noteConversion(at, v, fit)
			v = fit
		}
	}
	switch v := v.(type) {
	case json.Number:
		if n, ok := asInteger(v); ok && slices.Contains(types, "integer") {
			return n
		}
	case map[string]any:
		f.fitObject(doc, v, at)
	case []any:
		if items, ok := doc["items"].(map[string]any); ok {
			for i := range v {
				v[i] = f.fitValue(items, v[i], fmt.Sprintf("%s[%d]", at, i))
			}
		}
	}
	return v
}

// fitObject converts the members of an object in place, and drops optional ones that are null.
// doc is the object's schema.
func (f *fitter) fitObject(doc, object map[string]any, at string) {
	properties, _ := doc["properties"].(map[string]any)
	required, _ := doc["required"].([]any)
	for _, name := range sortedKeys(properties) {
		property, _ := properties[name].(map[string]any)
		v, given := object[name]
		if !given {
			continue
		}
		where := strings.TrimPrefix(at+"."+name, ".")
		types := typesOf(property)
		if v == nil && len(types) > 0 && !slices.Contains(types, "null") && !slices.Contains(required, any(name)) {
			delete(object, name)
			f.addNote(fmt.Sprintf("%q was null and is left out", where))
			continue
		}
		object[name] = f.fitValue(property, v, where)
	}
}

// noteConversion records that the value at a path was converted.
func (f *fitter) noteConversion(at string, from, to any) {
	if at == "" {
		at = "the arguments"
	}
	f.addNote(fmt.Sprintf("%q was %s and is read as %s", Clip(at, 64), typeName(from), typeName(to)))
}

// addNote adds a note about a conversion, unless there are maxProblems already, because the model
// has to read them.
func (f *fitter) addNote(note string) {
	if len(f.notes) < maxProblems {
		f.notes = append(f.notes, note)
	}
}

// convert converts a value to one of the types; false if it can't without loss.
func convert(types []string, v any) (any, bool) {
	switch v := v.(type) {
	case json.Number:
		return v.String(), slices.Contains(types, "string")
	case bool:
		return fmt.Sprint(v), slices.Contains(types, "string")
	case string:
		return convertText(types, strings.TrimSpace(v))
	}
	return nil, false
}

// convertText parses a text as a JSON value, such as a number, of one of the types; false if it
// isn't one.
func convertText(types []string, text string) (any, bool) {
	if strings.EqualFold(text, "true") || strings.EqualFold(text, "false") {
		text = strings.ToLower(text) // Python writes True
	}
	value, err := parse([]byte(text), maxArgsDepth)
	if err != nil || value == nil {
		return nil, false
	}
	return value, slices.ContainsFunc(types, func(t string) bool { return isType(t, value) })
}

func isType(name string, v any) bool {
	if n, ok := v.(json.Number); ok && name == "integer" {
		_, whole := asInteger(n)
		return whole
	}
	return typeName(v) == name
}

// typeName returns the name of a value's type in JSON Schema.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// asInteger returns a whole number such as 5.0 or 1e3 without fraction and exponent, so that Go
// can read it as an integer. It returns false for a number that is not whole.
func asInteger(n json.Number) (json.Number, bool) {
	if !strings.ContainsAny(n.String(), ".eE") {
		return n, true
	}
	r, ok := new(big.Rat).SetString(n.String())
	if !ok || !r.IsInt() {
		return "", false
	}
	return json.Number(r.Num().String()), true
}
