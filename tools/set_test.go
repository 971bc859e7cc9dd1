package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/tools"
)

type lookArgs struct {
	Path    string   `json:"path" jsonschema:"where to look"`
	Limit   int      `json:"limit,omitempty" jsonschema:"how much"`
	Deep    bool     `json:"deep,omitempty"`
	Mode    string   `json:"mode,omitempty" enum:"fast,slow"`
	Tags    []string `json:"tags,omitempty"`
	Ratio   *float64 `json:"ratio,omitempty"`
	Options struct {
		Depth int `json:"depth,omitempty"`
	} `json:"options,omitzero"`
}

func lookTool() tools.Tool {
	return tools.New(tools.Spec{Name: "look", Effect: tools.Pure}, func(_ context.Context, _ tools.Call, args lookArgs) (any, error) {
		return args, nil
	})
}

func checkArgs(t *testing.T, args string) (string, string, *tools.Error) {
	t.Helper()
	got, note, err := tools.NewSet(lookTool()).Check(tools.Call{Name: "look", Args: json.RawMessage(args)})
	return string(got), note, err
}

func TestSchema(t *testing.T) {
	want := `{"type":"object","properties":{` +
		`"path":{"type":"string","description":"where to look"},` +
		`"limit":{"type":"integer","description":"how much"},` +
		`"deep":{"type":"boolean"},` +
		`"mode":{"type":"string","enum":["fast","slow"]},` +
		`"tags":{"type":"array","items":{"type":"string"}},` +
		`"ratio":{"type":"number"},` +
		`"options":{"type":"object","properties":{"depth":{"type":"integer"}},"additionalProperties":false}},` +
		`"required":["path"],"additionalProperties":false}`
	var a, b any
	if err := json.Unmarshal([]byte(want), &a); err != nil {
		t.Fatal(err)
	}
	got := lookTool().Spec().Schema
	if err := json.Unmarshal(got, &b); err != nil {
		t.Fatal(err)
	}
	if x, y := mustJSON(t, a), mustJSON(t, b); x != y {
		t.Errorf("schema is\n%s\nwant\n%s", got, want)
	}
	for range 20 {
		if again := lookTool().Spec().Schema; string(again) != string(got) {
			t.Fatalf("the schema's bytes change:\n%s\n%s", got, again)
		}
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestNewRefusesUnknownTypes(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "odd") {
			t.Errorf("recovered %v, want a panic that names the tool", r)
		}
	}()
	tools.New(tools.Spec{Name: "odd"}, func(context.Context, tools.Call, struct{ F func() }) (any, error) { return nil, nil })
}

func TestRunDecodesAndEncodes(t *testing.T) {
	result, err := lookTool().Run(t.Context(), tools.Call{Args: json.RawMessage(`{"path":"a<b","limit":3}`)})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(result.Content); !strings.HasPrefix(got, `{"path":"a<b","limit":3`) {
		t.Errorf("result is %s", got)
	}
	for args, want := range map[string]string{
		`{"pth":"a"}`:          `"path"`,
		`{"PATH":"a"}`:         `"path"`,
		`{"path":5}`:           `"path" cannot be number`,
		`[1]`:                  "one JSON object",
		`{"path":"a","zzz":1}`: "path, limit, deep",
	} {
		_, err := lookTool().Run(t.Context(), tools.Call{Args: json.RawMessage(args)})
		wrong, ok := errors.AsType[*tools.Error](err)
		if !ok || wrong.Code != tools.InvalidArgs || !strings.Contains(wrong.Message, want) {
			t.Errorf("Run(%s) = %v, want invalid_args with %q", args, err, want)
		}
	}
}

