package approvals

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// isJudge reports whether a request is for the model that judges calls.
func isJudge(r agenttest.Request) bool { return strings.Contains(string(r.Body), `"model":"judge"`) }

// judgedFor returns a model that makes calls, and that judges each call by the name of its file. asked counts the
// judgments.
func judgedFor(asked *atomic.Int64, uses ...agenttest.ToolCall) agenttest.Script {
	agent := asksFor(uses...)
	return func(r agenttest.Request) agenttest.Response {
		if !isJudge(r) {
			return agent(r)
		}
		asked.Add(1)
		call, _, _ := strings.Cut(r.Messages()[1].Content, "</judged>")
		for _, verdict := range []string{"deny", "ask"} {
			if strings.Contains(call, verdict+".txt") {
				return agenttest.Reply(`{"verdict":"` + verdict + `","reason":"the name says ` + verdict + `"}`)
			}
		}
		return agenttest.Reply(`{"verdict":"allow","reason":"it is wanted"}`)
	}
}

const guarded = "\n[guard]\nmodel = \"judge\"\njudge = [\"write_file(*)\", \"message\"]\ntimeout = \"60s\"\n"

// A model judges the calls that the operator names. A call that it denies does not run, people decide about a call if
// it wants them to, and the metrics count each judgment.
func TestAModelJudgesInAServer(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	w := parleytest.New(t, judgedFor(&asked,
		agenttest.Call("write_file", `{"path":"a.txt","content":"a"}`), agenttest.Call("write_file", `{"path":"deny.txt","content":"a"}`),
		agenttest.Call("write_file", `{"path":"ask.txt","content":"a"}`), agenttest.Call("read_file", `{"path":"a.txt"}`),
	), guarded)
	p := w.Serve()
	w.Telegram.Say(2, 2, "go")
	request := w.WaitSaid(2, 1)[0]
	parleytest.Wants(t, request, "the model that judges calls wants a person to decide", "the name says ask")
	id := parleytest.Requested(t, request)
	p.Kill()
	p = w.Serve()
	w.Telegram.Say(1, 1, "/approve "+id)
	parleytest.WaitFor(t, "the reply", func() bool {
		return strings.Contains(strings.Join(parleytest.Texts(w.Telegram.Sent(2)), "\n"), "Successfully wrote")
	})
	said := strings.Join(parleytest.Texts(w.Telegram.Sent(2)), "\n")
	parleytest.Wants(t, said, "Successfully wrote 1 bytes to a.txt", "write_file was refused by the model that judges calls", "the name says deny", "Successfully wrote 1 bytes to ask.txt")
	out, errs, _ := w.Run("metrics", "--tools")
	if parleytest.Wants(t, out, `parley_guard_judgements_total{verdict="allow"} 0`); asked.Load() != 3 { // the metrics of the killed process are gone
		t.Errorf("the judge was asked %d times: %s", asked.Load(), errs)
	}
	p.Kill() // the timer of the request still waits on the bus
	if out, errs, code := w.Run("usage", "--by", "model"); code != 0 || !strings.Contains(out, "judge") {
		t.Errorf("usage: %d %s%s", code, out, errs)
	}
	out, _, _ = w.Run("--json", "logs", "--filter", "judgement")
	parleytest.Wants(t, out, `"verdict":"allow"`, `"verdict":"deny"`, `"verdict":"ask"`)
	if strings.Count(out, "\n") != 3 || strings.Contains(out, ".txt") || strings.Contains(out, "the name says") {
		t.Errorf("the audit has the judgements %s", out)
	}
	out, _, _ = w.Run("--json", "logs", "--filter", "tool")
	parleytest.Wants(t, out, `"verdict":"deny","result":"permission_denied","elapsed_ms"`, `"detail":"judge"`, `"detail":"telegram:1"`)
}

// A call runs once if the process is killed while the call is judged. The model may judge the call again, but not after
// the call has begun.
func TestKilledAroundAJudgement(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]int64{"judge:ask": 1, "judged": 2, "c4:before": 2, "c4": 1, "c4:held": 1, "c5:before": 1, "c5": 1} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			w := parleytest.New(t, judgedFor(&asked, agenttest.Call("apply_patch", `{"patch":"--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+once\n"}`)), strings.Replace(guarded, "write_file(*)", "apply_patch(*)", 1))
			w.Telegram.Say(2, 2, "go")
			w.Serve("PARLEY_KILL_AT=" + at).WaitKilled()
			p := w.Serve()
			parleytest.Wants(t, w.WaitSaid(2, 1)[0], `"added":1`)
			p.Stop()
			files, err := filepath.Glob(filepath.Join(w.Home, "workspaces", "main", "*", "a.txt"))
			parleytest.Must(t, err)
			if len(files) != 1 || asked.Load() != want {
				t.Fatalf("there are %q, and the judge was asked %d times, want %d", files, asked.Load(), want)
			}
			if raw, err := os.ReadFile(files[0]); err != nil || string(raw) != "once\n" {
				t.Errorf("the file has %q, %v", raw, err)
			}
		})
	}
}

