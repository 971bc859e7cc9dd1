package operation

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"parley/agent/agenttest"
	"parley/bus/trace/otlp/otlptest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

// traced returns the settings of a fleet that sends its traces to a collector.
func traced(t *testing.T, c *otlptest.Collector, more string) string {
	redis := os.Getenv("PARLEY_TEST_REDIS_URL")
	if redis == "" {
		t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
	}
	return fmt.Sprintf("[bus]\nurl = %q\nprefix = %q\n[store]\nurl = %q\n[workspace]\nroot = %q\n[trace]\nendpoint = %q\n%s",
		redis, "test-"+rand.Text(), sqldbtest.New(t), t.TempDir(), c.Endpoint(), more)
}

// namedIn returns the names of the spans in a trace, sorted.
func namedIn(spans []otlptest.Span, trace string) (names []string) {
	for _, s := range spans {
		if s.Trace == trace {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// turnOf returns the only turn among the spans, and false if there is none yet.
func turnOf(t *testing.T, spans []otlptest.Span) (turn otlptest.Span, ok bool) {
	t.Helper()
	for _, s := range spans {
		if s.Name != "turn" {
			continue
		}
		if ok {
			t.Fatalf("there are two turns, %v and %v", turn, s)
		}
		turn, ok = s, true
	}
	return turn, ok
}

// writing plays a model that writes a file, and then answers.
func writing(r agenttest.Request) agenttest.Response {
	if r.Rounds() == 0 {
		return agenttest.Calls(agenttest.Call("write_file", `{"path":"a.txt","content":"rhubarb"}`))
	}
	return agenttest.Reply("marzipan for " + r.Said())
}

// What a gateway, two workers and an approval do for one message is one trace, which contains nothing of what was said.
func TestTheProcessesOfAFleetMakeOneTrace(t *testing.T) {
	t.Parallel()
	c := otlptest.New(t)
	w := parleytest.New(t, writing, traced(t, c, "[tools]\nask = [\"write_file\"]\n"))
	gateway := w.ServeAs("gateway")
	first := w.ServeAs("worker")
	w.Telegram.Say(2, 2, "quince")
	id := parleytest.Requested(t, w.WaitSaid(2, 1)[0])
	parleytest.WaitFor(t, "the first worker to have sent what it did", func() bool { return slices.ContainsFunc(c.Newest(), isNamed("chat scripted")) })
	first.Kill()
	second := w.ServeAs("worker")
	w.Telegram.Say(1, 1, "/approve "+id)
	parleytest.WaitFor(t, "the answer", func() bool {
		return slices.Contains(parleytest.Texts(w.Telegram.Sent(2)), "marzipan for quince")
	})
	parleytest.WaitFor(t, "the turn", func() bool { _, ok := turnOf(t, c.Newest()); return ok })
	endAll(t, second, gateway)
	c.CheckWhole()
	turn, _ := turnOf(t, c.Newest())
	want := []string{
		"chat scripted", "chat scripted", "deliver telegram", "deliver telegram", "deliver telegram", "receive telegram", "send telegram", "send telegram", "send telegram",
		"step", "step", "tool write_file", "turn", "wait for a person", "wait in the mailbox", "wait in the outbox", "wait in the outbox", "wait in the outbox",
	}
	if got := namedIn(c.Newest(), turn.Trace); !slices.Equal(got, want) {
		t.Errorf("the trace has %q, want %q", got, want)
	}
	if !slices.Equal(turn.Events, []string{"turn_parked", "turn_unparked"}) || turn.Attributes["gen_ai.conversation.id"] != "main:telegram:2" || turn.Attributes["parley.state"] != "done" {
		t.Errorf("the turn is %+v", turn)
	}
	processes := map[string]bool{}
	for _, s := range c.Newest() {
		if processes[s.Process["parley.role"]+" "+s.Process["service.instance.id"]] = true; s.Failed != "" {
			t.Errorf("%q failed: %s", s.Name, s.Failed)
		}
		switch {
		case s.Name == "tool write_file" && (s.Attributes["parley.effect"] != "idempotent" && s.Attributes["parley.effect"] != "reconcilable" || s.Attributes["parley.attempts"] != "1"):
			t.Errorf("the call is %v", s.Attributes)
		case s.Name == "chat scripted" && (s.Attributes["gen_ai.usage.output_tokens"] == "" || s.Kind != 3):
			t.Errorf("the model's answer is %v", s.Attributes)
		}
	}
	if len(processes) != 3 {
		t.Errorf("the spans are from %v, want a gateway and two workers", processes)
	}
	for _, word := range []string{"quince", "rhubarb", "marzipan", "a.txt", "First", parleytest.Token} {
		if strings.Contains(c.Raw(), word) {
			t.Errorf("the traces have %q", word)
		}
	}
}

// endAll ends processes of a fleet in good order.
func endAll(t *testing.T, all ...*parleytest.Process) {
	t.Helper()
	for _, p := range all {
		parleytest.Must(t, p.Cmd.Process.Signal(syscall.SIGTERM))
		parleytest.Must(t, <-p.Ended)
	}
}

func isNamed(name string) func(otlptest.Span) bool {
	return func(s otlptest.Span) bool { return s.Name == name }
}

// If a worker is killed at any step of a turn, the trace is complete in the end.
func TestATurnThatIsResumedIsOneTrace(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"c3", "c4:held", "c5", "c6", "c7:published"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			c := otlptest.New(t)
			w := parleytest.New(t, writing, traced(t, c, ""))
			gateway := w.ServeAs("gateway")
			first := w.ServeAs("worker", "PARLEY_KILL_AT="+at)
			w.Telegram.Say(2, 2, "quince")
			first.WaitKilled()
			second := w.ServeAs("worker")
			w.WaitSaid(2, 1)
			parleytest.WaitFor(t, "the turn and its delivery", func() bool {
				_, ok := turnOf(t, c.Newest())
				return ok && slices.ContainsFunc(c.Newest(), isNamed("deliver telegram"))
			})
			endAll(t, second, gateway)
			c.CheckWhole()
			turn, _ := turnOf(t, c.Newest())
			want := []string{
				"chat scripted", "chat scripted", "deliver telegram", "receive telegram", "send telegram", "step", "step", "tool write_file", "turn", "wait in the mailbox", "wait in the outbox",
			}
			if got := namedIn(c.Newest(), turn.Trace); !slices.Equal(got, want) {
				t.Errorf("the trace has %q, want %q", got, want)
			}
			if resumed := slices.Contains(turn.Events, "resumed"); resumed != (at != "c6" && at != "c7:published") {
				t.Errorf("what happened to the turn is %v", turn.Events)
			}
		})
	}
}

