package operation

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/telegram/telegramtest"
	"parley/channels/why"
	"parley/cmd/parley/parleytest"
)

// readWhy returns what parley why says, as JSON and as text. It fails the test if the report contains any words that
// were said.
func readWhy(t *testing.T, w *parleytest.World, about string) (told why.Report, text string) {
	t.Helper()
	raw, errs, code := w.Run("--json", "why", about)
	text, errs2, code2 := w.Run("why", about)
	if code != 0 || code2 != 0 {
		t.Fatalf("why %s: %d %q, %d %q", about, code, errs, code2, errs2)
	}
	parleytest.Must(t, json.Unmarshal([]byte(raw), &told))
	if strings.Contains(raw+text, "xyzzyplugh") {
		t.Errorf("why %s says what was said: %s %s", about, raw, text)
	}
	return told, text
}

// wantStory checks that a story has this outcome, and these steps in this order.
func wantStory(t *testing.T, s why.Story, outcome string, steps ...string) {
	t.Helper()
	var all []string
	for _, step := range s.Steps {
		all = append(all, step.Kind+": "+step.Text)
	}
	rest := strings.Join(all, "\n")
	for _, step := range steps {
		_, after, found := strings.Cut(rest, step)
		if !found {
			t.Errorf("%s: there is no %q in its place in\n%s", s.Message, step, strings.Join(all, "\n"))
			return
		}
		rest = after
	}
	if s.Outcome != outcome || s.Says == "" {
		t.Errorf("%s is %s (%s), want %s:\n%s", s.Message, s.Outcome, s.Says, outcome, strings.Join(all, "\n"))
	}
}

// whyModel plays a model that writes or reads a file if it is told to, and otherwise answers.
func whyModel(r agenttest.Request) agenttest.Response {
	switch {
	case r.Rounds() == 0 && strings.Contains(r.Said(), "write"):
		return agenttest.Calls(agenttest.Call("write_file", `{"path":"xyzzyplugh","content":"xyzzyplugh"}`))
	case r.Rounds() == 0 && strings.Contains(r.Said(), "read"):
		return agenttest.Calls(agenttest.Call("read_file", `{"path":"gone"}`))
	}
	return agenttest.Reply("xyzzyplugh")
}

// parley why shows the story of a message from its arrival to what was sent, for a message, a conversation or a chat,
// with and without a server.
func TestWhy(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, whyModel, "[tools]\nask = [\"write_file\"]\n[limits]\nuser_turns_hour = 2\n")
	w.Telegram.SwitchPrivacy(false)
	w.Telegram.Fail(telegramtest.Fault{Method: "sendMessage", Chat: 6, Status: 403, Description: "Forbidden: bot was blocked by the user"})
	p := w.Serve()
	w.Telegram.Say(2, 2, "read xyzzyplugh")
	w.WaitSaid(2, 1)
	w.Telegram.Say(2, 2, "/status")
	w.WaitSaid(2, 2)
	w.Telegram.Say(3, 3, "write xyzzyplugh")
	w.WaitSaid(3, 1)
	w.Telegram.Say(5000, 5000, "xyzzyplugh")
	w.WaitSaid(5000, 1)
	w.Telegram.Say(-77, 2, "xyzzyplugh")
	w.Telegram.Say(6, 6, "xyzzyplugh")
	for n := range 3 {
		w.Telegram.Say(4, 4, "xyzzyplugh")
		w.WaitSaid(4, n+1)
	}
	parleytest.WaitFor(t, "the refusals", func() bool { return len(readAudit(t, w, "--filter", "refusal")) == 3 })
	parleytest.WaitFor(t, "the message that cannot be sent to be given up", func() bool {
		out, _, _ := w.Run("dead-letters")
		return strings.Contains(out, "outbound/telegram")
	})
	parleytest.WaitFor(t, "all that was said to be handled", func() bool {
		return w.Count("sessions.db", "SELECT count(*) FROM message WHERE topic <> 'timers'") == 0
	})
	check := func() {
		t.Helper()
		wantAnswered(t, w)
		wantUnanswered(t, w)
	}
	check()
	p.Kill()
	check() // without a server
	told, text := readWhy(t, w, "telegram:4242:2:999")
	if told.About != "message" || len(told.Messages) != 0 || len(told.Hints) != 3 {
		t.Errorf("of a message that never was it tells %+v", told)
	}
	parleytest.Wants(t, text, "There's no record of this message", "24 hours", "parley status")
	if told, _ := readWhy(t, w, "telegram:4/5"); told.About != "chat" || len(told.Messages) != 0 {
		t.Errorf("of a thread that never was it tells %+v", told)
	}
	if told, _ := readWhy(t, w, "telegram:31415"); told.About != "chat" || len(told.Messages) != 0 || len(told.Hints) == 0 {
		t.Errorf("of a chat that never was it tells %+v", told)
	}
}