func TestEffectsAndReconcile(t *testing.T) {
	type args struct {
		Mode string `json:"mode,omitempty"`
	}
	run := func(context.Context, tools.Call, args) (any, error) { return "ran", nil }
	plain := tools.New(tools.Spec{Name: "plain"}, run)
	if got := tools.EffectOf(plain, tools.Call{}); got != tools.Once {
		t.Errorf("an undeclared effect is %q, want once", got)
	}
	if _, _, err := plain.(tools.Reconciler).Reconcile(t.Context(), tools.Call{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Reconcile of a tool that cannot gave %v", err)
	}
	both := tools.New(tools.Spec{Name: "both", Effect: tools.Reconcilable}, run,
		tools.EffectBy(func(a args) tools.Effect {
			if a.Mode == "set" {
				return tools.Idempotent
			}
			return tools.Reconcilable
		}),
		tools.Reconcile(func(_ context.Context, _ tools.Call, a args) (any, bool, error) { return "found", a.Mode == "add", nil }))
	if got := tools.EffectOf(both, tools.Call{Args: json.RawMessage(`{"mode":"set"}`)}); got != tools.Idempotent {
		t.Errorf("effect of set is %q", got)
	}
	if got := tools.EffectOf(both, tools.Call{Args: json.RawMessage(`{"mode":3}`)}); got != tools.Reconcilable {
		t.Errorf("effect of unreadable arguments is %q", got)
	}
	result, done, err := both.(tools.Reconciler).Reconcile(t.Context(), tools.Call{Args: json.RawMessage(`{"mode":"add"}`)})
	if err != nil || !done || string(result.Content) != `"found"` {
		t.Errorf("Reconcile = %s, %v, %v", result.Content, done, err)
	}
	if _, done, err = both.(tools.Reconciler).Reconcile(t.Context(), tools.Call{}); done || err != nil {
		t.Errorf("Reconcile of what has not happened = %v, %v", done, err)
	}
}

func TestSet(t *testing.T) {
	named := func(name string, perm tools.Permission, result string) tools.Tool {
		return tools.New(tools.Spec{Name: name, Permission: perm}, func(context.Context, tools.Call, struct{}) (any, error) { return result, nil })
	}
	set := tools.NewSet(named("b", tools.FileRead, "old"), named("c", tools.Shell, ""), named("a", "", ""), named("b", tools.FileRead, "new"))
	if got := toolNames(set); got != "a b c" {
		t.Errorf("tools are %s", got)
	}
	b, ok := set.Lookup("b")
	if !ok {
		t.Fatal("b is not there")
	}
	if result, err := b.Run(t.Context(), tools.Call{}); err != nil || string(result.Content) != `"new"` {
		t.Errorf("b gives %s, %v: the later tool should have replaced the earlier", result.Content, err)
	}
	granted := set.Granted([]tools.Permission{tools.FileRead})
	if got := toolNames(granted); got != "a b" {
		t.Errorf("granted are %s", got)
	}
	if _, ok := granted.Lookup("c"); ok {
		t.Error("c is there without its permission")
	}
	_, _, err := granted.Check(tools.Call{Name: "c"})
	if err == nil || err.Code != tools.NotFound || !strings.Contains(err.Message, "a, b") {
		t.Errorf("Check of an unknown tool gave %v", err)
	}
	_, _, err = tools.NewSet(lookTool()).Check(tools.Call{Name: "Look_"})
	if err == nil || !strings.Contains(err.Message, "did you mean look?") {
		t.Errorf("Check of a mistyped tool gave %v", err)
	}
}

func toolNames(s *tools.Set) string {
	var list []string
	for _, spec := range s.Specs() {
		list = append(list, spec.Name)
	}
	return strings.Join(list, " ")
}

func TestCheckConcurrently(t *testing.T) {
	set := tools.NewSet(lookTool())
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, _, err := set.Granted(nil).Check(tools.Call{Name: "look", Args: json.RawMessage(`{"path":"x"}`)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestCheckRepairs(t *testing.T) {
	for _, c := range []struct{ name, args, want, note string }{
		{"as it is", `{"path":"a","limit":5}`, `{"limit":5,"path":"a"}`, ""},
		{"fence", "```json\n{\"path\":\"a\"}\n```", `{"path":"a"}`, "fence"},
		{"bare fence", "```\n{\"path\":\"a\",}\n```\n", `{"path":"a"}`, "commas"},
		{"double encoding", `"{\"path\":\"a\"}"`, `{"path":"a"}`, "within a text"},
		{"trailing comma", `{"path":"a","tags":["x",],}`, `{"path":"a","tags":["x"]}`, "commas"},
		{"comma in a text", `{"path":"a,}","limit":"5",}`, `{"limit":5,"path":"a,}"}`, "commas"},
		{"raw newline", "{\"path\":\"a\nb\tc\x01\"}", `{"path":"a\nb\tc\u0001"}`, "control"},
		{"text for integer", `{"path":"a","limit":"5"}`, `{"limit":5,"path":"a"}`, `"limit" was string`},
		{"text for boolean", `{"path":"a","deep":"True"}`, `{"deep":true,"path":"a"}`, `"deep"`},
		{"integer for text", `{"path":42}`, `{"path":"42"}`, `"path"`},
		{"big integer for text", `{"path":123456789012345678901234567890}`, `{"path":"123456789012345678901234567890"}`, `"path"`},
		{"fraction for integer", `{"path":"a","limit":5.0}`, `{"limit":5,"path":"a"}`, ""},
		{"exponent for integer", `{"path":"a","limit":"1e2"}`, `{"limit":100,"path":"a"}`, `"limit"`},
		{"encoded list", `{"path":"a","tags":"[\"x\"]"}`, `{"path":"a","tags":["x"]}`, `"tags"`},
		{"encoded object", `{"path":"a","options":"{\"depth\":\"2\"}"}`, `{"options":{"depth":2},"path":"a"}`, `"options.depth"`},
		{"null for optional", `{"path":"a","limit":null}`, `{"path":"a"}`, "left out"},
		{"backslash kept", `{"path":"'\d+'"}`, `{"path":"'\\d+'"}`, "backslash"},
		{"backslashes kept", `{"path":"\d+\\.\w \"q\""}`, `{"path":"\\d+\\.\\w \"q\""}`, "backslash"},
		{"not for HTML", `{"path":"<&>"}`, `{"path":"<&>"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, note, err := checkArgs(t, c.args)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if !strings.Contains(note, c.note) || c.note == "" && note != "" {
				t.Errorf("note is %q, want %q in it", note, c.note)
			}
		})
	}
}

func TestCheckWithoutArguments(t *testing.T) {
	bare := tools.NewSet(tools.New(tools.Spec{Name: "bare"}, func(context.Context, tools.Call, struct{}) (any, error) { return nil, nil }))
	for _, args := range []string{"", " \n", "null", "{}", `""`} {
		got, _, err := bare.Check(tools.Call{Name: "bare", Args: json.RawMessage(args)})
		if err != nil || string(got) != "{}" {
			t.Errorf("Check(%q) = %s, %v", args, got, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	for _, c := range []struct{ name, args, want string }{
		{"missing", `{}`, `"path" is missing`},
		{"says what there is", `{}`, "path (string, required)"},
		{"unknown", `{"path":"a","limt":5}`, `did you mean "limit"?`},
		{"wrong type", `{"path":"a","limit":"five"}`, `"limit" must be integer, not string`},
		{"fraction", `{"path":"a","limit":1.5}`, `"limit" must be integer, not number`},
		{"enum", `{"path":"a","mode":"fastest"}`, `one of "fast", "slow"`},
		{"null for required", `{"path":null}`, `"path" must be string, not null`},
		{"nested unknown", `{"path":"a","options":{"x":1}}`, `"options" has unknown names: "x"`},
		{"list", `[1]`, "one JSON object"},
		{"cut in a text", `{"path":"rm -rf /tmp/x`, "cut off"},
		{"cut after a value", `{"path":"a","limit":5`, "send the whole call again"},
		{"cut fence", "```json\n{\"path\":\"a\"", "send the whole call again"},
		{"given twice", `{"path":"a","path":"b"}`, `"path" is given twice`},
		{"two objects", `{"path":"a"}{"path":"b"}`, "not valid JSON"},
		{"prose", `sure: {"path":"a"}`, "not valid JSON"},
		{"two readings", `{"path":"\d\n"}`, "two ways"},
		{"huge exponent", `{"path":"a","limit":1e1000000000}`, "out of range"},
		{"huge exponent in a text", `{"path":"a","limit":"1e1000000000"}`, `"limit" must be integer`},
		{"invalid UTF-8", "{\"path\":\"\xff\"}", "UTF-8"},
		{"thrice encoded", `"\"\\\"{}\\\"\""`, "one JSON object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := checkArgs(t, c.args)
			if err == nil {
				t.Fatalf("took it as %s", got)
			}
			if err.Code != tools.InvalidArgs || !strings.Contains(err.Message, c.want) {
				t.Errorf("got %v, want invalid_args with %q", err, c.want)
			}
		})
	}
}

func TestCheckIsQuickWithBombs(t *testing.T) {
	for name, args := range map[string]string{
		"brackets":         strings.Repeat("[", 200_000),
		"objects":          strings.Repeat(`{"path":`, 50_000),
		"encoded brackets": `{"path":"a","tags":"` + strings.Repeat("[", 200_000) + `"}`,
		"commas":           `{"path":"a",` + strings.Repeat(", ", 200_000) + "}",
		"unknown names":    `{"` + strings.Repeat("x", 200_000) + `":1,"path":"a"}`,
	} {
		start := time.Now()
		if _, _, err := checkArgs(t, args); err == nil {
			t.Errorf("%s: taken", name)
		} else if len(err.Message) > 2048 {
			t.Errorf("%s: the message has %d bytes", name, len(err.Message))
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
	}
}

// rawSchemaTool is a tool with a given schema, like another program's tools.
type rawSchemaTool struct{ schema string }

func (r rawSchemaTool) Spec() tools.Spec {
	return tools.Spec{Name: "raw", Schema: json.RawMessage(r.schema)}
}

func (r rawSchemaTool) Run(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{}, nil
}

func TestForeignSchemas(t *testing.T) {
	for name, schema := range map[string]string{
		"recursion":   `{"$ref":"#"}`,
		"elsewhere":   `{"$ref":"http://127.0.0.1:1/x.json"}`,
		"a file":      `{"$ref":"file:///etc/passwd"}`,
		"too deep":    strings.Repeat(`{"properties":{"x":`, 3000) + "{}" + strings.Repeat("}}", 3000),
		"too long":    `{"description":"` + strings.Repeat("x", 70_000) + `"}`,
		"not a thing": `[]`,
		"nonsense":    `{"type":"objekt"}`,
	} {
		_, _, err := tools.NewSet(rawSchemaTool{schema}).Check(tools.Call{Name: "raw", Args: json.RawMessage(`{}`)})
		if err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	open := tools.NewSet(rawSchemaTool{`{"type":"object","properties":{"n":{"anyOf":[{"type":"integer"},{"type":"string"}]}}}`})
	got, note, err := open.Check(tools.Call{Name: "raw", Args: json.RawMessage(`{"n":"5","other":1}`)})
	if err != nil || note != "" || string(got) != `{"n":"5","other":1}` {
		t.Errorf("a choice was not left alone: %s, %q, %v", got, note, err)
	}
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		`{"path":"a","limit":"5",}`, "```json\n{}\n```", `"{\"path\":\"a\"}"`, `{"path":"\d`, "[[[[", `{"path":"a\n"}`, `{"tags":"[1,2]","path":1e3}`,
	} {
		f.Add(seed)
	}
	set := tools.NewSet(lookTool())
	f.Fuzz(func(t *testing.T, args string) {
		got, _, err := set.Check(tools.Call{Name: "look", Args: json.RawMessage(args)})
		if err != nil {
			return
		}
		again, note, err := set.Check(tools.Call{Name: "look", Args: got})
		if err != nil || note != "" || string(again) != string(got) {
			t.Errorf("what was mended is not whole: %s, then %s, %q, %v", got, again, note, err)
		}
		if _, err := lookTool().Run(t.Context(), tools.Call{Args: got}); err != nil && !strings.Contains(err.Error(), "cannot be number") { // a number may be too big for an int
			t.Errorf("what was checked cannot be run: %s: %v", got, err)
		}
	})
}

// Each turn asks for the set without some tools: it must not get a set of its own.
func TestWithoutIsCached(t *testing.T) {
	named := func(name string) tools.Tool {
		return tools.New(tools.Spec{Name: name, Effect: tools.Pure}, func(context.Context, tools.Call, lookArgs) (any, error) { return name, nil })
	}
	set := tools.NewSet(named("one"), named("two"), named("three"))
	less := set.Without("one", "three")
	if specs := less.Specs(); len(specs) != 1 || specs[0].Name != "two" {
		t.Errorf("%+v", specs)
	}
	if less != set.Without("one", "three") {
		t.Error("the same names made another set")
	}
	if other := set.Without("two").Specs(); len(other) != 2 || len(set.Specs()) != 3 {
		t.Errorf("%+v, %d tools", other, len(set.Specs()))
	}
}
