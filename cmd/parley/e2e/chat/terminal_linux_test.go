package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// In these tests, people use the real program on pseudoterminals.

func TestTwoTerminalsSideBySide(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	p := w.Serve()
	p.WaitServing()
	one, two := parleytest.Sit(w), parleytest.Sit(w)
	two.Sees("this one uses default-2")
	one.Types("apples")
	two.Types("pears")
	one.Sees("you said apples")
	two.Sees("you said pears")
	if strings.Contains(one.Content(), "pears") || strings.Contains(two.Content(), "apples") {
		t.Errorf("they see each other's: %q and %q", one.Content(), two.Content())
	}
	if out, errs, code := w.Run("chat", "-m", "plums"); code != 0 || strings.TrimSpace(out) != "you said plums" || !strings.Contains(errs, "default-3") {
		t.Errorf("a third: %d %q %q", code, out, errs)
	}
	out, _, _ := w.Run("sessions")
	for _, key := range []string{"main:console:default ", "main:console:default-2 ", "main:console:default-3 "} {
		if !strings.Contains(out, key) {
			t.Errorf("sessions lists %q, want %q in it", out, key)
		}
	}
	one.Leaves()
	again := parleytest.Sit(w)
	if strings.Contains(again.Content(), "this is") {
		t.Errorf("the conversation was not given back: %q", again.Content())
	}
	w.Telegram.Say(2, 2, "hello") // the platform keeps working
	w.WaitSaid(2, 1)
	again.Leaves()
	two.Leaves()
	p.Stop()
}

// A running turn can be stopped from another terminal and over HTTP.
func TestStopFromElsewhere(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		// What was said in a stopped turn comes before the next message.
		words := strings.Fields(r.Said())
		if words[len(words)-2] == "slow" {
			return agenttest.Reply("too late").WaitFor(make(chan struct{}))
		}
		return agenttest.Reply("done with " + words[len(words)-1])
	}, "")
	o := parleytest.ListenHTTP(w)
	o.Up()
	one := parleytest.Sit(w)
	for n, stop := range []func(){
		func() {
			if out, errs, code := w.Run("chat", "--session", "default", "-m", "/stop"); code != 0 {
				t.Errorf("stop from a terminal: %d %q %q", code, out, errs)
			}
		},
		func() {
			got := o.Ask("POST", "/v1/messages", `{"to": "agent", "session": "main:console:default", "text": "/stop"}`, o.OwnerHeader()...)
			if got.Status != 202 {
				t.Errorf("stop over HTTP: %+v", got)
			}
		},
	} {
		asked := w.Model.Asked()
		one.Types(fmt.Sprintf("slow %d", n))
		parleytest.WaitFor(t, "the model to be asked", func() bool { return w.Model.Asked() > asked })
		stop()
		one.Types(fmt.Sprintf("quick %d", n))
		one.Sees(fmt.Sprintf("done with %d", n))
	}
	if strings.Contains(one.Content(), "too late") {
		t.Errorf("the turn went on: %q", one.Content())
	}
}

// A terminal reconnects when its server is killed at any step, and shows each answer once.
func TestTerminalOutlivesServe(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"c1", "c3", "c6", "c7:published", "send:begun", "send:sent"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := parleytest.New(t, parleytest.EchoModel, "")
			p := w.Serve("PARLEY_KILL_AT=" + at)
			p.WaitServing()
			one := parleytest.Sit(w)
			one.Types("first")
			p.WaitKilled()
			w.Serve()
			one.Sees("you said first")
			one.Types("second")
			one.Sees("you said second")
			one.Leaves()
			// While the terminal is still drawing, an answer may be there twice.
			parleytest.WaitFor(t, "the answer to be shown once", func() bool { return strings.Count(one.Content(), "you said first") == 1 })
		})
	}
}

// "parley chat -m" gets its answer even if the server is killed at any step.
func TestQuestionOutlivesServe(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"c3", "c7:published", "send:sent"} {
		w := parleytest.New(t, parleytest.EchoModel, "")
		p := w.Serve("PARLEY_KILL_AT=" + at)
		p.WaitServing()
		answers := make(chan string, 1)
		go func() {
			out, errs, code := w.Run("chat", "-m", "hello")
			answers <- fmt.Sprint(code, " ", strings.TrimSpace(out), errs)
		}()
		p.WaitKilled()
		w.Serve()
		if got := <-answers; got != "0 you said hello" {
			t.Errorf("%s: chat -m ended with %q", at, got)
		}
	}
}

// Without a server, one terminal serves the home. When it ends, another terminal takes over.
func TestTerminalTakesTheHomeOver(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	one := parleytest.Sit(w)
	two := parleytest.Sit(w)
	two.Types("first")
	two.Sees("you said first")
	one.Leaves()
	two.Types("second")
	two.Sees("you said second")
	two.Leaves()
}

// A person can leave a terminal at once while the model still works on an answer. The turn continues when somebody
// returns, and the up arrow brings back the last message.
func TestLeavingInMidAnswerLosesNothing(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	w := parleytest.New(t, func(agenttest.Request) agenttest.Response {
		n := asked.Add(1)
		if n == 1 {
			return agenttest.Reply("never said").WaitFor(make(chan struct{}))
		}
		return agenttest.Reply(fmt.Sprint("answer ", n))
	}, "")
	one := parleytest.Sit(w)
	one.Types("apples")
	parleytest.WaitFor(t, "the model to be asked", func() bool { return w.Model.Asked() == 1 })
	one.Leaves()
	one.Sees("the answer is paused")
	again := parleytest.Sit(w)
	again.Sees("answer 2")
	again.Types("\x1b[A")
	again.Sees("answer 3")
	again.Leaves()
	requests := w.Model.Requests()
	if last := requests[len(requests)-1].Said(); !strings.HasSuffix(last, "apples") {
		t.Errorf("the arrow brought back %q", last)
	}
}

