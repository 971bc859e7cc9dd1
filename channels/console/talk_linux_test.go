package console_test

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"parley/bus"
	"parley/channels/console"
)

// A desk is a console on a real terminal, and the keyboard before it.
type desk struct {
	*talk
	keyboard *os.File
	shown    *paper
}

// sit opens a terminal and runs a console on it.
func sit(t *testing.T) *desk {
	t.Helper()
	front, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	var unlock, number int32
	control(t, front, syscall.TIOCSPTLCK, &unlock)
	control(t, front, syscall.TIOCGPTN, &number)
	back, err := os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	d := &desk{keyboard: front, shown: new(paper)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(d.shown, front) // ends in an error when the terminal is closed
	}()
	t.Cleanup(func() {
		_ = back.Close() // nothing depends on it any more
		_ = front.Close()
		<-read
	})
	d.talk = begin(t, console.Config{In: back, Out: back})
	d.see(t, "› ")
	return d
}

func control(t *testing.T, f *os.File, request uintptr, value *int32) {
	t.Helper()
	conn, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = conn.Control(func(fd uintptr) {
		if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(unsafe.Pointer(value))); e != 0 {
			t.Skip("no terminals here: ", e)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (d *desk) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := d.keyboard.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// see waits until something was shown, and gives all that was.
func (d *desk) see(t *testing.T, what string) string {
	t.Helper()
	return d.until(t, what, func(shown string) bool { return strings.Contains(shown, what) })
}

func (d *desk) until(t *testing.T, what string, holds func(shown string) bool) string {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		shown := d.shown.String()
		if holds(shown) {
			return shown
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %q in %q", what, shown)
		}
	}
}

// prompts waits until the prompt was shown that often.
func (d *desk) prompts(t *testing.T, n int) {
	t.Helper()
	d.until(t, "a prompt", func(shown string) bool { return strings.Count(shown, "› ") >= n })
}

func TestTextIsShownAsItComesAndOnce(t *testing.T) {
	d := sit(t)
	d.press(t, "hello\r")
	in := d.next(t)
	if in.Text != "hello" {
		t.Errorf("said %q", in.Text)
	}
	d.emit(in.ID, bus.Event{Type: bus.TurnStart})
	d.emit(in.ID, bus.Event{Type: bus.BlockDelta, Kind: "thinking", Delta: "hmm"})
	d.emit(in.ID, bus.Event{Type: bus.ToolStart, Tool: "read_file", Call: "c1", Delta: "notes.txt"})
	d.see(t, "· read_file notes.txt …")
	d.emit(in.ID, bus.Event{Type: bus.ToolEnd, Tool: "read_file", Call: "c1"})
	d.see(t, "· read_file notes.txt … ok\r\n")
	d.emit(in.ID, text(2, "It says \x1b]0;owned\a", "pear.\n\nAnd ")[:3]...)
	d.see(t, "It says ]0;ownedpear.\r\n\r\nAnd ")
	d.emit(in.ID, text(2, "more.")[1:]...)
	d.emit(in.ID, bus.Event{Type: bus.TurnComplete})
	d.answer(t, in.ID+"#reply", "It says \x1b]0;owned\apear.\n\nAnd more.\n\n_(Stopped.)_")
	d.prompts(t, 2)
	shown := d.shown.String()
	if n := strings.Count(shown, "pear"); n != 1 {
		t.Errorf("the text is shown %d times: %q", n, shown)
	}
	if !strings.Contains(shown, "And more.\r\n\r\n_(Stopped.)_\r\n") {
		t.Errorf("the rest of the answer is missing: %q", shown)
	}
	if !strings.Contains(shown, "\x1b[2mhmm\x1b[0m") {
		t.Errorf("thinking is not dimmed: %q", shown)
	}
	if strings.ContainsAny(shown, "\a") || strings.Contains(shown, "\x1b]") {
		t.Errorf("control characters reach the terminal: %q", shown)
	}
}

func TestAnAnswerWithoutNewsIsPrinted(t *testing.T) {
	d := sit(t)
	d.press(t, "/help\r")
	in := d.next(t)
	d.answer(t, in.ID+"#reply", "this helps")
	d.see(t, "this helps\r\n")
	d.prompts(t, 2)
	d.press(t, "hello\r")
	in = d.next(t)
	d.answer(t, in.ID+"#reply", "whole") // its news are late
	d.see(t, "whole\r\n")
	d.emit(in.ID, append(text(0, "whole"), bus.Event{Type: bus.TurnComplete})...)
	d.emit("console:next", text(0, "later")...)
	if shown := d.see(t, "later"); strings.Count(shown, "whole") != 1 {
		t.Errorf("shown twice: %q", shown)
	}
}

func TestAnAnswerThatBreaksOffBeginsAgain(t *testing.T) {
	d := sit(t)
	d.press(t, "hello\r")
	in := d.next(t)
	d.emit(in.ID, bus.Event{Type: bus.TurnStart})
	d.emit(in.ID, text(0, "first half")[:2]...)
	d.emit(in.ID, bus.Event{Type: bus.BlockReset, Block: 0})
	d.emit(in.ID, text(0, "all of it")...)
	d.emit(in.ID, bus.Event{Type: bus.TurnComplete})
	d.answer(t, in.ID+"#reply", "all of it")
	d.prompts(t, 2)
	shown := d.shown.String()
	if !strings.Contains(shown, "first half\r\n· the answer broke off and begins again\r\nall of it\r\n") || strings.Count(shown, "all of it") != 1 {
		t.Errorf("shown %q", shown)
	}
}

func TestWhatIsTypedMeanwhileIsSaid(t *testing.T) {
	d := sit(t)
	d.press(t, "one\r")
	first := d.next(t)
	d.emit(first.ID, bus.Event{Type: bus.TurnStart})
	d.emit(first.ID, text(0, "working")[:2]...)
	d.see(t, "working")
	d.press(t, "two\r")
	if second := d.next(t); second.Text != "two" || second.ID == first.ID {
		t.Errorf("said %+v", second)
	}
	d.press(t, "thr")
	d.see(t, "thr")
	d.emit(first.ID, bus.Event{Type: bus.TurnComplete})
	d.answer(t, first.ID+"#reply", "done with both")
	d.see(t, "› thr")
	d.press(t, "ee\r")
	if third := d.next(t); third.Text != "three" {
		t.Errorf("said %q", third.Text)
	}
}

func TestCtrlCStopsTheTurnAndThenTheTalk(t *testing.T) {
	d := sit(t)
	d.press(t, "hello\r")
	in := d.next(t)
	d.emit(in.ID, bus.Event{Type: bus.TurnStart})
	d.emit(in.ID, text(0, "on and on")[:2]...)
	d.see(t, "on and on")
	d.press(t, "\x03")
	stop := d.next(t)
	if stop.Text != "/stop" {
		t.Fatalf("said %q", stop.Text)
	}
	d.emit(in.ID, bus.Event{Type: bus.TurnError, Error: &bus.Failure{Code: "cancelled"}})
	d.answer(t, stop.ID+"#reply", "Stopped.")
	d.see(t, "Stopped.\r\n")
	d.prompts(t, 2)
	d.press(t, "not this")
	d.see(t, "not this")
	d.press(t, "\x03") // empties the line
	d.press(t, "but that\r")
	if in := d.next(t); in.Text != "but that" {
		t.Errorf("said %q", in.Text)
	}
	d.press(t, "\x03")
	d.next(t)
	d.press(t, "\x03") // nobody answers the first
	if err := d.end(t); !errors.Is(err, io.EOF) {
		t.Errorf("it ended with %v", err)
	}
}

func TestCtrlDEndsTheTalk(t *testing.T) {
	d := sit(t)
	d.press(t, "\x04")
	if err := d.end(t); !errors.Is(err, io.EOF) {
		t.Errorf("it ended with %v", err)
	}
}

func TestPastedLinesAreOneMessageAndHistoryComesBack(t *testing.T) {
	d := sit(t)
	d.press(t, "\x1b[200~line one\rline two\r\x1b[201~\r")
	in := d.next(t)
	if in.Text != "line one\nline two" {
		t.Errorf("said %q", in.Text)
	}
	d.answer(t, in.ID+"#reply", "yes")
	d.prompts(t, 2)
	d.press(t, "\x1b[A\r")
	if in := d.next(t); in.Text != "line two" {
		t.Errorf("the arrow brought back %q", in.Text)
	}
}
