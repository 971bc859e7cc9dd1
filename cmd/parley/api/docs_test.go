package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A description is the parsed docs/api.yaml.
type description struct {
	doc map[string]any

	mu       sync.Mutex
	compiler *jsonschema.Compiler
}

const docURL = "file:///api.json"

var described = sync.OnceValues(func() (*description, error) {
	text, err := os.ReadFile("../../../docs/api.yaml")
	if err != nil {
		return nil, err
	}
	doc, err := parseYAML(string(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource(docURL, doc); err != nil {
		return nil, err
	}
	return &description{doc: doc.(map[string]any), compiler: c}, nil
})

func docs(t testing.TB) *description {
	t.Helper()
	d, err := described()
	if err != nil {
		t.Fatal("docs/api.yaml: ", err)
	}
	return d
}

// at follows a pointer through the description and its references, and returns the value and its final pointer.
func (d *description) at(pointer ...string) (any, []string) {
	var v any = d.doc
	var place []string
	for _, p := range pointer {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, nil
		}
		v, place = m[p], append(place, p)
		if m, ok := v.(map[string]any); ok {
			if ref, ok := m["$ref"].(string); ok {
				v, place = d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
			}
		}
	}
	return v, place
}

// route returns the path template of the description that matches a request's path, or "".
func (d *description) route(p string) string {
	paths, _ := d.at("paths")
	best := ""
	for template := range paths.(map[string]any) {
		if fits(template, p) && (best == "" || !strings.Contains(template, "{")) {
			best = template
		}
	}
	return best
}

func fits(template, p string) bool {
	want, have := strings.Split(template, "/"), strings.Split(p, "/")
	return slices.EqualFunc(want, have, func(w, h string) bool { return w == h || strings.HasPrefix(w, "{") && h != "" })
}

// check fails the test unless the description allows the response.
func (d *description) check(t testing.TB, method, escapedPath string, resp *http.Response, body []byte) {
	t.Helper()
	route := d.route(escapedPath)
	if route == "" {
		if resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s %s: %d, and no path of the description fits", method, escapedPath, resp.StatusCode)
		}
		return
	}
	operation, _ := d.at("paths", route, strings.ToLower(method))
	if operation == nil {
		if resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s %s: %d, and the description has no such method", method, route, resp.StatusCode)
		}
		return
	}
	response, place := d.at("paths", route, strings.ToLower(method), "responses", fmt.Sprint(resp.StatusCode))
	if response == nil {
		t.Errorf("%s %s: the description has no %d", method, route, resp.StatusCode)
		return
	}
	for name := range keys(d, place, "headers") {
		if resp.Header.Get(name) == "" {
			t.Errorf("%s %s: %d without %s", method, route, resp.StatusCode, name)
		}
	}
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	content := keys(d, place, "content")
	if len(content) == 0 && len(body) > 0 {
		t.Errorf("%s %s: %d has a body that is not described", method, route, resp.StatusCode)
	}
	if len(content) == 0 {
		return
	}
	if _, ok := content[kind]; !ok {
		t.Errorf("%s %s: %d is %q, and not described as that", method, route, resp.StatusCode, kind)
		return
	}
	schema := append(slices.Clone(place), "content", kind, "schema")
	for _, v := range values(t, kind, body) {
		if err := d.validate(schema, v); err != nil {
			t.Errorf("%s %s: %d\n%s\n%v", method, route, resp.StatusCode, body, err)
		}
	}
}

func keys(d *description, place []string, name string) map[string]any {
	v, _ := d.at(append(slices.Clone(place), name)...)
	m, _ := v.(map[string]any)
	return m
}

// values returns the JSON values in a body of a content type.
func values(t testing.TB, kind string, body []byte) []any {
	t.Helper()
	var all []any
	switch kind {
	case "application/json", "application/x-ndjson":
		for line := range bytes.Lines(body) {
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
			all = append(all, v)
		}
	}
	return all
}

func (d *description) validate(place []string, v any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var pointer strings.Builder
	for _, p := range place {
		pointer.WriteString("/" + escape.Replace(p))
	}
	s, err := d.compiler.Compile(docURL + "#" + pathEscape(pointer.String()))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

func pathEscape(pointer string) string {
	return strings.NewReplacer("{", "%7B", "}", "%7D").Replace(pointer)
}

// validateAs fails the test unless a value is valid for the schema of that name.
func (d *description) validateAs(t testing.TB, name string, raw []byte) {
	t.Helper()
	for _, v := range values(t, "application/json", raw) {
		if err := d.validate([]string{"components", "schemas", name}, v); err != nil {
			t.Errorf("%s is no %s: %v", raw, name, err)
		}
	}
}

// The description declares the parameters of each path, and each of its references has a target.
func TestTheDescriptionIsWhole(t *testing.T) {
	d := docs(t)
	var follow func(v any)
	follow = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				follow(x)
			}
		case map[string]any:
			for k, x := range v {
				if ref, ok := x.(string); k == "$ref" && ok {
					if to, _ := d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...); to == nil {
						t.Errorf("%s leads nowhere", ref)
					}
				}
				follow(x)
			}
		}
	}
	follow(d.doc)
	paths, _ := d.at("paths")
	for p, item := range paths.(map[string]any) {
		declared := map[string]bool{}
		list, _ := item.(map[string]any)["parameters"].([]any)
		for _, param := range list {
			m := param.(map[string]any)
			name, _ := m["name"].(string)
			if ref, ok := m["$ref"].(string); ok {
				name = path.Base(ref)
			}
			declared["{"+name+"}"] = true
		}
		for part := range strings.SplitSeq(p, "/") {
			if strings.HasPrefix(part, "{") && !declared[part] {
				t.Errorf("%s: %s is not declared", p, part)
			}
		}
	}
	schemas, _ := d.at("components", "schemas")
	for name := range schemas.(map[string]any) {
		if err := d.validate([]string{"components", "schemas", name}, json.Number("-1")); err == nil {
			t.Errorf("schema %s takes anything", name)
		}
	}
}
