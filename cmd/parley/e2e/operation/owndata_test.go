package operation

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
)

// A person can get a copy of everything they said, and can erase it, in the private chat with the bot. Nobody else
// loses anything.
func TestAPersonTakesAndErasesWhatTheySaid(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	p := w.Serve()
	const group = -7
	w.Telegram.Say(2, 2, "secret-two")
	w.WaitSaid(2, 1)
	w.Telegram.Say(3, 3, "secret-three")
	w.WaitSaid(3, 1)
	for n, said := range []string{"@parleybot shared-two", "@parleybot shared-three", "@parleybot /forget", "/export@parleybot"} {
		w.Telegram.Say(group, int64(2+n%2), said)
		w.WaitSaid(group, n+1)
	}
	if got := w.WaitSaid(group, 4); !strings.Contains(got[3], "only works in a private chat with me") {
		t.Errorf("in a group /export is answered %q", got[3])
	}

	w.Telegram.Say(2, 2, "/export")
	w.WaitSaid(2, 2)
	file := w.Telegram.Sent(2)[1].File
	if file == nil || !strings.HasSuffix(file.Name, ".jsonl") {
		t.Fatalf("/export brings %+v", w.Telegram.Sent(2)[1])
	}
	exported := string(file.Data)
	for l := range strings.Lines(exported) {
		var one struct{ Session, Kind, Turn string }
		if err := json.Unmarshal([]byte(l), &one); err != nil || one.Session == "" || one.Kind == "" {
			t.Errorf("a line is %s: %v", l, err)
		}
	}
	for word, want := range map[string]bool{"secret-two": true, "you said secret-two": true, "shared-two": true, "secret-three": false, "shared-three": false} {
		if strings.Contains(exported, word) != want {
			t.Errorf("%q is in the file: %t\n%s", word, !want, exported)
		}
	}

	w.Telegram.Say(2, 2, "/forget yes")
	if got := w.WaitSaid(2, 3)[2]; !strings.Contains(got, "/forget first") {
		t.Errorf("without the question it is answered %q", got)
	}
	w.Telegram.Say(2, 2, "/forget")
	if got := w.WaitSaid(2, 4)[3]; !strings.Contains(got, "your own conversations, with their files and memory: 1") || !strings.Contains(got, "your part of conversations that you share with others: 1") {
		t.Errorf("it would erase %q", got)
	}
	if n := len(parleytest.FilesWith(t, w.Home, "secret-two")); n == 0 {
		t.Error("it is erased already")
	}
	w.Telegram.Say(2, 2, "/forget yes")
	if got := w.WaitSaid(2, 5)[4]; !strings.Contains(got, "I've erased it") || !strings.Contains(got, "existing backups") {
		t.Errorf("it is answered %q", got)
	}
	parleytest.WaitFor(t, "the rewriting of the database", func() bool { return len(parleytest.FilesWith(t, w.Home, "secret-two")) == 0 })
	for word, want := range map[string]bool{"secret-two": false, "shared-two": false, "secret-three": true, "shared-three": true} {
		if found := parleytest.FilesWith(t, w.Home, word); (len(found) > 0) != want {
			t.Errorf("%q is in %v", word, found)
		}
	}
	w.Telegram.Say(2, 2, "who are you?")
	w.WaitSaid(2, 6)
	p.Stop()
	if n := w.Count("sessions.db", "SELECT count(*) FROM notes WHERE subject IN ('own_data', 'forget_asked')"); n != 0 {
		t.Errorf("%d requests are left", n)
	}
	for chat, n := range map[int64]int{2: 6, 3: 1, group: 4} {
		if got := w.Telegram.Sent(chat); len(got) != n {
			t.Errorf("chat %d has %d messages, want %d: %s", chat, len(got), n, fmt.Sprint(parleytest.Texts(got)))
		}
	}
}