func TestOneAnswerAsJSON(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	out, errs, code := w.Run("chat", "--json", "-m", "plums")
	if code != 0 || out != `{"session":"main:console:default","text":"you said plums"}`+"\n" {
		t.Errorf("an answer: %d %q %q", code, out, errs)
	}
	out, errs, code = w.Run("chat", "--json", "-m", "/stauts")
	if code != 1 || !strings.Contains(out, `"error":{"code":"no_answer"`) || !strings.Contains(out, "did you mean /status?") {
		t.Errorf("a command that nobody knows: %d %q %q", code, out, errs)
	}
	if n := w.Model.Asked(); n != 1 {
		t.Errorf("the model was asked %d times, want 1", n)
	}
}

// At the terminal, a letter approves or denies a call, even for a person who returns to the request later.
func TestApprovalsAtTheTerminal(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		words := strings.Fields(r.Said())
		name := words[len(words)-1]
		if r.Rounds() == 0 {
			return agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: fmt.Sprintf(`{"path":%q,"content":"x"}`, name)})
		}
		results := r.Results()
		return agenttest.Reply(name + " then: " + results[len(results)-1])
	}, "\n[tools]\nask = [\"write_file\"]\n")
	s := parleytest.Sit(w)
	s.Types("one")
	s.Sees("y/n/s ›")
	s.Types("y")
	s.Sees("one then: ")
	s.Sees("Approved by")
	s.Types("two")
	s.Sees("two, a new file")
	s.Leaves()
	s = parleytest.Sit(w)
	s.Sees("y/n/s ›")
	s.Types("n not that one")
	s.Sees("│ not that one")
	s.Sees("two then: ")
	s.Types("three")
	s.Sees("y/n/s ›")
	if _, stderr, code := w.Run("approvals", "approve", waiting(t, w)); code != 0 {
		t.Fatal(stderr)
	}
	s.Sees("three then: ")
	parleytest.WaitFor(t, "the question to go", func() bool { return strings.HasSuffix(s.Content(), "\n›") })
	s.Leaves()
}

// waiting returns the id of the only open request.
func waiting(t *testing.T, w *parleytest.World) string {
	t.Helper()
	out, stderr, code := w.Run("approvals", "list", "--json")
	var list []struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(out), &list); code != 0 || err != nil || len(list) != 1 {
		t.Fatalf("what waits is %q, %v, %s", out, err, stderr)
	}
	return list[0].ID
}

// A person who returns to a conversation sees its past, whether this terminal or another process serves the home. What
// was said before /new is not shown.
func TestThePastIsShownOnReturn(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	first := parleytest.Sit(w)
	first.Types("apples")
	first.Sees("you said apples")
	first.Leaves()
	again := parleytest.Sit(w)
	again.Sees("› apples\nyou said apples\n· now:\n")
	again.Leaves()
	p := w.Serve()
	p.WaitServing()
	joined := parleytest.Sit(w)
	joined.Sees("› apples\nyou said apples\n· now:\n")
	joined.Types("/new")
	joined.Types("pears")
	joined.Sees("you said pears")
	joined.Leaves()
	last := parleytest.Sit(w)
	last.Sees("› pears\nyou said pears\n· now:\n")
	if strings.Contains(last.Content(), "apples") {
		t.Errorf("what was before /new is shown: %q", last.Content())
	}
	last.Leaves()
	p.Stop()
}

// /sessions lists the conversations of terminals and switches to one of them; /model shows which model answers.
func TestCommandsOfTheTerminal(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	p := w.Serve()
	p.WaitServing()
	w.Telegram.Say(2, 2, "elsewhere")
	w.WaitSaid(2, 1)
	if _, errs, code := w.Run("chat", "--session", "my work", "-m", "apples and more"); code != 0 {
		t.Fatal(errs)
	}
	s := parleytest.Sit(w)
	s.Types("pears")
	s.Sees("you said pears")
	s.Types("/help")
	s.Sees("/help shows this list")
	if strings.Contains(s.Content(), "/export") || strings.Contains(s.Content(), "/memory") {
		t.Errorf("what a terminal does not do is offered: %q", s.Content())
	}
	s.Types("/model")
	s.Sees("scripted ([model]) answers, unless")
	s.Types("/sessions")
	s.Sees("\n 1  default · this one · just now · pears\n 2  my work · just now · apples and more\n")
	if strings.Contains(s.Content(), "elsewhere") {
		t.Errorf("a platform's conversation is listed: %q", s.Content())
	}
	s.Types("/sessions nobody")
	s.Sees("there's no conversation nobody")
	s.Types("/sessions 1")
	s.Sees("you're already there")
	s.Types("/sessions 2")
	s.Sees("conversation my work")
	s.Sees("› apples and more\nyou said apples and more\n· now:")
	s.Types("plums")
	s.Sees("plums\n")
	if out, _, _ := w.Run("sessions", "main:console:my%20work"); !strings.Contains(out, "plums") {
		t.Errorf("the conversation has %q", out)
	}
	s.Leaves()
	p.Stop()
}
