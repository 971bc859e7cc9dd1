package operation

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/cmd/parley/api"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

// busyModel plays a model that does what a person says, with a word that the status must not show.
func busyModel(r agenttest.Request) agenttest.Response {
	if r.Rounds() > 0 {
		return agenttest.Reply("done: " + strings.Join(r.Results(), " "))
	}
	switch said := r.Said(); {
	case strings.Contains(said, "hang"):
		return agenttest.Calls(agenttest.Call("exec_shell", `{"command":"until [ -e xyzzyplugh ]; do sleep 0.05; done"}`))
	case strings.Contains(said, "write"):
		return agenttest.Calls(agenttest.Call("write_file", `{"path":"xyzzyplugh","content":"xyzzyplugh"}`))
	case strings.Contains(said, "background"):
		return agenttest.Calls(agenttest.Call("exec_shell", `{"command":"sleep 300; echo xyzzyplugh","background":true}`))
	case strings.Contains(said, "plan"):
		return agenttest.Calls(agenttest.Call("schedule", `{"action":"add","when":"0 9 * * *","text":"xyzzyplugh"}`))
	}
	return agenttest.Reply("xyzzyplugh")
}

// readStatus returns what parley status says, as JSON and as text. It fails the test if the status contains any words
// that were said.
func readStatus(t *testing.T, w *parleytest.World) (now api.CurrentWork, text string) {
	t.Helper()
	raw, errs, code := w.Run("--json", "status")
	text, errs2, code2 := w.Run("status")
	if code != 0 || code2 != 0 {
		t.Fatalf("status: %d %q, %d %q", code, errs, code2, errs2)
	}
	parleytest.Must(t, json.Unmarshal([]byte(raw), &now))
	if strings.Contains(raw+text, "xyzzyplugh") {
		t.Errorf("it says what was said: %s %s", raw, text)
	}
	return now, text
}

// parley status shows which turns run and in which tool, which requests wait for whom, which jobs run, and what is due
// next. After the process was killed, it shows what waits.
func TestStatusSaysWhatTheBotIsAt(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, busyModel, parleytest.WithShell+"[tools]\nask = [\"write_file\"]\n")
	w.NeedsSandbox()
	p := w.Serve()
	for chat, text := range map[int64]string{2: "hang xyzzyplugh", 3: "write it", 4: "go on in the background", 5: "plan it"} {
		w.Telegram.Say(chat, chat, text)
	}
	for chat := range int64(3) {
		w.WaitSaid(3+chat, 1)
	}
	var now api.CurrentWork
	var text string
	parleytest.WaitFor(t, "the only turn that runs to be in its tool", func() bool {
		now, text = readStatus(t, w)
		return now.Turns.Count == 1 && len(now.Turns.List[0].Calls) == 1
	})
	if r := now.Turns.List[0]; r.Session != "main:telegram:2" || r.Person != "telegram:2" || r.Agent != "main" || r.Turn == "" || r.Calls[0].Tool != "exec_shell" ||
		time.Since(r.Since) > time.Minute || r.Calls[0].Since.Before(r.Since) {
		t.Errorf("the turn that runs is %+v", r)
	}
	if a := now.Asks; a.Count != 1 || a.List[0].Session != "main:telegram:3" || a.List[0].Tool != "write_file" || strings.Join(a.List[0].Decides, "+") != "owners+approvers of telegram" {
		t.Errorf("open are %+v", a)
	}
	if j := now.Jobs; j.Count != 1 || j.List[0].Session != "main:telegram:4" || j.List[0].Tool != "exec_shell" || j.List[0].Person != "telegram:4" {
		t.Errorf("in the background there run %+v", j)
	}
	if s := now.Schedules; s.Count != 1 || s.List[0].Session != "main:telegram:5" || s.List[0].Next.Before(time.Now()) {
		t.Errorf("due next are %+v", s)
	}
	parleytest.Wants(t, text, "1 turn running:", "exec_shell for ", "1 request waiting for people:", "owners, approvers of telegram", "1 job running:", "1 schedule due:")
	if now.Waiting.Count != 0 || strings.Contains(text, "waiting for a worker") {
		t.Errorf("there waits %+v:\n%s", now.Waiting, text)
	}
	p.Kill()
	now, text = readStatus(t, w)
	if now.Turns.Count != 0 || now.Waiting.Count != 1 || now.Waiting.List[0].Session != "main:telegram:2" || now.Waiting.List[0].Messages != 1 || now.Asks.Count != 1 {
		t.Errorf("after the process was killed it is at %+v", now)
	}
	parleytest.Wants(t, text, "no server is running", "1 conversation waiting for a worker:", "main:telegram:2")
}

// In a fleet, parley status shows what all processes work on.
func TestStatusOfAFleet(t *testing.T) {
	t.Parallel()
	redis := os.Getenv("PARLEY_TEST_REDIS_URL")
	if redis == "" {
		t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
	}
	w := parleytest.New(t, busyModel, fmt.Sprintf("[bus]\nurl = %q\nprefix = %q\n[store]\nurl = %q\n[workspace]\nroot = %q\n", redis, "test-"+rand.Text(), sqldbtest.New(t), t.TempDir())+
		parleytest.WithShell+"[tools]\nask = [\"write_file\"]\n")
	w.NeedsSandbox()
	w.ServeAs("gateway")
	worker := w.ServeAs("worker")
	w.Telegram.Say(3, 3, "write it")
	w.WaitSaid(3, 1)
	w.Telegram.Say(2, 2, "hang")
	var now api.CurrentWork
	parleytest.WaitFor(t, "the turn to be in its tool", func() bool {
		now, _ = readStatus(t, w) // run in a home of its own, in which no server runs
		return now.Turns.Count == 1 && len(now.Turns.List[0].Calls) == 1
	})
	if r := now.Turns.List[0]; r.Session != "main:telegram:2" || r.Person != "telegram:2" || r.Calls[0].Tool != "exec_shell" || now.Asks.Count != 1 {
		t.Errorf("it is at %+v", now)
	}
	w.Telegram.Say(2, 2, "and then")
	parleytest.WaitFor(t, "the next message of that conversation", func() bool { now, _ = readStatus(t, w); return now.Turns.Count == 1 && now.Turns.List[0].Messages == 2 })
	worker.Kill()
	parleytest.WaitFor(t, "the mail to wait", func() bool { now, _ = readStatus(t, w); return now.Turns.Count == 0 && now.Waiting.Count == 1 })
}
