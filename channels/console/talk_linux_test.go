package console_test

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels/console"
	"parley/channels/console/consoletest"
	"parley/tools/testlog"
)

// A terminalSession is a console on a real terminal, with the keyboard of the person who uses it.
type terminalSession struct {
	*consoleRun
	keyboard *os.File
	output   *testlog.Buffer

	width, height int
}

// startTerminal opens a terminal and runs a console on it.
func startTerminal(t *testing.T) *terminalSession {
	t.Helper()
	return startTerminalWith(t, console.Config{})
}

// startTerminalWith does what startTerminal does, with the given configuration.
func startTerminalWith(t *testing.T, cfg console.Config) *terminalSession {
	t.Helper()
	return startTerminalOfSize(t, cfg, 80, 24, io.Discard)
}

// startTerminalOfSize does what startTerminalWith does, on a terminal of a given size, whose output is also
// written to beside.
func startTerminalOfSize(t *testing.T, cfg console.Config, width, height int, beside io.Writer) *terminalSession {
	t.Helper()
	front, back := openTerminal(t)
	d := &terminalSession{keyboard: front, output: new(testlog.Buffer), width: width, height: height}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.MultiWriter(d.output, beside), front) // fails when the terminal is closed
	}()
	t.Cleanup(func() {
		_ = back.Close() // the result doesn't matter anymore
		_ = front.Close()
		<-read
	})
	resize(t, front, uint16(width), uint16(height))
	cfg.In, cfg.Out, cfg.Hint = back, back, idleText
	d.consoleRun = startConsole(t, cfg)
	d.awaitText(t, "›")
	return d
}

