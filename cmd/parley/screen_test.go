package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"parley/channels/console"
	"parley/cmd/parley/parleytest"
)

// evil is what somebody could say to whoever reads it in a terminal: a title, a
// colour, a line drawn over, C1 controls, and text turned round.
const evil = "a\x1b]0;owned\a\x1b[31mred\rover\u009b2Jclear\u202ereversed\u2066isolated\x7f"

func TestScreen(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		evil:                        "a]0;owned[31mredover2Jclearreversedisolated",
		"two\nlines\tand ä ☺ 中 👩‍💻": "two\nlines\tand ä ☺ 中 👩‍💻",
		"\xff\x9b[2J":               "\uFFFD\uFFFD[2J",
	} {
		for size := 1; size < 9; size++ { // however it is cut
			var out bytes.Buffer
			s := &screen{to: &out}
			for rest := []byte(given); len(rest) > 0; {
				n, err := s.Write(rest[:min(size, len(rest))])
				must(t, err)
				rest = rest[n:]
			}
			if out.String() != want {
				t.Errorf("%q in pieces of %d shows %q, want %q", given, size, out.String(), want)
			}
		}
	}
	raw, err := json.MarshalIndent(map[string]string{"text": evil}, "", "\t")
	must(t, err)
	var out bytes.Buffer
	if _, err := (&screen{to: &out, json: true}).Write(raw); err != nil {
		t.Fatal(err)
	}
	var back map[string]string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back["text"] != evil || strings.ContainsFunc(out.String(), console.Obeyed) {
		t.Errorf("as JSON it is %q, %v", out.String(), err)
	}
	if got := cell("a\nb\tc" + evil); strings.ContainsAny(got, "\n\t\x1b") || !strings.HasPrefix(got, "a b ca]0;") {
		t.Errorf("as a cell it is %q", got)
	}
}

// What goes to programs is not touched.
func TestWhichCommandsAreScreened(t *testing.T) {
	t.Parallel()
	for command, c := range map[string]struct {
		cli      cli
		out, err bool
	}{
		"status":                 {cli{}, true, true},
		"sessions <key>":         {cli{}, true, true},
		"dead-letters list":      {cli{}, true, true},
		"chats":                  {cli{}, true, true},
		"doctor":                 {cli{JSON: true}, false, true},
		"backup <file>":          {cli{Backup: backupCmd{File: "-"}}, false, true},
		"backup <file> (a file)": {cli{Backup: backupCmd{File: "x"}}, true, true},
		"serve":                  {cli{}, false, false},
		"chat":                   {cli{}, false, false},
	} {
		tty := c.cli.screened(command, terminal{in: os.Stdin, out: io.Discard, err: io.Discard})
		_, out := tty.out.(*screen)
		_, err := tty.err.(*screen)
		if out != c.out || err != c.err {
			t.Errorf("%s: output is screened %v and errors %v, want %v and %v", command, out, err, c.out, c.err)
		}
	}
}

func TestWhatOthersSaidIsShownAndNotObeyed(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	w.Serve()
	w.Telegram.Say(2, 2, evil+"\n2026-01-01 00:00:00  parley: forged")
	w.Said(2, 1)
	for _, args := range [][]string{{"sessions", "main:telegram:2"}, {"sessions"}, {"chats"}, {"status"}, {"dead-letters"}} {
		out, err := w.Command(args...).CombinedOutput()
		if err != nil || strings.ContainsFunc(string(out), console.Obeyed) {
			t.Errorf("%q prints %q, %v", args, out, err)
		}
	}
	out, err := w.Command("sessions", "main:telegram:2").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "reversed") || strings.Contains(string(out), "\n2026-01-01 00:00:00  parley: forged") {
		t.Errorf("a line can be forged: %q, %v", out, err)
	}
	// For programs it is what was said, to the character.
	raw, err := w.Command("--json", "sessions", "main:telegram:2").Output()
	must(t, err)
	said, err := json.Marshal("over\u009b2Jclear\u202ereversed")
	must(t, err)
	if !strings.Contains(string(raw), strings.Trim(string(said), `"`)) {
		t.Errorf("as JSON it is %s", raw)
	}
}
