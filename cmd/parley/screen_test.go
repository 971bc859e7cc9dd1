package main

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"parley/channels/console"
	"parley/cmd/parley/parleytest"
	"parley/cmd/parley/terminal"
)

// evil is a text that attacks a terminal: it sets a title and a color, draws over a line, uses C1 controls, and
// reverses text.
const evil = "a\x1b]0;owned\a\x1b[31mred\rover\u009b2Jclear\u202ereversed\u2066isolated\x7f"

// Output for programs is not screened.
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
		"doctor":                 {cli{globalFlags: globalFlags{JSON: true}}, false, true},
		"backup <file>":          {cli{Backup: backupCmd{File: "-"}}, false, true},
		"backup <file> (a file)": {cli{Backup: backupCmd{File: "x"}}, true, true},
		"serve":                  {cli{}, false, false},
		"chat":                   {cli{}, false, false},
	} {
		tty := c.cli.sanitizedTerminal(command, terminal.Terminal{In: os.Stdin, Out: io.Discard, Err: io.Discard})
		_, out := tty.Out.(*terminal.Screen)
		_, err := tty.Err.(*terminal.Screen)
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
	w.WaitSaid(2, 1)
	for _, args := range [][]string{{"sessions", "main:telegram:2"}, {"sessions"}, {"chats"}, {"status"}, {"dead-letters"}} {
		out, err := w.Command(args...).CombinedOutput()
		if err != nil || strings.ContainsFunc(string(out), console.IsTerminalControl) {
			t.Errorf("%q prints %q, %v", args, out, err)
		}
	}
	out, err := w.Command("sessions", "main:telegram:2").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "reversed") || strings.Contains(string(out), "\n2026-01-01 00:00:00  parley: forged") {
		t.Errorf("a line can be forged: %q, %v", out, err)
	}
	// Programs get exactly what was said.
	raw, err := w.Command("--json", "sessions", "main:telegram:2").Output()
	parleytest.Must(t, err)
	said, err := json.Marshal("over\u009b2Jclear\u202ereversed")
	parleytest.Must(t, err)
	if !strings.Contains(string(raw), strings.Trim(string(said), `"`)) {
		t.Errorf("as JSON it is %s", raw)
	}
}

// In a terminal, commands print texts of other people without escape sequences and without direction marks.
func TestCommandsPrintNoEscapeSequences(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	p := w.Serve()
	w.Telegram.Say(2, 2, "safe\x1b]0;title\x07\x1b[2J\u202eevil")
	w.WaitSaid(2, 1)
	out, errs, code := w.Run("sessions", "main:telegram:2")
	if code != exitDone || !strings.Contains(out, "safe") || strings.ContainsAny(out, "\x1b\x07\u202e") {
		t.Errorf("exit code %d, %q %s", code, out, errs)
	}
	p.Kill()
}