// openTerminal opens a terminal. front is the side of the person, with keyboard and screen, and back the side
// of the program. A test that closes one must close both.
func openTerminal(t testing.TB) (front, back *os.File) {
	t.Helper()
	front, back, err := consoletest.OpenPTY(0, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	return front, back
}

// resize sets the terminal's size.
func resize(t *testing.T, f *os.File, width, height uint16) {
	t.Helper()
	if err := consoletest.ResizePTY(f, int(width), int(height)); err != nil {
		t.Fatal(err)
	}
}

func (d *terminalSession) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := d.keyboard.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// idleText is shown above the typed line while nothing is happening.
const idleText = "(nothing goes on)"

// onScreen returns what the terminal shows, without the line that says that nothing is happening.
func (d *terminalSession) onScreen() string {
	return strings.Replace(consoletest.ShownText(d.output.String(), d.width, d.height), "\n"+idleText+"\n", "\n", 1)
}

// awaitText waits until the terminal shows a text, and returns everything that it shows.
func (d *terminalSession) awaitText(t *testing.T, what string) string {
	t.Helper()
	return d.waitUntil(t, what, func(onScreen string) bool { return strings.Contains(onScreen, what) })
}

// awaitSuffix waits until what the terminal shows ends with a text.
func (d *terminalSession) awaitSuffix(t *testing.T, what string) string {
	t.Helper()
	return d.waitUntil(t, what, func(onScreen string) bool { return strings.HasSuffix(onScreen, what) })
}

func (d *terminalSession) waitUntil(t *testing.T, what string, holds func(onScreen string) bool) string {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(testTimeout)
	for {
		onScreen := d.onScreen()
		if holds(onScreen) {
			return onScreen
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %q in\n%s\nwritten %q", what, onScreen, d.output.String())
		}
	}
}

func TestTextIsShownOnceWhileItArrives(t *testing.T) {
	d := startTerminal(t)
	d.press(t, "hello\r")
	in := d.nextMessage(t)
	if in.Text != "hello" {
		t.Errorf("said %q", in.Text)
	}
	d.awaitText(t, "› hello\n")
	d.awaitText(t, "working")
	d.emit(in.ID, bus.Event{Type: bus.TurnStart})
	d.emit(in.ID, block(7, "user", "as was said")...)
	d.emit(in.ID, bus.Event{Type: bus.BlockDelta, Kind: "thinking", Delta: "hmm"})
	d.awaitText(t, "hmm")
	d.emit(in.ID, block(1, "tool_use", `{"path":`, `"notes.txt"}`)...)
	d.emit(in.ID, bus.Event{Type: bus.BlockStop, Kind: "thinking"})
	d.emit(in.ID, bus.Event{Type: bus.ToolStart, Tool: "read_file", Call: "c1", Delta: "notes.txt"})
	d.awaitText(t, "· read_file notes.txt …\n… working; Ctrl-C stops it\n›")
	d.emit(in.ID, block(3, "tool_result", `{"content":"a pear"}`)...)
	d.emit(in.ID, bus.Event{Type: bus.ToolEnd, Tool: "read_file", Call: "c1"})
	d.awaitText(t, "· read_file notes.txt … ok\n")
	d.emit(in.ID, bus.Event{Type: bus.Compacted, Compaction: &bus.Compaction{Before: 7000, After: 2000}})
	d.awaitText(t, "· the model now sees less history: about 2000 tokens instead of 7000\n")
	d.emit(in.ID, textEvents(4, "It **says** \x1b]0;owned\a", "pear.\n\nAnd ")[:3]...)
	d.awaitText(t, "It says ]0;ownedpear.\n\nAnd\n… working; Ctrl-C stops it\n›")
	d.emit(in.ID, textEvents(4, "more.")[1:]...)
	d.emit(in.ID, bus.Event{Type: bus.TurnComplete})
	d.sendAnswer(t, in.ID+"#reply", "It **says** \x1b]0;owned\apear.\n\nAnd more.\n\n_(Stopped.)_")
	onScreen := d.awaitSuffix(t, "And more.\n(Stopped.)\n›")
	if n := strings.Count(onScreen, "pear"); n != 1 {
		t.Errorf("the text is shown %d times:\n%s", n, onScreen)
	}
	shown := d.output.String()
	if strings.Contains(shown, "as was said") || strings.Contains(shown, `"path"`) || strings.Contains(shown, `"content"`) {
		t.Errorf("what only the log shows is on the terminal: %q", shown)
	}
	if !strings.Contains(shown, "\x1b[1msays\x1b[22m") {
		t.Errorf("bold is not shown as bold: %q", shown)
	}
	if !strings.Contains(shown, "\x1b[2mhmm\x1b[0m") {
		t.Errorf("thinking is not dimmed: %q", shown)
	}
	if strings.Contains(shown, "\x1b]0;") {
		t.Errorf("control characters reach the terminal: %q", shown)
	}
}

// The reply to a command may arrive before the events of what the command has done.
func TestEventsOfACommandMayFollowItsReply(t *testing.T) {
	d := startTerminal(t)
	d.press(t, "/compact\r")
	in := d.nextMessage(t)
	d.sendAnswer(t, in.ID+"#reply", "summed up")
	d.awaitSuffix(t, "summed up\n›")
	d.emit(in.ID, bus.Event{Type: bus.Compacted, Compaction: &bus.Compaction{Before: 7000, After: 2000}})
	d.awaitSuffix(t, "about 2000 tokens instead of 7000\n›")
}

func TestAnAnswerWithoutEventsIsPrinted(t *testing.T) {
	d := startTerminal(t)
	d.press(t, "/usage\r")
	in := d.nextMessage(t)
	d.sendAnswer(t, in.ID+"#reply", "this much")
	d.awaitSuffix(t, "› /usage\nthis much\n›")
	d.press(t, "hello\r")
	in = d.nextMessage(t)
	d.sendAnswer(t, in.ID+"#reply", "whole") // its events arrive later
	d.awaitText(t, "whole\n")
	d.emit(in.ID, append(textEvents(0, "whole"), bus.Event{Type: bus.TurnComplete})...)
	d.emit("console:next", textEvents(0, "later")...)
	if onScreen := d.awaitText(t, "later"); strings.Count(onScreen, "whole") != 1 {
		t.Errorf("shown twice:\n%s", onScreen)
	}
}

func TestAnInterruptedAnswerBeginsAgain(t *testing.T) {
	d := startTerminal(t)
	d.press(t, "hello\r")
	in := d.nextMessage(t)
	d.emit(in.ID, bus.Event{Type: bus.TurnStart})
	d.emit(in.ID, textEvents(0, "first half")[:2]...)
	d.awaitText(t, "first half")
	d.emit(in.ID, bus.Event{Type: bus.BlockReset, Block: 0})
	d.emit(in.ID, textEvents(0, "all of it")...)
	d.emit(in.ID, bus.Event{Type: bus.TurnComplete})
	d.sendAnswer(t, in.ID+"#reply", "all of it")
	d.awaitSuffix(t, "› hello\nfirst half\n· the answer was cut off and is starting over\nall of it\n›")
}

func TestTextTypedDuringAnAnswerIsKeptAndSent(t *testing.T) {
	d := startTerminal(t)
	d.press(t, "one\r")
	first := d.nextMessage(t)
	d.emit(first.ID, bus.Event{Type: bus.TurnStart})
	d.emit(first.ID, textEvents(0, "wor")[:2]...)
	d.awaitText(t, "wor\n… working; Ctrl-C stops it\n›")
	d.press(t, "two\r")
	if second := d.nextMessage(t); second.Text != "two" || second.ID == first.ID {
		t.Errorf("said %+v", second)
	}
	d.press(t, "thr")
	d.awaitText(t, "wor\n… working; Ctrl-C stops it\n› thr")
	d.emit(first.ID, textEvents(0, "king on")[1:]...)
	d.awaitSuffix(t, "working on\n… working; Ctrl-C stops it\n› thr")
	d.emit(first.ID, bus.Event{Type: bus.TurnComplete})
	d.sendAnswer(t, first.ID+"#reply", "working on\n\ndone with both")
	d.awaitSuffix(t, "› one\n› two\nworking on\ndone with both\n› thr")
	d.press(t, "ee\r")
	if third := d.nextMessage(t); third.Text != "three" {
		t.Errorf("said %q", third.Text)
	}
}

func TestCtrlCStopsTheTurnAndThenTheConversation(t *testing.T) {
	d := startTerminalWith(t, console.Config{Leaving: "it goes on later"})
	d.press(t, "hello\r")
	in := d.nextMessage(t)
	d.emit(in.ID, bus.Event{Type: bus.TurnStart})
	d.emit(in.ID, textEvents(0, "on and on")[:2]...)
	d.awaitText(t, "on and on")
	d.press(t, "\x03")
	stop := d.nextMessage(t)
	if stop.Text != "/stop" {
		t.Fatalf("said %q", stop.Text)
	}
	d.emit(in.ID, bus.Event{Type: bus.TurnError, Error: &bus.Failure{Code: "cancelled"}})
	d.awaitText(t, "on and on\n· stopped here")
	d.sendAnswer(t, stop.ID+"#reply", "Stopped.")
	d.awaitSuffix(t, "Stopped.\n›")
	d.press(t, "not this")
	d.awaitText(t, "not this")
	d.press(t, "\x03") // clears the line
	d.awaitSuffix(t, "Stopped.\n›")
	d.press(t, "but that\r")
	if in := d.nextMessage(t); in.Text != "but that" {
		t.Errorf("said %q", in.Text)
	}
	d.awaitText(t, "working")
	d.press(t, "\x03")
	d.nextMessage(t)
	d.press(t, "\x03") // the first message gets no answer
	if err := d.awaitEnd(t); !errors.Is(err, io.EOF) {
		t.Errorf("it ended with %v", err)
	}
	d.awaitText(t, "it goes on later")
}

func TestCtrlDAndQuitEndTheConversation(t *testing.T) {
	for _, keys := range []string{"\x04", "/quit\r", "/exit\r"} {
		d := startTerminal(t)
		d.press(t, keys)
		if err := d.awaitEnd(t); !errors.Is(err, io.EOF) {
			t.Errorf("%q: it ended with %v", keys, err)
		}
		d.waitUntil(t, "no prompt", func(onScreen string) bool { return !strings.Contains(onScreen, "›") })
	}
}

func TestUnknownCommandsAreRefused(t *testing.T) {
	d := startTerminalWith(t, console.Config{RefusalOf: func(text string) string {
		if text == "/stauts" {
			return "no such command"
		}
		return ""
	}})
	d.press(t, "/stauts\r")
	d.awaitSuffix(t, "› /stauts\nno such command\n›")
	d.press(t, "/status\r")
	if in := d.nextMessage(t); in.Text != "/status" {
		t.Errorf("said %q", in.Text)
	}
}

func TestPastedLinesAreOneMessageInTheHistory(t *testing.T) {
	d := startTerminalWith(t, console.Config{EarlierLines: []string{"long ago", "lately"}})
	d.press(t, "\x1b[200~line one\rline two\r\x1b[201~\r")
	in := d.nextMessage(t)
	if in.Text != "line one\nline two" {
		t.Errorf("said %q", in.Text)
	}
	d.sendAnswer(t, in.ID+"#reply", "yes")
	d.awaitSuffix(t, "yes\n›")
	d.press(t, "\x1b[A")
	d.awaitSuffix(t, "› line one\n  line two")
	d.press(t, "\x1b[A\x1b[A")
	d.awaitSuffix(t, "› lately")
	d.press(t, "\x1b[A")
	d.awaitSuffix(t, "› long ago")
	d.press(t, "\x1b[B\r")
	if in := d.nextMessage(t); in.Text != "lately" {
		t.Errorf("the arrows brought back %q", in.Text)
	}
}

func TestEditingKeys(t *testing.T) {
	for keys, want := range map[string]string{
		"bc\x1b[1~a\x1b[4~d\r":     "abcd",          // Home and End in tmux
		"bc\x1b[Ha\x1b[Fd\r":       "abcd",          // Home and End in other terminals
		"one three\x1b[1;5Dtwo \r": "one two three", // Ctrl and an arrow
		"你好吗\x7f\x1b[D世\r":         "你世好",
		"🙂👍x\x1b[D\x7f\r":          "🙂x",
		"gone\x15kept\r":           "kept",
		"first\x0asecond\r":        "first\nsecond", // Ctrl-J breaks the line
	} {
		d := startTerminal(t)
		d.press(t, keys)
		if in := d.nextMessage(t); in.Text != want {
			t.Errorf("%q gives %q, want %q", keys, in.Text, want)
		}
	}
}

func TestLongAnswersAreWrappedBetweenWords(t *testing.T) {
	d := startTerminal(t)
	d.press(t, "tell me\r")
	in := d.nextMessage(t)
	var words []string
	for i := range 1200 {
		words = append(words, "word"+strconv.Itoa(i))
	}
	said := strings.Join(words, " ")
	d.emit(in.ID, append(textEvents(0, said), bus.Event{Type: bus.TurnComplete})...)
	d.sendAnswer(t, in.ID+"#reply", said)
	// Before the answer is sent, its last lines are visible up to that word, above the same prompt.
	onScreen := d.waitUntil(t, "the whole answer", func(onScreen string) bool {
		return strings.HasSuffix(onScreen, "word1199\n›") && strings.Count(onScreen, "word") == len(words)
	})
	for line := range strings.Lines(onScreen) {
		for word := range strings.FieldsSeq(line) {
			if n, err := strconv.Atoi(strings.TrimPrefix(word, "word")); err == nil && words[n] != word {
				t.Fatalf("a word is broken in %q", line)
			}
		}
	}
}

// A table fits the terminal's width, and links are hyperlinks if the terminal supports them.
func TestTablesAndLinksFitTheTerminal(t *testing.T) {
	const said = "see [the page](https://a.example/x)\n\n| name | what it is |\n|---|---|\n| one | " +
		"a cell that is far too long for a terminal of eighty columns, so that it is broken between its words |"
	const link = "\x1b]8;;https://a.example/x"
	for _, c := range []struct {
		env   map[string]string
		links bool
	}{
		{map[string]string{"TERM": "xterm-256color"}, false},
		{map[string]string{"TERM": "xterm-kitty"}, true},
		{map[string]string{"TERM": "xterm-kitty", "TMUX": "/tmp/x"}, false},
		{map[string]string{"TERM": "xterm-kitty", "FORCE_HYPERLINK": "0"}, false},
		{map[string]string{"TERM": "tmux", "TMUX": "/tmp/x", "FORCE_HYPERLINK": "1"}, true},
		{map[string]string{"VTE_VERSION": "7600"}, true},
		{map[string]string{"VTE_VERSION": "4000"}, false},
		{map[string]string{"TERM_PROGRAM": "WezTerm"}, true},
	} {
		for _, name := range []string{"TERM", "TMUX", "STY", "FORCE_HYPERLINK", "VTE_VERSION", "TERM_PROGRAM", "WT_SESSION", "KONSOLE_VERSION", "DOMTERM"} {
			t.Setenv(name, c.env[name])
		}
		d := startTerminal(t)
		d.press(t, "tell me\r")
		in := d.nextMessage(t)
		d.emit(in.ID, append(textEvents(0, said), bus.Event{Type: bus.TurnComplete})...)
		d.sendAnswer(t, in.ID+"#reply", said)
		onScreen := d.awaitSuffix(t, "its words\n›")
		if !strings.Contains(onScreen, "name │ what it is\n─────┼──") || !strings.Contains(onScreen, "\n     │ is broken between its words") {
			t.Errorf("the table is\n%s", onScreen)
		}
		if got := strings.Contains(d.output.String(), link); got != c.links || strings.Contains(onScreen, "(https://a.example/x)") == c.links {
			t.Errorf("%v: a link is %v:\n%s", c.env, got, onScreen)
		}
		d.press(t, "\x04") // Ctrl-D
	}
}

// If a call needs approval, the question appears at the typed line.
func TestRequestsAreAnsweredWithALetter(t *testing.T) {
	request := func(id string) bus.Event {
		return bus.Event{Type: bus.Asked, Ask: &bus.Ask{ID: id, Kind: bus.AskApproval, Tool: "exec_shell"}}
	}
	for typed, want := range map[string]string{
		"y": "/approve one", "YES": "/approve one", "s": "/approve one session",
		"n": "/deny one", "no": "/deny one", "n not today ": "/deny one not today",
		"yes please": "yes please", "no idea": "no idea", "/approve one": "/approve one", "so what": "so what",
	} {
		d := startTerminal(t)
		d.emit("console:1", request("one"))
		d.awaitSuffix(t, "in this conversation\ny/n/s ›")
		d.press(t, typed+"\r")
		if in := d.nextMessage(t); in.Text != want {
			t.Errorf("%q said %q, want %q", typed, in.Text, want)
		}
	}
	d := startTerminal(t)
	d.emit("console:1", bus.Event{Type: bus.Asked, Ask: &bus.Ask{ID: "question", Kind: bus.AskQuestion}},
		bus.Event{Type: bus.Asked, Ask: &bus.Ask{ID: "elsewhere", Kind: bus.AskApproval, Tool: "message", Asked: []bus.Address{{Channel: "slack", Chat: "C1"}}}},
		request("one"), request("one"), request("two"), request("three"))
	d.awaitText(t, "exec_shell needs your approval (one)")
	d.press(t, "y\r")
	d.awaitText(t, "(two)")
	d.emit("console:1", bus.Event{Type: bus.AskResolved, Ask: &bus.Ask{ID: "two"}})
	d.awaitText(t, "(three)")
	d.press(t, "y\r") // the answer may have been meant for the second request
	d.awaitText(t, "somebody has already decided that request; the next one is three: answer again")
	d.press(t, "n\r")
	d.awaitSuffix(t, "n\n›")
	d.press(t, "y\r")
	var said []string
	for range 3 {
		said = append(said, d.nextMessage(t).Text)
	}
	if got := strings.Join(said, ", "); got != "/approve one, /deny three, y" {
		t.Errorf("said %s", got)
	}
}

// If a text's end is missed because its server died, the answer is still shown as one text.
func TestATextWhoseEndWasMissedIsShownWhole(t *testing.T) {
	d := startTerminal(t)
	d.press(t, "hello\r")
	in := d.nextMessage(t)
	d.emit(in.ID, bus.Event{Type: bus.TurnStart})
	d.emit(in.ID, textEvents(0, "one answer")[:2]...)
	d.awaitText(t, "one")
	d.emit(in.ID, bus.Event{Type: bus.TurnComplete})
	d.sendAnswer(t, in.ID+"#reply", "one answer")
	d.awaitSuffix(t, "› hello\none answer\n›")
}

// The line above shows the commands that a typed beginning may become, and Tab completes it.
func TestTabCompletesCommands(t *testing.T) {
	d := startTerminalWith(t, console.Config{Commands: []string{"status", "stop", "help"}})
	d.press(t, "/st")
	d.awaitSuffix(t, "/status · /stop\n› /st")
	d.press(t, "a")
	d.awaitSuffix(t, "/status\n› /sta")
	d.press(t, "\t")
	d.awaitSuffix(t, "› /status")
	d.press(t, "\r")
	if in := d.nextMessage(t); in.Text != "/status" {
		t.Errorf("said %q", in.Text)
	}
	d.press(t, "/HE\t\r")
	if in := d.nextMessage(t); in.Text != "/help" {
		t.Errorf("said %q", in.Text)
	}
	d.awaitText(t, "Keys here: Tab completes") // the help on keys, which only the terminal has
}

func TestCtrlRSearchesTypedLines(t *testing.T) {
	d := startTerminalWith(t, console.Config{EarlierLines: []string{"the pear and the apple", "a plum", "an Apple", "nothing"}})
	d.press(t, "half\x12apple")
	d.awaitSuffix(t, "› an Apple")
	d.awaitText(t, "search for “apple”")
	d.press(t, "\x12")
	d.awaitSuffix(t, "› the pear and the apple")
	d.press(t, "\x12")
	d.awaitText(t, "no match")
	d.press(t, "\x03") // ends the search, and the line is as before
	d.waitUntil(t, "the line as it was", func(onScreen string) bool { return strings.HasSuffix(onScreen, idleText+"\n› half") })
	d.press(t, "\x15\x12plum\r")
	d.awaitSuffix(t, "› a plum")
	d.press(t, " tree\r")
	if in := d.nextMessage(t); in.Text != "a plum tree" {
		t.Errorf("said %q", in.Text)
	}
}

func TestClearEmptiesTheScreen(t *testing.T) {
	for _, keys := range []string{"\x0c", "/clear\r"} {
		d := startTerminal(t)
		d.press(t, "hello\r")
		in := d.nextMessage(t)
		d.sendAnswer(t, in.ID+"#reply", "first answer")
		d.awaitText(t, "first answer")
		d.press(t, keys)
		rows := func() []string {
			screen := consoletest.NewTerminal(d.width, d.height)
			_, _ = screen.Write([]byte(d.output.String())) // writing to the emulator never fails
			return screen.Rows()
		}
		d.waitUntil(t, "an empty screen", func(string) bool { return rows()[1] == "›" && rows()[2] == "" })
		d.press(t, "again\r")
		if in := d.nextMessage(t); in.Text != "again" {
			t.Errorf("said %q", in.Text)
		}
	}
}
