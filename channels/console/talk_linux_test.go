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

// A seat is a console on a real terminal with the keyboard of the person who sits there.
type seat struct {
	*talk
	keyboard *os.File
	shown    *testlog.Buffer

	width, height int
}

// sit opens a terminal and runs a console on it.
func sit(t *testing.T) *seat {
	t.Helper()
	return sitAt(t, console.Config{})
}

// sitAt is sit with a configuration of its own.
func sitAt(t *testing.T, cfg console.Config) *seat {
	t.Helper()
	return sitBefore(t, cfg, 80, 24, io.Discard)
}

// sitBefore is sitAt at a terminal of that size; what it shows is also written to beside.
func sitBefore(t *testing.T, cfg console.Config, width, height int, beside io.Writer) *seat {
	t.Helper()
	front, back := openTerminal(t)
	d := &seat{keyboard: front, shown: new(testlog.Buffer), width: width, height: height}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.MultiWriter(d.shown, beside), front) // ends in an error when the terminal is closed
	}()
	t.Cleanup(func() {
		_ = back.Close() // nothing depends on it anymore
		_ = front.Close()
		<-read
	})
	resize(t, front, uint16(width), uint16(height))
	cfg.In, cfg.Out, cfg.Hint = back, back, idle
	d.talk = begin(t, cfg)
	d.see(t, "›")
	return d
}

// openTerminal opens a terminal: the keyboard and the screen in front of it, and what a
// program reads and writes behind it. A test that closes them is to close both.
func openTerminal(t testing.TB) (front, back *os.File) {
	t.Helper()
	front, back, err := consoletest.OpenPTY(0, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	return front, back
}

// resize tells the terminal its size.
func resize(t *testing.T, f *os.File, width, height uint16) {
	t.Helper()
	if err := consoletest.ResizePTY(f, int(width), int(height)); err != nil {
		t.Fatal(err)
	}
}

func (d *seat) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := d.keyboard.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// idle stands above the line that is typed while nothing goes on.
const idle = "(nothing goes on)"

// onScreen is what is to be seen on the terminal, without the line that says that nothing goes on.
func (d *seat) onScreen() string {
	return strings.Replace(consoletest.Seen(d.shown.String(), d.width, d.height), "\n"+idle+"\n", "\n", 1)
}

// see waits until something is to be seen, and gives all that is.
func (d *seat) see(t *testing.T, what string) string {
	t.Helper()
	return d.until(t, what, func(onScreen string) bool { return strings.Contains(onScreen, what) })
}

// ends waits until what is to be seen ends so.
func (d *seat) ends(t *testing.T, what string) string {
	t.Helper()
	return d.until(t, what, func(onScreen string) bool { return strings.HasSuffix(onScreen, what) })
}

func (d *seat) until(t *testing.T, what string, holds func(onScreen string) bool) string {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		onScreen := d.onScreen()
		if holds(onScreen) {
			return onScreen
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %q in\n%s\nwritten %q", what, onScreen, d.shown.String())
		}
	}
}

