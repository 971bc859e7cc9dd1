package sessions_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"parley/sessions"
)

// wantJSON checks that a value is equal to a text as JSON values.
func wantJSON(t *testing.T, what string, value any, want string) {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var got, wanted any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("%s: %s, want %s", what, raw, want)
	}
}

// All results have the same form, whatever the tool has returned, including those that earlier releases have
// logged.
func TestAllResultsHaveTheSameForm(t *testing.T) {
	const whole = `"truncated": false, "mime": `
	for what, tc := range map[string]struct{ logged, want string }{
		"a file": {
			`{"content": {"content": "let a = 1\n"}, "field": "content", "mime": "text/typescript"}`,
			`{"id": "call_1", "status": "ok", "content": "let a = 1\n", "metadata": {"bytes": 10, ` + whole + `"text/typescript"}}`,
		},
		"a file with a note": {
			`{"content": {"content": "a", "_repaired_args": "path"}, "field": "content", "mime": "text/x-go"}`,
			`{"id": "call_1", "status": "ok", "content": "a", "metadata": {"bytes": 1, ` + whole + `"text/x-go"}}`,
		},
		"a file that was cut": {
			`{"content": {"content": "le\n[cut: 2 of 4821 bytes shown]"}, "field": "content", "mime": "text/typescript", "bytes": 4821}`,
			`{"id": "call_1", "status": "ok", "content": "le\n[cut: 2 of 4821 bytes shown]", "metadata": {"bytes": 4821, "truncated": true, "mime": "text/typescript"}}`,
		},
		"a file of which the text was cut away": {
			`{"content": {"_truncated_json": "{\"a"}, "field": "content", "mime": "text/typescript", "bytes": 9}`,
			`{"id": "call_1", "status": "ok", "content": "{\"_truncated_json\": \"{\\\"a\"}", "metadata": {"bytes": 9, "truncated": true, "mime": "application/json"}}`,
		},
		"a text": {`{"content": "é"}`, `{"id": "call_1", "status": "ok", "content": "é", "metadata": {"bytes": 2, ` + whole + `"text/plain"}}`},
		"JSON":   {`{"content": {"exit_code": 0}}`, `{"id": "call_1", "status": "ok", "content": "{\"exit_code\": 0}", "metadata": {"bytes": 16, ` + whole + `"application/json"}}`},
		"null":   {`{"content": null}`, `{"id": "call_1", "status": "ok", "content": "null", "metadata": {"bytes": 4, ` + whole + `"application/json"}}`},
		"a failure": {
			`{"content": {"error": {"code": "timeout", "message": "Too slow."}}, "code": "timeout", "untrusted": true}`,
			`{"id": "call_1", "status": "error", "content": "Too slow.", "metadata": {"bytes": 9, ` + whole + `"text/plain"}, "reason": "timeout"}`,
		},
		"a failure that a hook has changed": {
			`{"content": {"hidden": true}, "code": "execution_failed"}`,
			`{"id": "call_1", "status": "error", "content": "{\"hidden\": true}", "metadata": {"bytes": 16, ` + whole + `"application/json"}, "reason": "execution_failed"}`,
		},
	} {
		r, err := sessions.Decode[sessions.ToolResult](sessions.Entry{Kind: sessions.KindToolResult, Data: json.RawMessage(tc.logged)})
		if err != nil {
			t.Fatal(err)
		}
		wantJSON(t, what, r.Result("call_1"), tc.want)
	}
	if r := (sessions.ToolResult{}).Result("c"); r.Content != "" || r.Status != sessions.ResultOK {
		t.Errorf("of nothing comes %+v", r)
	}
	if raw, err := json.Marshal(sessions.ToolResult{Content: json.RawMessage(`"x"`)}); err != nil || strings.Contains(string(raw), "bytes") {
		t.Errorf("the log has %s, %v", raw, err)
	}
}
