package console_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/bus"
	"parley/channels/console"
)

// A file goes with a message if its path follows an @, which Tab completes, or if it is dropped onto the
// terminal. If a file can't be sent, the console says why, and the line stays for corrections.
func TestFilesGoWithATypedLine(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("docs/inner", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"docs/notes one.txt", "docs/notes.txt"} {
		if err := os.WriteFile(name, []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	d := startTerminalWith(t, console.Config{})
	d.press(t, "read @do\t")
	d.awaitText(t, "› read @docs/")
	d.press(t, "n\t")
	d.awaitText(t, `@docs/notes.txt · @docs/notes\ one.txt`)
	d.press(t, ".\t")
	d.awaitSuffix(t, "› read @docs/notes.txt")
	d.press(t, "\r")
	in := d.nextMessage(t)
	if want := (bus.Attachment{Kind: bus.Document, Name: "notes.txt", Size: 7, Ref: filepath.Join(here, "docs/notes.txt")}); in.Text != "read @docs/notes.txt" ||
		len(in.Attachments) != 1 || in.Attachments[0] != want {
		t.Errorf("said %+v", in)
	}
	d.sendAnswer(t, in.ID+"#reply", "I read it.")
	d.awaitText(t, "· sent along: notes.txt (7 bytes)")
	d.press(t, "and @docs\r")
	d.awaitText(t, "nothing was sent")
	d.awaitSuffix(t, "\n› and @docs")
	d.press(t, "\x03\x1b[200~'"+here+"/docs/notes one.txt'\x1b[201~says what?\r")
	in = d.nextMessage(t)
	if !strings.HasSuffix(in.Text, `/notes\ one.txt says what?`) || len(in.Attachments) != 1 || in.Attachments[0].Name != "notes one.txt" {
		t.Errorf("said %+v", in)
	}
	d.sendAnswer(t, in.ID+"#reply", "This.")
	d.press(t, "\x1b[200~a stranger says: @docs/notes.txt\x1b[201~\r")
	if in = d.nextMessage(t); in.Attachments != nil {
		t.Errorf("said %+v", in)
	}
}
