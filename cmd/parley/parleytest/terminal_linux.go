package parleytest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"parley/channels/console/consoletest"
)

// A Seat is a person at a terminal with a chat.
type Seat struct {
	t        *testing.T
	Cmd      *exec.Cmd
	Keyboard *os.File
	Shown    *SyncBuffer
	Ended    chan error
}

// Sit starts a chat on a terminal and waits for its prompt.
func Sit(w *World, args ...string) *Seat {
	w.T.Helper()
	s := TakeSeat(w.T, w.Command(append([]string{"chat"}, args...)...))
	s.Sees("›")
	return s
}

// TakeSeat starts a command on a terminal and returns the seat at it.
func TakeSeat(t *testing.T, cmd *exec.Cmd) *Seat {
	t.Helper()
	front, back, err := consoletest.OpenPTY(80, 24)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	s := &Seat{t: t, Cmd: cmd, Keyboard: front, Shown: &SyncBuffer{}, Ended: make(chan error, 1)}
	s.Cmd.Stdin, s.Cmd.Stdout, s.Cmd.Stderr = back, back, back
	if err := s.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	back.Close()
	go func() { _, _ = io.Copy(s.Shown, front) }() // ends in an error with the terminal
	go func() { s.Ended <- s.Cmd.Wait() }()
	t.Cleanup(func() {
		_ = s.Cmd.Process.Kill() // it may have ended
		_ = front.Close()
		if t.Failed() {
			t.Logf("the terminal shows\n%s", s.Content())
		}
	})
	return s
}

// Types types a line and presses Enter.
func (s *Seat) Types(text string) {
	s.t.Helper()
	if _, err := s.Keyboard.WriteString(text + "\r"); err != nil {
		s.t.Fatal(err)
	}
}

// Content returns what the terminal has shown, including lines that have scrolled off.
func (s *Seat) Content() string { return consoletest.ShownText(s.Shown.String(), 80, 24) }

// Sees waits until the terminal shows a text.
func (s *Seat) Sees(what string) {
	s.t.Helper()
	for deadline := time.Now().Add(Patience); !strings.Contains(s.Content(), what); {
		if time.Now().After(deadline) {
			s.t.Fatalf("waited in vain for %q in\n%s", what, s.Content())
		}
		<-time.After(5 * time.Millisecond)
	}
}

// SeesTimes waits until the terminal shows a text that many times.
func (s *Seat) SeesTimes(what string, times int) {
	s.t.Helper()
	WaitFor(s.t, fmt.Sprintf("%q, %d times", what, times), func() bool { return strings.Count(s.Content(), what) >= times })
}

// Leaves ends the chat and waits until it has ended.
func (s *Seat) Leaves() {
	s.t.Helper()
	if _, err := s.Keyboard.WriteString("\x04"); err != nil {
		s.t.Fatal(err)
	}
	if err := <-s.Ended; err != nil {
		s.t.Fatalf("chat ended with %v: %q", err, s.Content())
	}
}

// Ends waits until the program at the terminal ends.
func (s *Seat) Ends() {
	s.t.Helper()
	if err := <-s.Ended; err != nil {
		s.t.Fatalf("it ended with %v:\n%s", err, s.Content())
	}
}
