// Package toolstest calls tools in tests the way that the agent does: it checks a call and then
// runs it.
package toolstest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/tools"
)

// A Caller calls the tools of a set on behalf of one session.
type Caller struct {
	Set *tools.Set
	// Call is the template for each call; only its name and arguments are filled in.
	Call tools.Call
}

// New makes a Caller of these tools, with a template for calls that an ordinary session makes.
func New(ts ...tools.Tool) *Caller {
	return &Caller{Set: tools.NewSet(ts...), Call: tools.Call{
		ID: "call-1", Key: "turn-1/call-1", Attempt: 1, Turn: "turn-1",
		Session: "main:telegram:42", Agent: "main", Person: "telegram:42", Address: "telegram:42",
	}}
}

// Args writes a JSON object of arguments; pairs contains names and values in turn; a last name without a value is left out.
func Args(pairs ...any) string {
	args := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		args[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// Try makes a call and returns the content of its result, or its error.
func (c *Caller) Try(ctx context.Context, name, args string) (string, error) {
	tool, call, err := c.prepare(name, args)
	if err != nil {
		return "", err
	}
	result, err := tool.Run(ctx, call)
	return string(result.Content), err
}

// prepare finds the tool and checks the arguments, and returns the call to run.
func (c *Caller) prepare(name, args string) (tools.Tool, tools.Call, error) {
	call := c.Call
	call.Name, call.Args = name, json.RawMessage(args)
	checked, _, wrong := c.Set.Check(call)
	if wrong != nil {
		return nil, call, wrong
	}
	call.Args = checked
	tool, ok := c.Set.Lookup(name)
	if !ok {
		return nil, call, fmt.Errorf("%s was checked and is not there", name)
	}
	return tool, call, nil
}

// Want makes a call that must succeed and return the JSON want; "" accepts any result. It returns
// the content.
func (c *Caller) Want(t testing.TB, name, args, want string) string {
	t.Helper()
	got, err := c.Try(t.Context(), name, args)
	if err != nil {
		t.Errorf("%s %.200s: %v", name, args, err)
		return ""
	}
	if !json.Valid([]byte(got)) || want != "" && got != want {
		t.Errorf("%s %.200s gave\n%.2000s\nwant\n%.2000s", name, args, got, want)
	}
	return got
}

// WantError makes a call that must fail with that code and with a message that contains all those
// words.
func (c *Caller) WantError(t testing.TB, name, args string, code tools.Code, words ...string) {
	t.Helper()
	got, err := c.Try(t.Context(), name, args)
	wrong, ok := errors.AsType[*tools.Error](err)
	if !ok {
		t.Errorf("%s %.200s gave %.200s, %v; want %s", name, args, got, err, code)
		return
	}
	if wrong.Code != code {
		t.Errorf("%s %.200s failed with %v, want %s", name, args, wrong, code)
	}
	if len(wrong.Message) > 1024 {
		t.Errorf("%s %.200s fails with a message of %d bytes", name, args, len(wrong.Message))
	}
	for _, word := range words {
		if !strings.Contains(wrong.Message, word) {
			t.Errorf("%s %.200s says %q, which lacks %q", name, args, wrong.Message, word)
		}
	}
}

// Effect returns what repeating a call with these arguments would do.
func (c *Caller) Effect(t testing.TB, name, args string) tools.Effect {
	t.Helper()
	tool, call, err := c.prepare(name, args)
	if err != nil {
		t.Fatal(err)
	}
	return tools.EffectOf(tool, call)
}

// Reconcile asks the tool whether a call that was cut off took effect; false if not. It returns the
// call's result.
func (c *Caller) Reconcile(t testing.TB, name, args string) (string, bool, error) {
	t.Helper()
	tool, call, err := c.prepare(name, args)
	if err != nil {
		t.Fatal(err)
	}
	looker, ok := tool.(tools.Reconciler)
	if !ok {
		t.Fatalf("%s cannot be reconciled", name)
	}
	result, done, err := looker.Reconcile(t.Context(), call)
	return string(result.Content), done, err
}

// Golden compares what models are shown of the tools with a file, so that a change is noticed:
// models are sensitive to wording. The test's flag -update writes the file.
func (c *Caller) Golden(t *testing.T, file string) {
	t.Helper()
	type shown struct {
		Name        string           `json:"name"`
		Description string           `json:"description"`
		Effect      tools.Effect     `json:"effect"`
		Permission  tools.Permission `json:"permission,omitempty"`
		Timeout     string           `json:"timeout"`
		Schema      json.RawMessage  `json:"schema"`
	}
	var list []shown
	for _, s := range c.Set.Specs() {
		list = append(list, shown{s.Name, s.Description, s.Effect, s.Permission, fmt.Sprintf("%v, at most %v", s.Timeout, s.MaxTimeout), s.Schema})
	}
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(list); err != nil {
		t.Fatal(err)
	}
	if flag.Lookup("update") == nil {
		t.Fatal("the test has no flag -update")
	}
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("what models are shown has changed; see the difference and run the test with -update:\n%s", got.Bytes())
	}
}