// wantAnswered checks the stories of messages that the bot accepted.
func wantAnswered(t *testing.T, w *parleytest.World) {
	t.Helper()
	told, text := readWhy(t, w, "main:telegram:2")
	if told.About != "session" || len(told.Messages) != 2 {
		t.Fatalf("of a conversation it tells %+v", told)
	}
	wantStory(t, told.Messages[0], "answered", "received: it arrived from telegram:2", "command: Parley carried out the command status", "send: ", "was sent to telegram:2 as ")
	answered := []string{
		"received: it arrived from telegram:2, was accepted, and is in conversation main:telegram:2", "turn: it started the turn ", " of the agent main",
		"call: read_file was called, with the result file_not_found", "model: the model scripted was sent 2 requests", "ended: the turn was finished", "send: ", "#reply was sent to telegram:2 as ",
	}
	first := told.Messages[1]
	wantStory(t, first, "answered", answered...)
	parleytest.Wants(t, text, first.Message+": answered\n", "→ It was answered.")
	for _, id := range []string{first.Message, first.Message + "#reply"} {
		if told, _ := readWhy(t, w, id); told.About != "message" || len(told.Messages) != 1 || told.Messages[0].Message != first.Message {
			t.Errorf("of %s it tells %+v", id, told)
		} else {
			wantStory(t, told.Messages[0], "answered", answered...)
		}
	}
	told, _ = readWhy(t, w, "telegram:3")
	if told.About != "chat" || len(told.Messages) != 1 {
		t.Fatalf("of a chat it tells %+v", told)
	}
	wantStory(t, told.Messages[0], "waiting_for_people", "waits: it's waiting for approval of write_file (")
	_, after, _ := strings.Cut(told.Messages[0].Steps[2].Text, "(")
	id, _, _ := strings.Cut(after, ",")
	if told, _ := readWhy(t, w, id); len(told.Messages) != 1 || told.Messages[0].Session != "main:telegram:3" {
		t.Errorf("of the request %s it tells %+v", id, told)
	}
	told, _ = readWhy(t, w, "telegram:6")
	if len(told.Messages) != 1 {
		t.Fatalf("of a chat that takes no messages it tells %+v", told)
	}
	wantStory(t, told.Messages[0], "undelivered", "ended: the turn was finished", "was not sent to telegram:6", "dead_letter: ", "so it's a dead letter in the topic outbound/telegram")
}

// wantUnanswered checks the stories of messages that the bot refused, and that each names the rule.
func wantUnanswered(t *testing.T, w *parleytest.World) {
	t.Helper()
	for about, rule := range map[string]string{"telegram:5000": "stranger", "telegram:-77": "not_mentioned"} {
		told, text := readWhy(t, w, about)
		if len(told.Messages) != 1 {
			t.Fatalf("of %s it tells %+v", about, told)
		}
		wantStory(t, told.Messages[0], "refused", "at "+about+", and the rule "+rule+" refused it")
		parleytest.Wants(t, text, "→ It was refused. It")
		again, _ := readWhy(t, w, told.Messages[0].Message)
		if again.About != "message" || len(again.Messages) != 1 || again.Messages[0].Message != told.Messages[0].Message {
			t.Errorf("of %s it tells %+v", told.Messages[0].Message, again)
		}
	}
	told, _ := readWhy(t, w, "telegram:4")
	if len(told.Messages) != 3 {
		t.Fatalf("of three messages it tells %+v", told)
	}
	wantStory(t, told.Messages[0], "refused", "received: it arrived from telegram:4", "refused: the rule too_many_turns ended the turn", "was sent to telegram:4")
	wantStory(t, told.Messages[2], "answered")
}

// parley why explains that a message in a group of Slack or Discord was refused because it did not mention the bot. The
// record does not say who sent the message. A thread in which the bot takes part has no such records.
func TestWhyAGroupIsNotAnswered(t *testing.T) {
	t.Parallel()
	sw, sl := parleytest.NewSlack(t, whyModel)
	sw.Serve("SLACK_BOT_TOKEN="+parleytest.SlackBot, "SLACK_APP_TOKEN="+parleytest.SlackApp)
	dw, dc := parleytest.NewDiscord(t, whyModel, "")
	dw.Serve("DISCORD=" + parleytest.DiscordToken)
	sl.Say("D001", "U001", "hello")
	parleytest.SlackSaid(t, sl, "D001", 1)
	parleytest.WaitFor(t, "a session", func() bool { return dc.Connected() == 1 })
	dc.Say("100", "7", "xyzzyplugh")
	for about, w := range map[string]*parleytest.World{"slack:C001": sw, "discord:100": dw} {
		parleytest.WaitFor(t, "the refusal at "+about, func() bool {
			if about == "slack:C001" {
				sl.Say("C001", "U001", "xyzzyplugh") // until the socket is open
			}
			told, _ := readWhy(t, w, about)
			return len(told.Messages) == 1
		})
		told, text := readWhy(t, w, about)
		wantStory(t, told.Messages[0], "refused", "it arrived at "+about+", and the rule not_mentioned refused it")
		parleytest.Wants(t, text, "the channel's `mention` setting")
		if again, _ := readWhy(t, w, told.Messages[0].Message); len(again.Messages) != 1 || again.Messages[0].Outcome != "refused" {
			t.Errorf("of %s it tells %+v", told.Messages[0].Message, again)
		}
		for _, r := range readAudit(t, w, "--filter", "refusal") {
			if r.By != "" || r.Address != about {
				t.Errorf("the record is %+v", r)
			}
		}
	}
}
