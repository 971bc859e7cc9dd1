package terminal

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels/console/consoletest"
)

// Without a terminal, a line now and then reports the progress, and quick work writes none.
func TestBarWritesPlainLinesWhereNoTerminalIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		b := NewBar(&Screen{To: &out})
		b.Show(0, "logs", "")
		b.Show(0.2, "book", "1 of 5")
		if out.Len() > 0 {
			t.Fatalf("at once it writes %q", &out)
		}
		for n := range 100 { // 25 s
			time.Sleep(250 * time.Millisecond)
			b.Show(float64(n+1)/100, "messages", "many\x1b[2J")
		}
		b.Clear()
		if got, want := out.String(), "40 %, messages: many[2J\n80 %, messages: many[2J\n"; got != want {
			t.Errorf("it has written %q, want %q", got, want)
		}
		if _, err := b.Write([]byte("done\n")); err != nil || !strings.HasSuffix(out.String(), "\ndone\n") {
			t.Errorf("below that it wrote %q, %v", &out, err)
		}
	})
}

// On a terminal, even behind a Screen, the bar is drawn at each step and doesn't disturb lines written in between.
func TestBarIsDrawnOnATerminal(t *testing.T) {
	t.Parallel()
	front, back, err := consoletest.OpenPTY(80, 24)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	defer front.Close()
	defer back.Close()
	if !IsTerminal(&Screen{To: back}) || IsTerminal(&Screen{To: &bytes.Buffer{}}) {
		t.Error("it isn't known what a terminal is")
	}
	b := NewBar(&Screen{To: back})
	b.Show(0.5, "logs", "12 of 24\x1b[2J")
	b.Show(2, "book", "")
	if _, err := b.Write([]byte("a line\x1b[2J\n")); err != nil {
		t.Fatal(err)
	}
	b.Show(-1, "messages", "")
	b.Clear()
	b.Clear()
	if _, err := back.WriteString("end"); err != nil {
		t.Fatal(err)
	}
	var read strings.Builder
	for piece := make([]byte, 512); !strings.HasSuffix(read.String(), "end"); {
		n, err := front.Read(piece)
		if err != nil {
			t.Fatal(err)
		}
		read.Write(piece[:n])
	}
	const clear = "\r\x1b[K"
	want := clear + strings.Repeat("█", 12) + strings.Repeat("░", 12) + " logs: 12 of 24[2J" +
		clear + strings.Repeat("█", 24) + " book" +
		clear + "a line[2J\r\n" +
		clear + strings.Repeat("░", 24) + " messages" + clear + "end"
	if read.String() != want {
		t.Errorf("the terminal got\n%q, want\n%q", read.String(), want)
	}
}
