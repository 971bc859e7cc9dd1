//go:build linux

package tools

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/sessions"
)

// theResult is the form in which programs read the result of a tool. It is about a file of 4821 bytes.
const theResult = `{"id": "call_…", "status": "ok", "content": "…", "metadata": {"bytes": 4821, "truncated": false, "mime": "text/typescript"}}`

// equalJSON reports whether two texts are the same JSON value.
func equalJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var one, other any
	parleytest.Must(t, json.Unmarshal([]byte(a), &one))
	parleytest.Must(t, json.Unmarshal([]byte(b), &other))
	return reflect.DeepEqual(one, other)
}

// quoted returns a text as a JSON string without its quotes.
func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return strings.Trim(string(raw), `"`)
}

// The log over HTTP and its export contain the results of all tools in one form: results of built-in tools, skills and
// MCP servers, whether they are whole, truncated, or errors.
func TestTheResultsOfAllToolsHaveOneForm(t *testing.T) {
	t.Parallel()
	source, long := strings.Repeat("export const answer = 42;\n", 200)[:4821], strings.Repeat("many words ", 10_000)
	calls := []agenttest.ToolCall{
		agenttest.Call("write_file", fmt.Sprintf(`{"path":"plan.ts","content":%q}`, source)), agenttest.Call("read_file", `{"path":"plan.ts"}`),
		agenttest.Call("write_file", fmt.Sprintf(`{"path":"long.md","content":%q}`, long)), agenttest.Call("read_file", `{"path":"long.md"}`),
		agenttest.Call("read_file", `{"path":"gone.ts"}`), agenttest.Call("sums__total", `{}`), agenttest.Call("notes__look", `{}`),
	}
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if n := r.Rounds(); n < len(calls) {
			return agenttest.Calls(calls[n])
		}
		return agenttest.Reply("done")
	}, strings.Replace(mcpSettings("Looks.", `"main"`), "${SERVER_KEY}", "the key", 1))
	w.NeedsSandbox()
	dir := filepath.Join(w.Home, "skills")
	putSkill(t, dir, "sums", "How sums are made.", "Call sums__total.")
	putProgram(t, dir, "sums", "total", "echo 42", "")
	o := parleytest.ListenHTTP(w)
	p := o.Up()
	awaitTools(t, w)
	w.Telegram.Say(2, 2, "go")
	w.WaitSaid(2, 1)

	page := o.Ask("GET", "/v1/sessions/main:telegram:2?limit=100", "", o.OwnerHeader()...)
	export := o.Ask("GET", "/v1/sessions/main:telegram:2/export", "", o.OwnerHeader()...)
	var log struct{ Entries []json.RawMessage }
	parleytest.Must(t, json.Unmarshal([]byte(page.Body), &log))
	lines := strings.Split(strings.TrimSpace(export.Body), "\n")
	var results []string
	var logged []sessions.ToolResult
	for i, raw := range log.Entries {
		if !equalJSON(t, string(raw), lines[i]) {
			t.Errorf("entry %d is %.300s, and exported as %.300s", i, raw, lines[i])
		}
		var e struct {
			Kind, Call string
			Data       json.RawMessage
			Result     json.RawMessage
		}
		parleytest.Must(t, json.Unmarshal(raw, &e))
		if e.Kind != "tool_result" {
			if e.Result != nil {
				t.Errorf("a %s has the result %s", e.Kind, e.Result)
			}
			continue
		}
		var data sessions.ToolResult
		parleytest.Must(t, json.Unmarshal(e.Data, &data))
		results, logged = append(results, strings.Replace(string(e.Result), e.Call, "call_…", 1)), append(logged, data)
	}
	if len(results) != len(calls) {
		t.Fatalf("the log has %d results: %s", len(results), page.Body)
	}
	asJSON := func(n int) string {
		text := string(logged[n].Content)
		return fmt.Sprintf(`{"id": "call_…", "status": "ok", "content": "%s", "metadata": {"bytes": %d, "truncated": false, "mime": "application/json"}}`, quoted(text), len(text))
	}
	var cut struct{ Content string }
	parleytest.Must(t, json.Unmarshal(logged[3].Content, &cut))
	for n, want := range []string{
		0: asJSON(0),
		1: strings.Replace(theResult, `"content": "…"`, `"content": "`+quoted(source)+`"`, 1),
		2: asJSON(2),
		3: fmt.Sprintf(`{"id": "call_…", "status": "ok", "content": "%s", "metadata": {"bytes": %d, "truncated": true, "mime": "text/markdown"}}`, quoted(cut.Content), len(long)),
		4: `{"id": "call_…", "status": "error", "content": "\"gone.ts\" does not exist: list_directory and glob show what's there", "metadata": {"bytes": 67, "truncated": false, "mime": "text/plain"}, "reason": "file_not_found"}`,
		5: asJSON(5),
		6: `{"id": "call_…", "status": "ok", "content": "found  the key", "metadata": {"bytes": 14, "truncated": false, "mime": "text/plain"}}`,
	} {
		if !equalJSON(t, results[n], want) {
			t.Errorf("result %d is %.400s, want %.400s", n, results[n], want)
		}
	}
	if !strings.Contains(string(logged[5].Content), `"stdout":"42\n"`) || !strings.Contains(cut.Content, "[cut: ") {
		t.Errorf("the skill has printed %s, and the long file is %.100s", logged[5].Content, cut.Content)
	}
	p.Stop()
}