// The judge also judges the calls of a sub-agent, and it knows that no person wrote the sub-agent's task.
func TestACallOfASubAgentIsJudged(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	judging := judgedFor(&asked)
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		child := false
		for _, m := range r.Messages() {
			child = child || strings.Contains(m.Content, "<notice>You are a sub-agent of")
		}
		switch {
		case isJudge(r):
			text := r.Messages()[1].Content
			parleytest.Wants(t, text, `sub-agent="yes"`, "<past kind=\"task\" by=\"the agent main\">\nwrite the file\n</past>")
			if strings.Contains(text, "<message") {
				t.Errorf("the judge reads %s", text)
			}
			return judging(r)
		case child && r.Rounds() == 0:
			return agenttest.Calls(agenttest.Call("write_file", `{"path":"deny.txt","content":"x"}`))
		case child:
			return agenttest.Reply("it gave " + r.Results()[0])
		case r.Rounds() == 0:
			return agenttest.Calls(agenttest.Call("task", `{"prompt":"write the file"}`))
		}
		return agenttest.Reply(strings.Join(r.Results(), " "))
	}, "\n[agents.defaults]\ncapabilities = [\"file_read\", \"file_write\", \"session\"]\n"+guarded)
	p := w.Serve()
	w.Telegram.Say(2, 2, "go")
	parleytest.Wants(t, w.WaitSaid(2, 1)[0], "refused by the model that judges calls", "the name says deny")
	p.Stop()
	if asked.Load() != 1 {
		t.Errorf("the judge was asked %d times", asked.Load())
	}
}

// The server does not start with only half of the judge's settings, and doctor tries the judge.
func TestTheSettingsOfTheJudge(t *testing.T) {
	t.Parallel()
	var answer atomic.Value
	answer.Store(`{"verdict":"allow","reason":"it only looks"}`)
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if isJudge(r) {
			return agenttest.Reply(answer.Load().(string))
		}
		return agenttest.Reply("ok")
	}, guarded)
	out, _, code := w.Run("doctor")
	parleytest.Wants(t, out, "ok     guard: judge at ", "answered a harmless test call with \"allow\" in", "it judges write_file(*), message")
	if code != parleytest.ExitDone {
		t.Errorf("doctor ended with %d: %s", code, out)
	}
	answer.Store(`{"verdict":"deny"}`)
	out, _, _ = w.Run("doctor")
	parleytest.Wants(t, out, "note   guard: ", "answered a harmless test call with \"deny\" in", "follows instructions better: guard.model")
	answer.Store("I would allow it.")
	out, _, code = w.Run("doctor")
	parleytest.Wants(t, out, "wrong  guard: ", "isn't a verdict", "people are asked", "guard.model")
	if code != parleytest.ExitFailed {
		t.Errorf("doctor ended with %d: %s", code, out)
	}
	raw, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	for wrong, want := range map[string]string{
		"model = \"demo\"\n": "guard.model: the built-in demo can't judge calls",
		"":                   "guard.judge: no model is named to judge these calls",
	} {
		parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(string(raw), "model = \"judge\"\n", wrong, 1)), 0o600))
		for _, command := range [][]string{{"config", "check"}, {"serve"}} {
			_, errs, code := w.Run(command...)
			if parleytest.Wants(t, errs, want, "parley.toml:"); code != parleytest.ExitConfig {
				t.Errorf("%v ended with %d: %s", command, code, errs)
			}
		}
	}
}

// SIGHUP reloads the rules for which calls are judged. A judge that is added by a reload is not used until the next
// start; until then, people are asked.
func TestTheRulesOfTheJudgeAreReadAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	w := parleytest.New(t, judgedFor(&asked, agenttest.Call("write_file", `{"path":"a.txt","content":"a"}`)), "")
	p := w.Serve()
	w.Telegram.Say(2, 2, "go")
	parleytest.Wants(t, w.WaitSaid(2, 1)[0], "Successfully wrote")
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	reload := func(text string) {
		t.Helper()
		before := strings.Count(p.Stderr.String(), "configuration read again")
		parleytest.Must(t, os.WriteFile(w.File, []byte(text), 0o600))
		parleytest.Must(t, p.Cmd.Process.Signal(syscall.SIGHUP))
		parleytest.WaitFor(t, "the configuration to be read again", func() bool { return strings.Count(p.Stderr.String(), "configuration read again") > before })
	}
	reload(string(text) + guarded)
	w.Telegram.Say(3, 3, "go")
	request := w.WaitSaid(3, 1)[0]
	parleytest.Wants(t, request, "no model is set up that could judge it")
	w.Telegram.Say(1, 1, "/deny "+parleytest.Requested(t, request))
	parleytest.WaitFor(t, "the denial", func() bool {
		return strings.Contains(strings.Join(parleytest.Texts(w.Telegram.Sent(3)), "\n"), "permission_denied")
	})
	reload(string(text))
	w.Telegram.Say(4, 4, "go")
	parleytest.Wants(t, w.WaitSaid(4, 1)[0], "Successfully wrote")
	if asked.Load() != 0 {
		t.Errorf("a model was asked %d times", asked.Load())
	}
	p.Kill()
}
