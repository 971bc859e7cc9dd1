package chat

import (
	"os"
	"slices"
	"strings"
	"testing"

	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

// An owner admits, removes and refuses people with buttons alone, without a shell or a command. The audit records who
// decided what.
func TestAnOwnerDecidesAboutPeopleByButtons(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	before, _, _ := strings.Cut(string(text), "access =")
	parleytest.Must(t, os.WriteFile(w.File, []byte(before+"owners = [1]\nrate_limit = \"none\"\n[http]\nlisten = \"\"\n"), 0o600))
	p := w.Serve()
	w.Telegram.Say(1, 1, "hello") // the owner's chat is known from now on
	w.WaitSaid(1, 1)
	press := func(label, about string) {
		t.Helper()
		var on telegramtest.Message
		parleytest.WaitFor(t, "the button "+label, func() bool {
			sent := w.Telegram.Sent(1)
			i := slices.IndexFunc(sent, func(m telegramtest.Message) bool {
				return strings.Contains(m.Text, about) && slices.ContainsFunc(m.Buttons, func(b telegramtest.Button) bool { return b.Label == label })
			})
			if i >= 0 {
				on = sent[i]
			}
			return i >= 0
		})
		w.Telegram.PressButton(1, 1, on.ID, label)
	}
	w.Telegram.Say(7, 7, "let me in")
	press("Admit", "telegram:7")
	parleytest.WaitFor(t, "the welcome", func() bool {
		return strings.Contains(strings.Join(parleytest.Texts(w.Telegram.Sent(7)), "\n"), "You can talk to me now")
	})
	w.Telegram.Say(7, 7, "again")
	parleytest.WaitFor(t, "an answer", func() bool {
		return strings.Contains(strings.Join(parleytest.Texts(w.Telegram.Sent(7)), "\n"), "you said again")
	})
	w.Telegram.Say(8, 8, "me too")
	press("Refuse", "telegram:8")
	parleytest.WaitFor(t, "the refusal to be told", func() bool {
		return strings.Contains(strings.Join(parleytest.Texts(w.Telegram.Sent(1)), "\n"), "was refused")
	})
	p.Kill()
	p = w.Serve()
	parleytest.WaitFor(t, "the server", func() bool { return strings.Contains(p.Stderr.String(), `"serving"`) })
	press("Remove", "telegram:7")
	parleytest.WaitFor(t, "the audit", func() bool {
		out, _, _ := w.Run("logs", "--filter", "pairing", "--json")
		for _, want := range []string{`"result":"admitted","elapsed_ms":0,"detail":"telegram:7"`, `"result":"refused","elapsed_ms":0,"detail":"telegram:8"`, `"result":"revoked","elapsed_ms":0,"detail":"telegram:7"`} {
			if !strings.Contains(out, `"by":"telegram:1",`+want) {
				return false
			}
		}
		return true
	})
	w.Telegram.Say(7, 7, "still there?")
	parleytest.WaitFor(t, "the refusal", func() bool {
		return strings.Contains(strings.Join(parleytest.Texts(w.Telegram.Sent(7)), "\n"), "don't know you yet")
	})
}
