package platforms

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/slack/slacktest"
	"parley/cmd/parley/parleytest"
)

var askedModel = regexp.MustCompile(`"model":"([^"]*)"`)

// namedModel answers with the name of the model that was asked, the number of people's words that it was shown, and the
// newest word.
func namedModel(r agenttest.Request) agenttest.Response {
	name := askedModel.FindSubmatch(r.Body)[1]
	return agenttest.Reply(fmt.Sprintf("%s %d: %s", name, bytes.Count(r.Body, []byte(`"role":"user"`)), r.Said()))
}

// opsByWord configures an agent with a model of its own, which people call by a word.
const opsByWord = "[agents.ops]\nmodel = \"large\"\n"

// On each platform, a word after the bot's name selects an agent, which uses its own model. Later messages in the
// thread, and replies to the agent's message, go to the same agent. Without the word, the main agent answers in the
// same chat. No agent sees what was said to another.
func TestAWordLeadsToAnAgentOnEachPlatform(t *testing.T) {
	t.Parallel()
	w := newThree(t, namedModel, opsByWord)
	w.everywhere("routes = [{ match = { mention = \"ops\" }, agent = \"ops\" }]\n")
	p := w.serve()
	want := func(where, got, what string) {
		t.Helper()
		if !strings.Contains(got, what) {
			t.Errorf("%s got %q, want %q", where, got, what)
		}
	}

	ts := w.slack.Say("C1", "U2", "<@"+slacktest.Bot+"> Ops: is it up?")
	want("Slack", parleytest.SlackSaid(t, w.slack, "C1", 1)[0].Text, "large 1: is it up?")
	w.slack.Reply("C1", ts, "U2", "and the disk?")
	want("Slack's thread", parleytest.SlackSaid(t, w.slack, "C1", 2)[1].Text, "large 2: and the disk?")
	ts = w.slack.Say("C1", "U2", "<@"+slacktest.Bot+"> hello")
	want("Slack's other thread", parleytest.SlackSaid(t, w.slack, "C1", 3)[2].Text, "scripted 1: hello")
	w.slack.Reply("C1", ts, "U2", "<@"+slacktest.Bot+"> ops what does it want?")
	want("Slack's other thread", parleytest.SlackSaid(t, w.slack, "C1", 4)[3].Text, "large 1: what does it want?")
	if newest := w.Model.Requests()[len(w.Model.Requests())-1].Body; !bytes.Contains(newest, []byte("hello")) {
		t.Errorf("the agent who was called into a thread was not told what was said before: %s", newest)
	}

	w.slack.Command("C1", "U2", "ops are you there?")
	want("Slack's command", parleytest.SlackSaid(t, w.slack, "C1", 5)[4].Text, "large 1: are you there?")

	w.discord.Say("100", "501", discordCalled+"ops is it up?")
	answer := parleytest.DiscordSaid(t, w.discord, "100", 1)[0]
	want("Discord", answer.Text, "large 1: is it up?")
	w.discord.Say("100", "501", discordCalled+"hello")
	want("Discord", parleytest.DiscordSaid(t, w.discord, "100", 2)[1].Text, "scripted 1: hello")
	awaitBookedAnswers(t, w.World, "discord", 2)
	w.discord.Reply("100", "501", answer.ID, discordCalled+"and the disk?")
	want("Discord's reply", parleytest.DiscordSaid(t, w.discord, "100", 3)[2].Text, "large 2: and the disk?")

	const group = -7
	asked := w.Telegram.Say(group, 2, "@parleybot ops is it up?")
	want("Telegram", w.WaitSaid(group, 1)[0], "large 1: is it up?")
	w.Telegram.Say(group, 2, "@parleybot hello")
	want("Telegram", w.WaitSaid(group, 2)[1], "scripted 1: hello")
	awaitBookedAnswers(t, w.World, "telegram", 2)
	w.Telegram.Edit(group, asked, "@parleybot ops is the database up?")
	w.Telegram.Reply(group, 2, w.Telegram.Sent(group)[0].ID, map[string]any{"text": "and the disk?"})
	want("Telegram's reply", w.WaitSaid(group, 3)[2], ": and the disk?")
	newest := w.Model.Requests()[len(w.Model.Requests())-1].Body
	if !bytes.Contains(newest, []byte(`"model":"large"`)) || !bytes.Contains(newest, []byte("is the database up?")) || bytes.Contains(newest, []byte("hello")) {
		t.Errorf("after the edit the model was asked %s", newest)
	}
	p.Stop()
	if n := w.Count("sessions.db", "SELECT count(*) FROM sessions WHERE key LIKE 'ops:%'"); n != 5 {
		t.Errorf("the agent ops has %d conversations, want three on Slack and one on each other platform", n)
	}
}

