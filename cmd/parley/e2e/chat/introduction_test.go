package chat

import (
	"os"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
)

// The bot introduces itself to each person once, even through kills and restarts. It does not introduce itself to its
// owner, nor to anybody if the configuration says so.
func TestPeopleAreToldWhatTheyTalkTo(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "[retention]\ndays = 30\n")
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(string(text), `introduce = "never"`, `about = "Ask *IT*."`, 1)), 0o600))
	p := w.Serve()
	w.Telegram.Say(parleytest.Owner, parleytest.Owner, "hello")
	w.WaitSaid(parleytest.Owner, 1)
	w.Telegram.Say(2, 2, "hello")
	said := w.WaitSaid(2, 2)
	for _, want := range []string{"not from a person", "run by", "127.0.0.1:", "30 days", "Ask IT."} {
		if !strings.Contains(said[0], want) {
			t.Errorf("at the first contact they are told %q, and not of %q", said[0], want)
		}
	}
	if said[1] != "you said hello" {
		t.Errorf("then they are told %q", said[1])
	}
	parleytest.WaitFor(t, "all to be sent", func() bool { return w.Count("sessions.db", "SELECT count(*) FROM message") == 0 })
	p.Kill()
	p = w.Serve()
	w.Telegram.Say(2, 2, "again")
	w.WaitSaid(2, 3)
	p.Stop()
	if got := w.WaitSaid(2, 3); len(got) != 3 || got[2] != "you said again" {
		t.Errorf("after the restart there is %q", got)
	}
	if got := w.WaitSaid(parleytest.Owner, 1); len(got) != 1 {
		t.Errorf("the owner was told %q", got)
	}
	if _, errs, code := w.Run("forget", "--user", "telegram:2", "--yes"); code != 0 {
		t.Fatalf("forget: %d %s", code, errs)
	}
	if n := w.Count("sessions.db", "SELECT count(*) FROM notes WHERE subject = 'introduced'"); n != 0 {
		t.Errorf("%d people are known after they were forgotten", n)
	}
}
