package worker_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"path/filepath"
	"testing"

	"parley/agent/agenttest"
	"parley/agent/openai"
	"parley/tools"
)

const (
	markup     = `<td class="a">1 & 2</td> \u003c`
	markupJSON = `"<td class=\"a\">1 & 2</td> \\u003c"`
)

// A model reads calls and results exactly as they were written, without JSON's escapes for HTML. That holds in the
// turn, after a restart, and for the log of a release that wrote these escapes. A message that was sent once is sent
// again byte for byte.
func TestTheModelReadsNoHTMLEscapes(t *testing.T) {
	args := `{"say":` + markupJSON + `}`
	for name, c := range map[string]struct {
		api         openai.API
		first, last agenttest.Response
	}{
		"chat completions": {"", agenttest.Calls(agenttest.ToolCall{Name: "echo", Args: args}), agenttest.Reply("done")},
		"Responses": {openai.APIResponses,
			responsesAnswer("completed", `{"id":"fc_1","type":"function_call","call_id":"call_9","name":"echo","arguments":`+quoted(args)+`}`),
			responsesAnswer("completed", `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}`)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			shareOneFile(t, dir)
			s := agenttest.New(agenttest.Sequence(c.first, c.last))
			b := newBenchIn(t, dir, nil, echo("echo", tools.Once, func(_ tools.Call, said string) error {
				if said != markup {
					t.Errorf("the tool was told %q, want %q", said, markup)
				}
				return nil
			}))
			m, err := openai.New(openai.Config{BaseURL: s.Start(t), Name: "m", API: c.api})
			if err != nil {
				t.Fatal(err)
			}
			b.agent.Model = m
			for i, said := range []string{"go", "after a restart", "from an old log"} {
				if i == 2 {
					escapeLog(t, dir)
				}
				stop := b.run()
				b.wantReply(b.say("1", "ann", said), "done")
				b.settled()
				stop()
			}
			requests := s.Requests()
			if len(requests) != 4 {
				t.Fatalf("asked %d times", len(requests))
			}
			var before []json.RawMessage
			for i, r := range requests {
				var sent struct{ Messages, Input []json.RawMessage }
				if err := r.Decode(&sent); err != nil {
					t.Fatal(err)
				}
				now := append(sent.Messages, sent.Input...)
				if i > 0 && (!bytes.Contains(r.Body, []byte(quoted(args))) || !bytes.Contains(r.Body, []byte(quoted(`{"said":`+markupJSON+`}`)))) {
					t.Errorf("request %d has not the arguments and the result as they are: %s", i+1, r.Body)
				}
				for j, m := range before {
					if j < len(now) && !bytes.Equal(m, now[j]) {
						t.Errorf("request %d says %s, and that before it said %s", i+1, now[j], m)
					}
				}
				before = now
			}
		})
	}
}

// quoted returns a text as a JSON string without escapes for HTML.
func quoted(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic(err)
	}
	return string(bytes.TrimSpace(b.Bytes()))
}

// escapeLog rewrites all entries of a home with the escapes that older releases wrote.
func escapeLog(t *testing.T, dir string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "sessions.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "SELECT session, n, data FROM entries WHERE data <> ''")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	changed := 0
	for rows.Next() {
		var session, n int64
		var data string
		if err := rows.Scan(&session, &n, &data); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if json.HTMLEscape(&b, []byte(data)); b.String() == data {
			continue
		}
		changed++
		if _, err := db.ExecContext(t.Context(), "UPDATE entries SET data = ? WHERE session = ? AND n = ?", b.String(), session, n); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil || changed == 0 {
		t.Errorf("%d entries were written without escapes: %v", changed, err)
	}
}

// An ask of a release that wrote JSON with escapes can be approved, and its call runs.
func TestAnAskOfAnOldHomeIsApproved(t *testing.T) {
	dir := t.TempDir()
	shareOneFile(t, dir)
	var ran string
	b := newBenchIn(t, dir, actModel(`act {"say":`+markupJSON+`}`), echo("act", tools.Once, func(_ tools.Call, said string) error {
		ran = said
		return nil
	}))
	b.agent.Guard = guardAct
	b.ask()
	stop := b.run()
	first := b.say("1", "ann", "go")
	id, _ := b.nextAskID()
	b.settled()
	stop()
	escapeLog(t, dir)
	b.run()
	b.command("1", owner, "approve "+id)
	b.wantEnd(id, "Approved by Olga")
	b.wantReply(first, `{"said":`+markupJSON+`}`)
	b.settled()
	if ran != markup {
		t.Errorf("it ran with %q, want %q", ran, markup)
	}
}
