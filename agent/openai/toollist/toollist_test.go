package toollist_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"parley/agent/openai/toollist"
	"parley/tools"
)

func namedSpecs(names ...string) []tools.Spec {
	var all []tools.Spec
	for _, n := range names {
		all = append(all, tools.Spec{Name: n, Description: "does <" + n + ">", Schema: json.RawMessage(`{"type":"object","title":"` + n + `","properties":{}}`)})
	}
	return all
}

// writtenList returns a list as JSON.
func writtenList(w *toollist.Writer, all []tools.Spec, f toollist.Form) (string, error) {
	l, _, err := w.List(all, f)
	if err != nil {
		return "", err
	}
	return string(l.JSON), nil
}

func TestEachListIsWrittenCorrectly(t *testing.T) {
	var w toollist.Writer
	want := func(list []tools.Spec) string {
		var all []string
		for _, s := range list {
			all = append(all, fmt.Sprintf(`{"type":"function","function":{"name":%q,"description":%q,"parameters":%s}}`, s.Name, s.Description, s.Schema))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	var all sync.WaitGroup
	for n := range 20 { // more than are kept
		list := namedSpecs("a", fmt.Sprint("b", n))
		all.Go(func() {
			for range 20 {
				if got, err := writtenList(&w, list, toollist.Form{}); err != nil || got != want(list) {
					t.Errorf("it wrote %s, %v", got, err)
				}
			}
		})
	}
	all.Wait()

	list := namedSpecs("a", "b")
	before, err := writtenList(&w, list, toollist.Form{})
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(*tools.Spec){
		func(s *tools.Spec) { s.Name = "c" },
		func(s *tools.Spec) { s.Description = "does more" },
		func(s *tools.Spec) { s.Schema = json.RawMessage(`{"type":"object","properties":{}}`) },
	} {
		change(&list[1])
		if got, err := writtenList(&w, list, toollist.Form{}); err != nil || got != want(list) {
			t.Errorf("after a change it wrote %s, %v", got, err)
		}
	}
	if before != want(namedSpecs("a", "b")) {
		t.Errorf("what was written before has become %s", before)
	}
	if got, err := writtenList(&w, []tools.Spec{{Name: "bare"}}, toollist.Form{}); err != nil || got != `[{"type":"function","function":{"name":"bare","parameters":{"type":"object","properties":{}}}}]` {
		t.Errorf("a tool without a schema is %s, %v", got, err)
	}
	if got, err := writtenList(&w, []tools.Spec{{Name: "bare"}}, toollist.Form{Flat: true}); err != nil || got != `[{"type":"function","name":"bare","parameters":{"type":"object","properties":{}},"strict":false}]` {
		t.Errorf("in the flat form it is %s, %v", got, err)
	}
	if _, err := writtenList(&w, []tools.Spec{{Name: "broken", Schema: json.RawMessage("{")}}, toollist.Form{}); err == nil {
		t.Error("a schema that is no JSON is written")
	}
}

// A tool that the server has refused is left out as long as it doesn't change.
func TestARefusedToolIsLeftOut(t *testing.T) {
	var w toollist.Writer
	list := namedSpecs("a", "b", "c")
	names := func(f toollist.Form) (sent []string, left, newly []toollist.LeftOut) {
		l, newly, err := w.List(list, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range l.Sent {
			sent = append(sent, s.Name)
		}
		return sent, l.LeftOut, newly
	}
	names(toollist.Form{})
	if !w.Refuse(list[1], "no") || w.Refuse(list[1], "no") {
		t.Error("it was not refused once")
	}
	for i, f := range []toollist.Form{{}, {}, {Flat: true}} {
		sent, left, newly := names(f)
		if fmt.Sprint(sent) != "[a c]" || fmt.Sprint(left) != "[{b no}]" || (len(newly) == 1) != (i == 0) {
			t.Errorf("list %d has %v, without %v, newly %v", i, sent, left, newly)
		}
	}
	if got := w.Left(); fmt.Sprint(got) != "[{b no}]" {
		t.Errorf("left out are %v", got)
	}
	list[1].Description = "is another"
	if sent, left, _ := names(toollist.Form{}); fmt.Sprint(sent) != "[a b c]" || len(left) != 0 {
		t.Errorf("after it changed the list has %v, without %v", sent, left)
	}
	if got := w.Left(); len(got) > 0 {
		t.Errorf("after it changed, left out are still %v", got)
	}
	if w.Refuse(list[2], "no"); len(w.Left()) > 0 {
		t.Errorf("before the next list, left out are %v", w.Left())
	}
	w.Readmit(list[2:])
	if sent, left, _ := names(toollist.Form{}); fmt.Sprint(sent) != "[a b c]" || len(left) != 0 {
		t.Errorf("after all are back the list has %v, without %v", sent, left)
	}
}

// Left returns the tools that are missing in the current lists, and not all that ever were.
func TestLeftReturnsTheCurrentlyMissingTools(t *testing.T) {
	var w toollist.Writer
	for i := range 20 {
		if _, newly, err := w.List(namedSpecs(fmt.Sprint("s__a", i), fmt.Sprint("s__b", i)), toollist.Form{MaxTools: 1}); err != nil || len(newly) != 1 {
			t.Fatalf("newly left out are %v (%v)", newly, err)
		}
	}
	if left := w.Left(); len(left) != 8 || left[0].Name != "s__b12" {
		t.Errorf("left out are %v", left)
	}
}

// If there are more tools than the server accepts, the program's own stay, and then others by name.
func TestTooManyTools(t *testing.T) {
	var names []string
	for i := range 150 {
		names = append(names, fmt.Sprintf("server__t%03d", i))
	}
	names = append(names, "read_file", "write_file", "zoo__a")
	slices.Sort(names)
	for _, c := range []struct{ most, want int }{{0, 128}, {200, 153}, {10, 10}, {1, 1}} {
		var w toollist.Writer
		l, newly, err := w.List(namedSpecs(names...), toollist.Form{MaxTools: c.most})
		if err != nil {
			t.Fatal(err)
		}
		var sent []string
		for _, s := range l.Sent {
			sent = append(sent, s.Name)
		}
		if len(sent) != c.want || len(sent)+len(l.LeftOut) != len(names) || len(newly) != len(l.LeftOut) || !slices.IsSorted(sent) || !slices.Contains(sent, "read_file") {
			t.Errorf("of at most %d the list has %d: %v, and %d are left out", c.most, len(sent), sent, len(l.LeftOut))
		}
		if c.want > 1 && !slices.Contains(sent, "write_file") || c.want > 2 && !slices.Contains(sent, "server__t000") {
			t.Errorf("of at most %d the list has %v", c.most, sent)
		}
	}
}

// fittedTool returns a tool's description and schema in a list.
func fittedTool(t *testing.T, s tools.Spec, f toollist.Form) (description, schema string) {
	t.Helper()
	var w toollist.Writer
	raw, err := writtenList(&w, []tools.Spec{s}, f)
	var all []struct {
		Function struct {
			Description string
			Parameters  json.RawMessage
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(raw), &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all[0].Function.Description, string(all[0].Function.Parameters)
}

func TestALongDescriptionIsCut(t *testing.T) {
	for name, text := range map[string]string{
		"words":  strings.Repeat("word ", 500),
		"one":    strings.Repeat("x", 3000),
		"emojis": strings.Repeat("🐙", 2000),
	} {
		got, _ := fittedTool(t, tools.Spec{Name: "a", Description: text}, toollist.Form{MaxDescription: 1024})
		if n := len(utf16.Encode([]rune(got))); n > 1024 || n < 900 || !strings.HasSuffix(got, " more characters are left out]") {
			t.Errorf("%s: it has %d characters: %q", name, n, got)
		}
	}
	if got, _ := fittedTool(t, tools.Spec{Name: "a", Description: strings.Repeat("y", 1024)}, toollist.Form{MaxDescription: 1024}); len(got) != 1024 || strings.Contains(got, "left out") {
		t.Errorf("what fits has become %q", got)
	}
	if got, _ := fittedTool(t, tools.Spec{Name: "a", Description: strings.Repeat("y", 9000)}, toollist.Form{}); len(got) != 9000 {
		t.Errorf("without a bound %d characters are left", len(got))
	}
	choice := tools.Spec{Name: "a", Description: strings.Repeat("y ", 9000), Schema: json.RawMessage(`{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}]}`)}
	if got, _ := fittedTool(t, choice, toollist.Form{MaxDescription: 1024}); len(got) > 1024 || !strings.HasSuffix(got, "one of these sets of arguments: a; b.") {
		t.Errorf("what the schema no longer says is lost: %q", got)
	}
}

// Schemas that OpenAI or Anthropic refuse are written in another way, which allows at least the same.
func TestSchemasAreFitted(t *testing.T) {
	for name, c := range map[string]struct{ schema, want, note string }{
		"as it is":      {`{"type":"object", "properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["a"]}`, "", ""},
		"no type":       {`{"properties":{}}`, `{"properties":{},"type":"object"}`, ""},
		"no properties": {`{"type":"object"}`, "", ""},
		"either": {
			`{"type":"object","properties":{"all":{"type":"boolean"}},"required":["all"],"anyOf":[{"properties":{"id":{"type":"integer"},"x":{}},"required":["id","x"]},{"properties":{"name":{"type":"string"},"x":{}},"required":["name","x"]}],"additionalProperties":false}`,
			`{"properties":{"all":{"type":"boolean"},"id":{"type":"integer"},"name":{"type":"string"},"x":{}},"required":["all","x"],"type":"object"}`,
			"It wants one of these sets of arguments: id and x; name and x.",
		},
		"each required": {
			`{"type":"object","properties":{"id":{},"name":{}},"oneOf":[{"required":["id"]},{"required":["name"]}],"additionalProperties":false}`,
			`{"additionalProperties":false,"properties":{"id":{},"name":{}},"type":"object"}`,
			"It wants one of these sets of arguments: id; name.",
		},
		"one property of two kinds": {
			`{"type":"object","oneOf":[{"properties":{"by":{"const":"a"}}},{"properties":{"by":{"const":"b"}}},{"properties":{"by":{"const":"a"}}}]}`,
			`{"properties":{"by":{"anyOf":[{"const":"a"},{"const":"b"}]}},"type":"object"}`, "",
		},
		"all of referred ones": {
			`{"type":"object","allOf":[{"$ref":"#/$defs/one~1two"},{"required":["b"],"properties":{"b":{"type":"string"}}}],"$defs":{"one/two":{"properties":{"a":{}},"required":["a"]}},"not":{"required":["c"]},"enum":[1]}`,
			`{"$defs":{"one/two":{"properties":{"a":{}},"required":["a"]}},"properties":{"a":{},"b":{"type":"string"}},"required":["a","b"],"type":"object"}`, "",
		},
		"what refers to a choice": {
			`{"type":"object","anyOf":[{"properties":{"a":{"type":"string"},"b":{"$ref":"#/anyOf/0/properties/a"}}}]}`,
			`{"properties":{"a":{"type":"string"},"b":{}},"type":"object"}`, "",
		},
		"lists of nothing": {
			`{"type":"object","properties":{"a":{"type":"array"},"b":{"type":["array","null"]},"c":{"type":"array","items":[{"type":"string"}]},"d":{"type":"array","prefixItems":[{}]},"e":{"enum":[{"type":"array"}]}}}`,
			`{"properties":{"a":{"items":{},"type":"array"},"b":{"items":{},"type":["array","null"]},"c":{"items":{},"type":"array"},"d":{"prefixItems":[{}],"type":"array"},"e":{"enum":[{"type":"array"}]}},"type":"object"}`, "",
		},
		"a circle": {
			`{"type":"object","allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"properties":{"x":{}}}}}`,
			`{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"properties":{"x":{}}}},"properties":{"x":{}},"type":"object"}`, "",
		},
	} {
		description, schema := fittedTool(t, tools.Spec{Name: "a", Schema: json.RawMessage(c.schema)}, toollist.Form{})
		if c.want == "" {
			c.want = strings.ReplaceAll(c.schema, ", ", ",")
		}
		if schema != c.want || description != c.note {
			t.Errorf("%s: it is %s with %q\nwant  %s with %q", name, schema, description, c.want, c.note)
		}
		if err := tools.CheckSchema(json.RawMessage(schema)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzFit checks that any schema becomes the JSON of an object without choices at its top.
func FuzzFit(f *testing.F) {
	f.Add(`{"type":"object","anyOf":[{"required":["a"]},{"$ref":"#/$defs/x"}],"$defs":{"x":{"oneOf":[{"properties":{"a":1}}]}}}`)
	f.Add(`{"properties":[],"required":{},"allOf":3,"items":[1]}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, schema string) {
		if !json.Valid([]byte(schema)) {
			return
		}
		_, got := fittedTool(t, tools.Spec{Name: "a", Schema: json.RawMessage(schema)}, toollist.Form{})
		var was, is map[string]any
		if json.Unmarshal([]byte(schema), &was) != nil || was == nil {
			return
		}
		if err := json.Unmarshal([]byte(got), &is); err != nil || is["type"] != "object" {
			t.Fatalf("%s became %s (%v)", schema, got, err)
		}
		for _, word := range []string{"anyOf", "oneOf", "allOf", "enum", "not", "$ref"} {
			if _, has := is[word]; has {
				t.Fatalf("%s became %s", schema, got)
			}
		}
	})
}
