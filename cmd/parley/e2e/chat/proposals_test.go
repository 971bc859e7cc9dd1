package chat

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

// proposes contains the settings that let agents propose memories.
const proposes = "[recall]\npropose = true\n"

// A finder is a model that echoes what people say. If it is asked what is worth remembering, it answers with facts.
type finder struct {
	facts string
	asked atomic.Int64
	shown atomic.Int64 // how often a turn's prompt said that somebody likes tea
}

func (f *finder) model(r agenttest.Request) agenttest.Response {
	body := string(r.Body)
	if strings.Contains(body, "You look for what is worth remembering") {
		f.asked.Add(1)
		return agenttest.Reply(f.facts)
	}
	if strings.Contains(body, "Likes tea.") {
		f.shown.Add(1)
	}
	return agenttest.Reply("you said " + r.Said())
}

// converse has a long conversation in a chat and ends it with /new. before is the number of messages that the bot had
// sent there; converse returns the new number.
func converse(w *parleytest.World, chat, user int64, before int) int {
	w.T.Helper()
	mention := ""
	if chat < 0 {
		mention = "@parleybot "
	}
	for i := range 5 {
		w.Telegram.Say(chat, user, fmt.Sprint(mention, "words ", i))
		before++
		w.WaitSaid(chat, before)
	}
	if chat < 0 {
		w.Telegram.Say(chat, user, "/new@parleybot")
	} else {
		w.Telegram.Say(chat, user, "/new")
	}
	w.WaitSaid(chat, before+1)
	return before + 1
}

// waitShown waits until a message of the bot contains a text, and returns the message.
func waitShown(w *parleytest.World, chat int64, text string) (shown telegramtest.Message) {
	w.T.Helper()
	parleytest.WaitFor(w.T, text, func() bool {
		for _, m := range w.Telegram.Sent(chat) {
			if strings.Contains(m.Text, text) {
				shown = m
				return true
			}
		}
		return false
	})
	return shown
}

// The bot shows a person what a model finds worth remembering, with buttons. The next conversation knows what the
// person keeps, and what the person refuses is not proposed again. Nothing is proposed in groups. Forgetting the person
// erases all of it.
func TestAnAgentProposesWhatToRemember(t *testing.T) {
	t.Parallel()
	f := &finder{facts: "person: Likes tea.\nperson: Lives in Xyzzy.\nagent: The office is closed."}
	w := parleytest.New(t, f.model, proposes)
	p := w.Serve()
	const group = -10099
	converse(w, group, 2, 0)
	n := converse(w, 2, 2, 0)
	told := waitShown(w, 2, "Lives in Xyzzy.")
	if strings.Contains(told.Text, "office") || len(told.Buttons) != 4 {
		t.Errorf("who owns nothing is told %q, with %v", told.Text, told.Buttons)
	}
	if f.asked.Load() != 1 {
		t.Errorf("the model was asked %d times", f.asked.Load())
	}
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, n+2)
	if f.shown.Load() != 0 {
		t.Error("the model is shown what nobody has kept")
	}
	w.Telegram.PressButton(2, 2, told.ID, "Keep 1")
	if next := waitShown(w, 2, "Likes tea. Kept."); next.ID != told.ID || len(next.Buttons) != 2 {
		t.Errorf("in place of message %d there is %d: %q, with %v", told.ID, next.ID, next.Text, next.Buttons)
	}
	w.Telegram.PressButton(2, 2, told.ID, "Refuse 2")
	if next := waitShown(w, 2, "Lives in Xyzzy. Refused."); len(next.Buttons) > 0 {
		t.Errorf("there are still the buttons %v", next.Buttons)
	}
	w.Telegram.Say(2, 2, "/memory")
	if got := w.WaitSaid(2, n+3)[n+2]; !strings.Contains(got, "Likes tea.") || strings.Contains(got, "Xyzzy") {
		t.Errorf("it shows %q", got)
	}
	converse(w, 2, 2, n+3)
	parleytest.WaitFor(t, "the next question", func() bool { return f.asked.Load() == 2 })
	parleytest.WaitFor(t, "the bus to be empty", func() bool { return w.Count("sessions.db", "SELECT count(*) FROM message") == 0 })
	if f.shown.Load() == 0 {
		t.Error("the model is not shown what was kept")
	}
	if all := parleytest.Texts(w.Telegram.Sent(2)); strings.Count(strings.Join(all, "\n"), "Xyzzy") != 1 {
		t.Errorf("it is proposed again: %q", all)
	}
	if all := strings.Join(parleytest.Texts(w.Telegram.Sent(group)), "\n"); strings.Contains(all, "tea") || strings.Contains(all, "remember") {
		t.Errorf("a group is told %q", all)
	}
	before := len(w.Telegram.Sent(2))
	w.Telegram.Say(2, 2, "/export")
	w.WaitSaid(2, before+1)
	p.Stop()
	if w.Count("sessions.db", "SELECT count(*) FROM proposals") != 2 {
		t.Error("what was refused is not known")
	}
	if _, errs, code := w.Run("forget", "--yes", "--user", "telegram:2"); code != 0 {
		t.Fatalf("forget: %d %s", code, errs)
	}
	for _, fact := range []string{"Likes tea.", "Lives in Xyzzy."} {
		if found := parleytest.FilesWith(t, w.Home, fact); len(found) > 0 {
			t.Errorf("after forgetting, %q is left in %v", fact, found)
		}
	}
}

