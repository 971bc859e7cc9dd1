package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"parley/agent/agenttest"
	"parley/channels/console/consoletest"
	"parley/cmd/parley/parleytest"
)

// These tests talk to the real program on terminals of their own.

// A seat is somebody at a terminal with a chat on it.
type seat struct {
	t        *testing.T
	cmd      *exec.Cmd
	keyboard *os.File
	shown    *parleytest.SyncBuffer
	ended    chan error
}

// sit starts a chat on a terminal and waits for its prompt.
func sit(w *parleytest.World, args ...string) *seat {
	w.T.Helper()
	s := take(w.T, w.Command(append([]string{"chat"}, args...)...))
	s.sees("›")
	return s
}

// take starts a command on a terminal.
func take(t *testing.T, cmd *exec.Cmd) *seat {
	t.Helper()
	front, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	var unlock, number int32
	for request, value := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlock, syscall.TIOCGPTN: &number} {
		if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, front.Fd(), request, uintptr(unsafe.Pointer(value))); e != 0 {
			t.Skip("no terminals here: ", e)
		}
	}
	back, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	size := [4]uint16{24, 80}
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, front.Fd(), syscall.TIOCSWINSZ, uintptr(unsafe.Pointer(&size))); e != 0 {
		t.Fatal("resize: ", e)
	}
	s := &seat{t: t, cmd: cmd, keyboard: front, shown: &parleytest.SyncBuffer{}, ended: make(chan error, 1)}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = back, back, back
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	back.Close()
	go func() { _, _ = io.Copy(s.shown, front) }() // ends in an error with the terminal
	go func() { s.ended <- s.cmd.Wait() }()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended
		_ = front.Close()
		if t.Failed() {
			t.Logf("the terminal shows\n%s", s.onScreen())
		}
	})
	return s
}

func (s *seat) types(text string) {
	s.t.Helper()
	if _, err := s.keyboard.WriteString(text + "\r"); err != nil {
		s.t.Fatal(err)
	}
}

// onScreen is what is to be seen on the terminal, what has scrolled away included.
func (s *seat) onScreen() string { return consoletest.Seen(s.shown.String(), 80, 24) }

// sees waits until something is to be seen.
func (s *seat) sees(what string) {
	s.t.Helper()
	for deadline := time.Now().Add(parleytest.Patience); !strings.Contains(s.onScreen(), what); {
		if time.Now().After(deadline) {
			s.t.Fatalf("waited in vain for %q in\n%s", what, s.onScreen())
		}
		<-time.After(5 * time.Millisecond)
	}
}

// leaves ends the chat and waits for that.
func (s *seat) leaves() {
	s.t.Helper()
	if _, err := s.keyboard.WriteString("\x04"); err != nil {
		s.t.Fatal(err)
	}
	if err := <-s.ended; err != nil {
		s.t.Fatalf("chat ended with %v: %q", err, s.onScreen())
	}
}

func TestTwoTerminalsSideBySide(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	p := w.Serve()
	p.WaitServing()
	one, two := sit(w), sit(w)
	two.sees("this is default-2")
	one.types("apples")
	two.types("pears")
	one.sees("you said apples")
	two.sees("you said pears")
	if strings.Contains(one.onScreen(), "pears") || strings.Contains(two.onScreen(), "apples") {
		t.Errorf("they see each other's: %q and %q", one.onScreen(), two.onScreen())
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
	one.leaves()
	again := sit(w)
	if strings.Contains(again.onScreen(), "this is") {
		t.Errorf("the conversation was not given back: %q", again.onScreen())
	}
	w.Telegram.Say(2, 2, "hello") // and the platform goes on
	w.WaitSaid(2, 1)
	again.leaves()
	two.leaves()
	p.Stop()
}

// A turn that runs is stopped from elsewhere: by another terminal, and over HTTP.
func TestStopFromElsewhere(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		// What was said in a turn that was stopped stands before what is said next.
		words := strings.Fields(r.Said())
		if words[len(words)-2] == "slow" {
			return agenttest.Reply("too late").WaitFor(make(chan struct{}))
		}
		return agenttest.Reply("done with " + words[len(words)-1])
	}, "")
	o := listening(w)
	o.up()
	one := sit(w)
	for n, stop := range []func(){
		func() {
			if out, errs, code := w.Run("chat", "--session", "default", "-m", "/stop"); code != 0 {
				t.Errorf("stop from a terminal: %d %q %q", code, out, errs)
			}
		},
		func() {
			got := o.must("POST", "/v1/messages", `{"to": "agent", "session": "main:console:default", "text": "/stop"}`, o.owner()...)
			if got.status != 202 {
				t.Errorf("stop over HTTP: %+v", got)
			}
		},
	} {
		asked := w.Model.Asked()
		one.types(fmt.Sprintf("slow %d", n))
		parleytest.WaitFor(t, "the model to be asked", func() bool { return w.Model.Asked() > asked })
		stop()
		one.types(fmt.Sprintf("quick %d", n))
		one.sees(fmt.Sprintf("done with %d", n))
	}
	if strings.Contains(one.onScreen(), "too late") {
		t.Errorf("the turn went on: %q", one.onScreen())
	}
}

// A terminal goes on when its server is killed, whatever that was doing, and
// shows each answer once.
func TestTerminalOutlivesServe(t *testing.T) {
	for _, at := range []string{"c1", "c3", "c6", "c7:published", "send:begun", "send:sent"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := parleytest.New(t, parleytest.EchoModel, "")
			p := w.Serve("PARLEY_KILL_AT=" + at)
			p.WaitServing()
			one := sit(w)
			one.types("first")
			p.WaitKilled()
			w.Serve()
			one.sees("you said first")
			one.types("second")
			one.sees("you said second")
			one.leaves()
			// Until all is drawn an answer may stand there twice.
			parleytest.WaitFor(t, "the answer to be shown once", func() bool { return strings.Count(one.onScreen(), "you said first") == 1 })
		})
	}
}

// So does the question of a script.
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

// Without a serve one terminal has the home; when it leaves, another takes it.
func TestTerminalTakesTheHomeOver(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	one := sit(w)
	two := sit(w)
	two.types("first")
	two.sees("you said first")
	one.leaves()
	two.types("second")
	two.sees("you said second")
	two.leaves()
}

// Who leaves before the answer is there gets away at once; the answer goes on
// when somebody is back, and the arrow brings back what was said.
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
	one := sit(w)
	one.types("apples")
	parleytest.WaitFor(t, "the model to be asked", func() bool { return w.Model.Asked() == 1 })
	one.leaves()
	one.sees("the answer is put aside")
	again := sit(w)
	again.sees("answer 2")
	again.types("\x1b[A")
	again.sees("answer 3")
	again.leaves()
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

// At the terminal a call is approved and refused with a letter, also by who comes back
// to it later.
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
	}, asksAboutWriting)
	s := sit(w)
	s.types("one")
	s.sees("y/n/s ›")
	s.types("y")
	s.sees("one then: ")
	s.sees("Approved by")
	s.types("two")
	s.sees(`"path":"two"`)
	s.leaves()
	s = sit(w)
	s.sees("y/n/s ›")
	s.types("n not that one")
	s.sees("│ not that one")
	s.sees("two then: ")
	s.types("three")
	s.sees("y/n/s ›")
	if _, stderr, code := w.Run("approvals", "approve", waiting(t, w)); code != 0 {
		t.Fatal(stderr)
	}
	s.sees("three then: ")
	parleytest.WaitFor(t, "the question to go", func() bool { return strings.HasSuffix(s.onScreen(), "\n›") })
	s.leaves()
}

// waiting is the id of the one request that waits.
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