func TestTextIsShownAsItComesAndOnce(t *testing.T) {
	d := sit(t)
	d.press(t, "hello\r")
	in := d.next(t)
	if in.Text != "hello" {
		t.Errorf("said %q", in.Text)
	}
	d.see(t, "› hello\n")
	d.see(t, "working")
	d.emit(in.ID, bus.Event{Type: bus.TurnStart})
	d.emit(in.ID, block(7, "user", "as was said")...)
	d.emit(in.ID, bus.Event{Type: bus.BlockDelta, Kind: "thinking", Delta: "hmm"})
	d.see(t, "hmm")
	d.emit(in.ID, block(1, "tool_use", `{"path":`, `"notes.txt"}`)...)
	d.emit(in.ID, bus.Event{Type: bus.BlockStop, Kind: "thinking"})
	d.emit(in.ID, bus.Event{Type: bus.ToolStart, Tool: "read_file", Call: "c1", Delta: "notes.txt"})
	d.see(t, "· read_file notes.txt …\n… working; Ctrl-C stops it\n›")
	d.emit(in.ID, block(3, "tool_result", `{"content":"a pear"}`)...)
	d.emit(in.ID, bus.Event{Type: bus.ToolEnd, Tool: "read_file", Call: "c1"})
	d.see(t, "· read_file notes.txt … ok\n")
	d.emit(in.ID, bus.Event{Type: bus.Compacted, Compaction: &bus.Compaction{Before: 7000, After: 2000}})
	d.see(t, "· the model now sees less history: about 2000 tokens instead of 7000\n")
	d.emit(in.ID, text(4, "It **says** \x1b]0;owned\a", "pear.\n\nAnd ")[:3]...)
	d.see(t, "It says ]0;ownedpear.\n\nAnd\n… working; Ctrl-C stops it\n›")
	d.emit(in.ID, text(4, "more.")[1:]...)
	d.emit(in.ID, bus.Event{Type: bus.TurnComplete})
	d.answer(t, in.ID+"#reply", "It **says** \x1b]0;owned\apear.\n\nAnd more.\n\n_(Stopped.)_")
	onScreen := d.ends(t, "And more.\n(Stopped.)\n›")
	if n := strings.Count(onScreen, "pear"); n != 1 {
		t.Errorf("the text is shown %d times:\n%s", n, onScreen)
	}
	shown := d.shown.String()
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

// The reply to a command may come before the news of what the command has done.
func TestTheNewsOfACommandMayComeAfterItsReply(t *testing.T) {
	d := sit(t)
	d.press(t, "/compact\r")
	in := d.next(t)
	d.answer(t, in.ID+"#reply", "summed up")
	d.ends(t, "summed up\n›")
	d.emit(in.ID, bus.Event{Type: bus.Compacted, Compaction: &bus.Compaction{Before: 7000, After: 2000}})
	d.ends(t, "about 2000 tokens instead of 7000\n›")
}

func TestAnAnswerWithoutNewsIsPrinted(t *testing.T) {
	d := sit(t)
	d.press(t, "/usage\r")
	in := d.next(t)
	d.answer(t, in.ID+"#reply", "this much")
	d.ends(t, "› /usage\nthis much\n›")
	d.press(t, "hello\r")
	in = d.next(t)
	d.answer(t, in.ID+"#reply", "whole") // its news are late
	d.see(t, "whole\n")
	d.emit(in.ID, append(text(0, "whole"), bus.Event{Type: bus.TurnComplete})...)
	d.emit("console:next", text(0, "later")...)
	if onScreen := d.see(t, "later"); strings.Count(onScreen, "whole") != 1 {
		t.Errorf("shown twice:\n%s", onScreen)
	}
}

func TestAnAnswerThatBreaksOffBeginsAgain(t *testing.T) {
	d := sit(t)
	d.press(t, "hello\r")
	in := d.next(t)
	d.emit(in.ID, bus.Event{Type: bus.TurnStart})
	d.emit(in.ID, text(0, "first half")[:2]...)
	d.see(t, "first half")
	d.emit(in.ID, bus.Event{Type: bus.BlockReset, Block: 0})
	d.emit(in.ID, text(0, "all of it")...)
	d.emit(in.ID, bus.Event{Type: bus.TurnComplete})
	d.answer(t, in.ID+"#reply", "all of it")
	d.ends(t, "› hello\nfirst half\n· the answer was cut off and is starting over\nall of it\n›")
}

func TestWhatIsTypedMeanwhileStaysApartAndIsSaid(t *testing.T) {
	d := sit(t)
	d.press(t, "one\r")
	first := d.next(t)
	d.emit(first.ID, bus.Event{Type: bus.TurnStart})
	d.emit(first.ID, text(0, "wor")[:2]...)
	d.see(t, "wor\n… working; Ctrl-C stops it\n›")
	d.press(t, "two\r")
	if second := d.next(t); second.Text != "two" || second.ID == first.ID {
		t.Errorf("said %+v", second)
	}
	d.press(t, "thr")
	d.see(t, "wor\n… working; Ctrl-C stops it\n› thr")
	d.emit(first.ID, text(0, "king on")[1:]...)
	d.ends(t, "working on\n… working; Ctrl-C stops it\n› thr")
	d.emit(first.ID, bus.Event{Type: bus.TurnComplete})
	d.answer(t, first.ID+"#reply", "working on\n\ndone with both")
	d.ends(t, "› one\n› two\nworking on\ndone with both\n› thr")
	d.press(t, "ee\r")
	if third := d.next(t); third.Text != "three" {
		t.Errorf("said %q", third.Text)
	}
}

func TestCtrlCStopsTheTurnAndThenTheTalk(t *testing.T) {
	d := sitAt(t, console.Config{Leaving: "it goes on later"})
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
	d.see(t, "on and on\n· stopped here")
	d.answer(t, stop.ID+"#reply", "Stopped.")
	d.ends(t, "Stopped.\n›")
	d.press(t, "not this")
	d.see(t, "not this")
	d.press(t, "\x03") // empties the line
	d.ends(t, "Stopped.\n›")
	d.press(t, "but that\r")
	if in := d.next(t); in.Text != "but that" {
		t.Errorf("said %q", in.Text)
	}
	d.see(t, "working")
	d.press(t, "\x03")
	d.next(t)
	d.press(t, "\x03") // nobody answers the first
	if err := d.end(t); !errors.Is(err, io.EOF) {
		t.Errorf("it ended with %v", err)
	}
	d.see(t, "it goes on later")
}

func TestCtrlDEndsTheTalkAndSoDoesQuit(t *testing.T) {
	for _, keys := range []string{"\x04", "/quit\r", "/exit\r"} {
		d := sit(t)
		d.press(t, keys)
		if err := d.end(t); !errors.Is(err, io.EOF) {
			t.Errorf("%q: it ended with %v", keys, err)
		}
		d.until(t, "no prompt", func(onScreen string) bool { return !strings.Contains(onScreen, "›") })
	}
}

func TestUnknownCommandsAreRefused(t *testing.T) {
	d := sitAt(t, console.Config{Refuse: func(text string) string {
		if text == "/stauts" {
			return "no such command"
		}
		return ""
	}})
	d.press(t, "/stauts\r")
	d.ends(t, "› /stauts\nno such command\n›")
	d.press(t, "/status\r")
	if in := d.next(t); in.Text != "/status" {
		t.Errorf("said %q", in.Text)
	}
}

func TestPastedLinesAreOneMessageAndHistoryComesBack(t *testing.T) {
	d := sitAt(t, console.Config{Earlier: []string{"long ago", "lately"}})
	d.press(t, "\x1b[200~line one\rline two\r\x1b[201~\r")
	in := d.next(t)
	if in.Text != "line one\nline two" {
		t.Errorf("said %q", in.Text)
	}
	d.answer(t, in.ID+"#reply", "yes")
	d.ends(t, "yes\n›")
	d.press(t, "\x1b[A")
	d.ends(t, "› line one\n  line two")
	d.press(t, "\x1b[A\x1b[A")
	d.ends(t, "› lately")
	d.press(t, "\x1b[A")
	d.ends(t, "› long ago")
	d.press(t, "\x1b[B\r")
	if in := d.next(t); in.Text != "lately" {
		t.Errorf("the arrows brought back %q", in.Text)
	}
}

func TestKeysOfTheLine(t *testing.T) {
	for keys, want := range map[string]string{
		"bc\x1b[1~a\x1b[4~d\r":     "abcd",          // Home and End as tmux sends them
		"bc\x1b[Ha\x1b[Fd\r":       "abcd",          // and others
		"one three\x1b[1;5Dtwo \r": "one two three", // Ctrl and an arrow
		"你好吗\x7f\x1b[D世\r":         "你世好",
		"🙂👍x\x1b[D\x7f\r":          "🙂x",
		"gone\x15kept\r":           "kept",
		"first\x0asecond\r":        "first\nsecond", // Ctrl-J breaks the line
	} {
		d := sit(t)
		d.press(t, keys)
		if in := d.next(t); in.Text != want {
			t.Errorf("%q gives %q, want %q", keys, in.Text, want)
		}
	}
}

func TestLongAnswersBreakBetweenWordsAndAreWhole(t *testing.T) {
	d := sit(t)
	d.press(t, "tell me\r")
	in := d.next(t)
	var words []string
	for i := range 1200 {
		words = append(words, "word"+strconv.Itoa(i))
	}
	said := strings.Join(words, " ")
	d.emit(in.ID, append(text(0, said), bus.Event{Type: bus.TurnComplete})...)
	d.answer(t, in.ID+"#reply", said)
	// Before its end the answer's last lines are shown to that word too, above the same prompt.
	onScreen := d.until(t, "the whole answer", func(onScreen string) bool {
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

// A table fits the terminal, and links are links where the terminal makes them.
func TestAnswersAreDrawnForTheTerminal(t *testing.T) {
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
		d := sit(t)
		d.press(t, "tell me\r")
		in := d.next(t)
		d.emit(in.ID, append(text(0, said), bus.Event{Type: bus.TurnComplete})...)
		d.answer(t, in.ID+"#reply", said)
		onScreen := d.ends(t, "its words\n›")
		if !strings.Contains(onScreen, "name │ what it is\n─────┼──") || !strings.Contains(onScreen, "\n     │ is broken between its words") {
			t.Errorf("the table is\n%s", onScreen)
		}
		if got := strings.Contains(d.shown.String(), link); got != c.links || strings.Contains(onScreen, "(https://a.example/x)") == c.links {
			t.Errorf("%v: a link is %v:\n%s", c.env, got, onScreen)
		}
		d.press(t, "\x04") // Ctrl-D
	}
}

// A call that needs approval is asked about at the line that is typed.
func TestRequestsAreAnsweredWithALetter(t *testing.T) {
	request := func(id string) bus.Event {
		return bus.Event{Type: bus.Asked, Ask: &bus.Ask{ID: id, Kind: bus.AskApproval, Tool: "exec_shell"}}
	}
	for typed, want := range map[string]string{
		"y": "/approve one", "YES": "/approve one", "s": "/approve one session",
		"n": "/deny one", "no": "/deny one", "n not today ": "/deny one not today",
		"yes please": "yes please", "no idea": "no idea", "/approve one": "/approve one", "so what": "so what",
	} {
		d := sit(t)
		d.emit("console:1", request("one"))
		d.ends(t, "in this conversation\ny/n/s ›")
		d.press(t, typed+"\r")
		if in := d.next(t); in.Text != want {
			t.Errorf("%q said %q, want %q", typed, in.Text, want)
		}
	}
	d := sit(t)
	d.emit("console:1", bus.Event{Type: bus.Asked, Ask: &bus.Ask{ID: "question", Kind: bus.AskQuestion}},
		bus.Event{Type: bus.Asked, Ask: &bus.Ask{ID: "elsewhere", Kind: bus.AskApproval, Tool: "message", Asked: []bus.Address{{Channel: "slack", Chat: "C1"}}}},
		request("one"), request("one"), request("two"), request("three"))
	d.see(t, "exec_shell needs your approval (one)")
	d.press(t, "y\r")
	d.see(t, "(two)")
	d.emit("console:1", bus.Event{Type: bus.AskResolved, Ask: &bus.Ask{ID: "two"}})
	d.see(t, "(three)")
	d.press(t, "y\r") // it may have been meant for the second
	d.see(t, "somebody has already decided that request; the next one is three: answer again")
	d.press(t, "n\r")
	d.ends(t, "n\n›")
	d.press(t, "y\r")
	var said []string
	for range 3 {
		said = append(said, d.next(t).Text)
	}
	if got := strings.Join(said, ", "); got != "/approve one, /deny three, y" {
		t.Errorf("said %s", got)
	}
}

// The end of a text is missed where its server dies: the answer is one text all the same.
func TestATextWhoseEndWasMissedIsShownAtOnce(t *testing.T) {
	d := sit(t)
	d.press(t, "hello\r")
	in := d.next(t)
	d.emit(in.ID, bus.Event{Type: bus.TurnStart})
	d.emit(in.ID, text(0, "one answer")[:2]...)
	d.see(t, "one")
	d.emit(in.ID, bus.Event{Type: bus.TurnComplete})
	d.answer(t, in.ID+"#reply", "one answer")
	d.ends(t, "› hello\none answer\n›")
}

// The line above shows which commands a beginning may become, and Tab completes it.
func TestTabCompletesCommands(t *testing.T) {
	d := sitAt(t, console.Config{Commands: []string{"status", "stop", "help"}})
	d.press(t, "/st")
	d.ends(t, "/status · /stop\n› /st")
	d.press(t, "a")
	d.ends(t, "/status\n› /sta")
	d.press(t, "\t")
	d.ends(t, "› /status")
	d.press(t, "\r")
	if in := d.next(t); in.Text != "/status" {
		t.Errorf("said %q", in.Text)
	}
	d.press(t, "/HE\t\r")
	if in := d.next(t); in.Text != "/help" {
		t.Errorf("said %q", in.Text)
	}
	d.see(t, "Keys here: Tab completes") // the keys, which only the terminal knows
}

func TestCtrlRSearchesWhatWasTyped(t *testing.T) {
	d := sitAt(t, console.Config{Earlier: []string{"the pear and the apple", "a plum", "an Apple", "nothing"}})
	d.press(t, "half\x12apple")
	d.ends(t, "› an Apple")
	d.see(t, "search for “apple”")
	d.press(t, "\x12")
	d.ends(t, "› the pear and the apple")
	d.press(t, "\x12")
	d.see(t, "no match")
	d.press(t, "\x03") // leaves the search, and the line is as it was
	d.until(t, "the line as it was", func(onScreen string) bool { return strings.HasSuffix(onScreen, idle+"\n› half") })
	d.press(t, "\x15\x12plum\r")
	d.ends(t, "› a plum")
	d.press(t, " tree\r")
	if in := d.next(t); in.Text != "a plum tree" {
		t.Errorf("said %q", in.Text)
	}
}

func TestClearEmptiesTheScreen(t *testing.T) {
	for _, keys := range []string{"\x0c", "/clear\r"} {
		d := sit(t)
		d.press(t, "hello\r")
		in := d.next(t)
		d.answer(t, in.ID+"#reply", "first answer")
		d.see(t, "first answer")
		d.press(t, keys)
		rows := func() []string {
			screen := consoletest.NewTerminal(d.width, d.height)
			_, _ = screen.Write([]byte(d.shown.String())) // an emulator takes all
			return screen.Rows()
		}
		d.until(t, "an empty screen", func(string) bool { return rows()[1] == "›" && rows()[2] == "" })
		d.press(t, "again\r")
		if in := d.next(t); in.Text != "again" {
			t.Errorf("said %q", in.Text)
		}
	}
}