// By default, no model is asked what is worth remembering. An owner can keep something for all conversations with a
// command.
func TestProposingIsOffByDefault(t *testing.T) {
	t.Parallel()
	f := &finder{facts: "agent: The office is closed."}
	w := parleytest.New(t, f.model, "")
	p := w.Serve()
	converse(w, 1, 1, 0)
	p.Stop()
	if f.asked.Load() > 0 {
		t.Fatal("the model was asked")
	}
	w = parleytest.New(t, f.model, proposes)
	p = w.Serve()
	n := converse(w, 1, 1, 0)
	told := waitShown(w, 1, "For all my conversations with everybody: The office is closed.")
	id := told.Text[strings.Index(told.Text, "(")+1 : strings.Index(told.Text, ")")]
	w.Telegram.Say(1, 1, "/memory keep "+id)
	if got := w.WaitSaid(1, n+2)[n+1]; !strings.Contains(got, "I'll remember this: The office is closed.") {
		t.Errorf("the owner is told %q", got)
	}
	p.Stop()
	if w.Count("sessions.db", "SELECT count(*) FROM memories WHERE scope = 'agent' AND owner = 'main' AND content = 'The office is closed.'") != 1 {
		t.Error("it is not remembered")
	}
}

// If the server is killed at any step, the person gets one proposal, once.
func TestKilledWhileAnAgentProposes(t *testing.T) {
	t.Parallel()
	for at, asked := range map[string]int64{"propose:ask": 1, "propose:found": 2, "propose:kept": 1, "propose:told": 1} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			f := &finder{facts: "person: Likes tea."}
			w := parleytest.New(t, f.model, proposes)
			killed := w.Serve("PARLEY_KILL_AT=" + at)
			for i := range 5 {
				w.Telegram.Say(2, 2, fmt.Sprint("words ", i))
				w.WaitSaid(2, i+1)
			}
			w.Telegram.Say(2, 2, "/new")
			killed.WaitKilled()
			p := w.Serve()
			waitShown(w, 2, "Likes tea.")
			parleytest.WaitFor(t, "the bus to be empty", func() bool { return w.Count("sessions.db", "SELECT count(*) FROM message") == 0 })
			p.Stop()
			if all := parleytest.Texts(w.Telegram.Sent(2)); len(all) < 7 || len(all) > 7+w.InterruptedSends() {
				t.Errorf("the person is told %q", all)
			}
			if n := w.Count("sessions.db", "SELECT count(*) FROM proposals"); n != 1 || f.asked.Load() != asked {
				t.Errorf("there are %d proposals, after %d questions", n, f.asked.Load())
			}
		})
	}
}