// /stop stops the turns of all agents in a chat. After an agent's name, it stops only that agent's turn.
func TestStopOfSeveralAgents(t *testing.T) {
	t.Parallel()
	stalls := func(r agenttest.Request) agenttest.Response {
		if strings.Contains(r.Said(), "wait") {
			whole := agenttest.Reply("so it goes")
			return whole.CutAfter(whole.Len() / 4).Stall()
		}
		return namedModel(r)
	}
	w := parleytest.New(t, stalls, opsByWord)
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(string(text), "introduce =", "routes = [{ match = { mention = \"ops\" }, agent = \"ops\" }]\nintroduce =", 1)), 0o600))
	p := w.Serve()
	cancelled := func(agent string) int {
		return w.Count("sessions.db", "SELECT count(*) FROM entries e JOIN sessions s ON s.id = e.session WHERE CAST(s.key AS TEXT) LIKE '"+agent+":%' AND e.kind = 'turn_done' AND e.data LIKE '%cancelled%'")
	}
	const group = -7
	begin := func(asked int) {
		t.Helper()
		w.Telegram.Say(group, 2, "@parleybot ops wait")
		w.Telegram.Say(group, 2, "@parleybot wait")
		parleytest.WaitFor(t, "both to be at work", func() bool { return w.Model.Asked() == asked })
	}
	begin(2)
	w.Telegram.Say(group, 2, "/stop@parleybot")
	parleytest.WaitFor(t, "both to be stopped", func() bool { return cancelled("ops") == 1 && cancelled("main") == 1 })
	begin(4)
	w.Telegram.Say(group, 2, "@parleybot ops /stop")
	parleytest.WaitFor(t, "one of them to be stopped", func() bool { return cancelled("ops") == 2 })
	w.Telegram.Say(group, 2, "/stop@parleybot")
	parleytest.WaitFor(t, "the other to be stopped", func() bool { return cancelled("main") == 2 })
	p.Stop()
	if cancelled("ops") != 2 || cancelled("main") != 2 {
		t.Errorf("%d and %d turns were stopped, want 2 and 2", cancelled("ops"), cancelled("main"))
	}
}

// awaitBookedAnswers waits until the book knows that n messages to a channel were sent. After that, a reply to one of
// them goes to the agent that sent the message.
func awaitBookedAnswers(t *testing.T, w *parleytest.World, channel string, n int) {
	t.Helper()
	parleytest.WaitFor(t, "the book to know what was sent", func() bool {
		return w.Count("sessions.db", "SELECT count(*) FROM parts p JOIN sends s ON s.id = p.send WHERE p.platform_id <> '' AND p.state = 'sent' AND s.channel = '"+channel+"'") >= n
	})
}

// People at terminals and programs can talk to an agent by its name, in separate conversations, and get its answers.
// The error for an unknown name suggests the nearest name.
func TestTerminalsAndProgramsTalkToAnAgentByName(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, namedModel, opsByWord)
	address := parleytest.FreeAddress(t)
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(string(text), "listen = \"\"", "listen = \""+address+"\"\n[tokens.ci]\ntoken = \"a-token-of-25-characters\"\nmay = [\"agent\"]\n", 1)), 0o600))

	chat := func(want string, args ...string) {
		t.Helper()
		out, errs, code := w.Run(append([]string{"chat"}, args...)...)
		if code != parleytest.ExitDone || !strings.Contains(out, want) {
			t.Errorf("chat %q exits with %d and says %q, %q; want %q", args, code, out, errs, want)
		}
	}
	chat("large 1: alone", "--agent", "ops", "-m", "alone") // the terminal's own process answers
	_, errs, code := w.Run("chat", "--agent", "opps", "-m", "x")
	if code != parleytest.ExitUsage || !strings.Contains(errs, "did you mean ops?") {
		t.Errorf("an unknown agent exits with %d and says %q", code, errs)
	}
	p := w.Serve()
	p.WaitServing()
	chat("large 2: again", "--agent", "ops", "-m", "again")
	chat("scripted 1: main", "-m", "main")
	chat("large 3: by its key", "--session", "ops:console:default", "-m", "by its key")
	out, errs, code := w.Run("chat", "--agent", "opps", "-m", "x")
	if code == parleytest.ExitDone || !strings.Contains(out+errs, `did you mean "agent:ops"?`) {
		t.Errorf("the server's answer to an unknown agent is %d, %q, %q", code, out, errs)
	}
	out, errs, code = w.Run("send", "--to", "agent:ops", "--wait", "from a script")
	if code != parleytest.ExitDone || !strings.Contains(out, "session ops:console:default\n") || !strings.Contains(out, ": sent") {
		t.Errorf("send exits with %d and says %q, %q", code, out, errs)
	}

	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/v1/messages", strings.NewReader(`{"to": "agent:ops", "text": "hello"}`))
	parleytest.Must(t, err)
	q.Header.Set("Authorization", "Bearer a-token-of-25-characters")
	q.Header.Set("Content-Type", "application/json")
	r, err := http.DefaultClient.Do(q)
	parleytest.Must(t, err)
	body, err := io.ReadAll(r.Body)
	parleytest.Must(t, errors.Join(err, r.Body.Close()))
	if r.StatusCode != http.StatusAccepted || !strings.Contains(string(body), `"session":"ops:web:ci"`) {
		t.Errorf("a program is told %d %s", r.StatusCode, body)
	}
	parleytest.WaitFor(t, "the agent's answer", func() bool {
		return w.Count("sessions.db", "SELECT count(*) FROM entries e JOIN sessions s ON s.id = e.session WHERE CAST(s.key AS TEXT) = 'ops:web:ci' AND e.kind = 'turn_done'") == 1
	})
	p.Stop()
}