// With texts enabled, a trace contains what was said and done, but no secrets. A reload turns the texts on, and turns
// all traces off.
func TestTracesHaveTextsIfTheOperatorWantsThem(t *testing.T) {
	t.Parallel()
	c := otlptest.New(t)
	settings := fmt.Sprintf("[trace]\nendpoint = %q\ntext = true\nheaders = [\"Authorization: Bearer hidden-token-of-the-collector\"]\n", c.Endpoint())
	w := parleytest.New(t, writing, "")
	given, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	p := w.Serve()
	w.Telegram.Say(2, 2, "before")
	w.WaitSaid(2, 1)
	parleytest.WaitFor(t, "the bus to be empty", func() bool { return w.Count("sessions.db", "SELECT count(*) FROM message") == 0 })
	reload := func(text string, times int) {
		t.Helper()
		parleytest.Must(t, os.WriteFile(w.File, []byte(string(given)+text), 0o600))
		parleytest.Must(t, p.Cmd.Process.Signal(syscall.SIGHUP))
		parleytest.WaitFor(t, "the settings", func() bool { return strings.Count(p.Stderr.String(), "configuration read again") == times })
	}
	reload(settings, 1)
	w.Telegram.Say(2, 2, "quince "+parleytest.Token)
	w.WaitSaid(2, 2)
	parleytest.WaitFor(t, "the turn", func() bool { _, ok := turnOf(t, c.Newest()); return ok })
	parleytest.WaitFor(t, "the delivery", func() bool { return slices.ContainsFunc(c.Newest(), isNamed("deliver telegram")) })
	sent := len(c.Spans())
	reload("", 2)
	w.Telegram.Say(2, 2, "after")
	w.WaitSaid(2, 3)
	p.Stop()
	if now := len(c.Spans()); now != sent {
		t.Errorf("%d spans came after traces were turned off", now-sent)
	}
	c.CheckWhole()
	turn, _ := turnOf(t, c.Newest())
	if said := turn.Attributes["parley.said"]; !strings.HasPrefix(said, "quince ") || !strings.HasPrefix(turn.Attributes["parley.replied"], "marzipan for quince ") {
		t.Errorf("the turn has %v", turn.Attributes)
	}
	call := c.Newest()[slices.IndexFunc(c.Newest(), isNamed("tool write_file"))]
	if args := call.Attributes["gen_ai.tool.call.arguments"]; args != `{"path":"a.txt","content":"rhubarb"}` || call.Attributes["gen_ai.tool.call.result"] == "" {
		t.Errorf("the call has %v", call.Attributes)
	}
	if strings.Contains(c.Raw(), parleytest.Token) || strings.Contains(p.Stderr.String(), "hidden-token") {
		t.Error("a secret is in the traces or in the log")
	}
	if got := c.Requests()[0].Get("Authorization"); got != "Bearer hidden-token-of-the-collector" {
		t.Errorf("the collector was shown %q", got)
	}
	if home := parleytest.FilesWith(t, filepath.Join(w.Home), "hidden-token"); len(home) > 0 {
		t.Errorf("the header is in %v", home)
	}
}

