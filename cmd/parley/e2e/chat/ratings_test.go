package chat

import (
	"strconv"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
)

// The bot keeps a thumb below an answer with the conversation until the person is forgotten.
func TestRatings(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	w.Serve()
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 1)
	answer := w.Telegram.Sent(2)[0].ID
	w.WaitBooked(strconv.Itoa(answer))
	w.Telegram.React(2, 2, answer, nil, []string{"👍"})
	w.Telegram.React(2, 3, answer, nil, []string{"👎"})
	sessions := func() string {
		out, stderr, code := w.Run("sessions", "main:telegram:2")
		if code != 0 {
			t.Fatalf("sessions: %s%s", out, stderr)
		}
		return out
	}
	parleytest.WaitFor(t, "the ratings", func() bool {
		out := sessions()
		return strings.Contains(out, "👍 from telegram:2 for the answer to telegram:") && strings.Contains(out, "👎 from telegram:3")
	})
	if _, stderr, code := w.Run("forget", "--user", "telegram:3", "--yes"); code != 0 {
		t.Fatal(stderr)
	}
	if out := sessions(); strings.Contains(out, "telegram:3") || !strings.Contains(out, "👍") {
		t.Errorf("after one is forgotten: %s", out)
	}
	if out, _, _ := w.Run("--json", "sessions", "main:telegram:2"); !strings.Contains(out, `{"kind":"rating",`) {
		t.Errorf("exported is %s", out)
	}
}