// delegating returns a model that gives what it is told to a sub-agent, and that fails once if it is told to.
func delegating() agenttest.Script {
	var failed atomic.Bool
	return func(r agenttest.Request) agenttest.Response {
		if r.Said() == "fail" && !failed.Swap(true) {
			return agenttest.Fail(http.StatusBadGateway, "{}")
		}
		return delegate(r)
	}
}

func delegate(r agenttest.Request) agenttest.Response {
	switch {
	case strings.Contains(string(r.Body), "You are a sub-agent of") || !strings.HasPrefix(r.Said(), "task"):
		return agenttest.Reply("you said " + r.Said())
	case r.Rounds() == 0:
		return agenttest.Calls(agenttest.Call("task", `{"prompt":"look around"}`))
	}
	return agenttest.Reply("it is done")
}

// Each message begins a complete trace, no matter where it comes from and how it ends.
func TestEveryKindOfMessageMakesAWholeTrace(t *testing.T) {
	t.Parallel()
	c := otlptest.New(t)
	w := parleytest.New(t, delegating(), fmt.Sprintf("[trace]\nendpoint = %q\n[agents.defaults]\ncapabilities = [\"session\"]\n", c.Endpoint()))
	p := w.Serve()
	p.WaitServing()
	w.Telegram.Say(2, 2, "task one")
	w.WaitSaid(2, 1)
	w.Telegram.Say(2, 2, "/status")
	w.WaitSaid(2, 2)
	for _, args := range [][]string{{"chat", "-m", "hello"}, {"send", "--to", "telegram:2", "an alert"}} {
		if _, errs, code := w.Run(args...); code != parleytest.ExitDone {
			t.Fatalf("%v: %s", args, errs)
		}
	}
	w.Telegram.Say(4, 4, "fail")
	w.WaitSaid(4, 1)
	w.Telegram.Fail(telegramtest.Fault{Chat: 3, Status: 403, Method: "sendMessage"})
	w.Telegram.Say(3, 3, "nobody hears me")
	p.Stop()
	c.CheckWhole()
	var all []string
	traces := map[string]bool{}
	for _, s := range c.Newest() {
		if traces[s.Trace] {
			continue
		}
		traces[s.Trace] = true
		all = append(all, strings.Join(namedIn(c.Newest(), s.Trace), ", "))
	}
	slices.Sort(all)
	want := []string{
		"chat scripted, chat scripted, deliver telegram, receive telegram, send telegram, step, step, tool task, turn, wait for a sub-agent, wait in the mailbox, wait in the outbox",
		"chat scripted, chat scripted, deliver telegram, receive telegram, send telegram, step, turn, wait in the mailbox, wait in the outbox",
		"chat scripted, deliver console, receive console, send console, step, turn, wait in the mailbox, wait in the outbox",
		"chat scripted, deliver telegram, receive telegram, send telegram, step, turn, wait in the mailbox, wait in the outbox",
		"chat scripted, step, turn", // the sub-agent's
		"command status, deliver telegram, receive telegram, send telegram, wait in the outbox",
		"deliver telegram, send telegram, wait in the outbox", // the alert
	}
	if !slices.Equal(all, want) {
		t.Errorf("the traces are\n%s\nwant\n%s", strings.Join(all, "\n"), strings.Join(want, "\n"))
	}
	var links, turns, failed []string
	for _, s := range c.Newest() {
		links = append(links, s.Links...)
		if s.Attributes["parley.parent"] == "main:telegram:2" {
			turns = append(turns, s.Trace+"/"+s.ID)
		}
		if s.Failed != "" {
			failed = append(failed, s.Name+": "+s.Failed)
		}
	}
	if !slices.Equal(links, turns) || len(links) != 1 {
		t.Errorf("the links are %v, want one to the sub-agent's turn, %v", links, turns)
	}
	if slices.Sort(failed); !slices.Equal(failed, []string{"chat scripted: busy", "deliver telegram: 403", "send telegram: 403"}) {
		t.Errorf("what failed is %q", failed)
	}
}
