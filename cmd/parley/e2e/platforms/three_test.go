package platforms

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/discord/discordtest"
	"parley/channels/slack/slacktest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

// A three is a world with all three platforms. Everybody may talk to the bot on each of them.
type three struct {
	*parleytest.World
	slack   *slacktest.Server
	discord *discordtest.Server
	env     []string // environment variables with the tokens
}

func newThree(t *testing.T, script agenttest.Script, more string) *three {
	t.Helper()
	w := &three{
		World: parleytest.New(t, script, ""), slack: slacktest.New(parleytest.SlackBot, parleytest.SlackApp), discord: discordtest.New(parleytest.DiscordToken),
		env: []string{"SLACK_BOT=" + parleytest.SlackBot, "SLACK_APP=" + parleytest.SlackApp, "DISCORD=" + parleytest.DiscordToken},
	}
	w.discord.AddChannel("100", "general")
	const open = "introduce = \"never\"\naccess = \"open\"\nrate_limit = \"none\"\n"
	slackAPI, err := w.slack.Start("127.0.0.1:0")
	parleytest.Must(t, err)
	discordAPI, err := w.discord.Start("127.0.0.1:0")
	parleytest.Must(t, err)
	t.Cleanup(func() {
		_ = w.slack.Close()   // it may be closed already
		_ = w.discord.Close() // and so may this
	})
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	more = fmt.Sprintf("[channels.slack]\nbot_token = \"${SLACK_BOT}\"\napp_token = \"${SLACK_APP}\"\napi_url = %q\nowners = [\"U1\"]\n%s[channels.discord]\nbot_token = \"${DISCORD}\"\napi_url = %q\nowners = [\"1\"]\n%s", slackAPI, open, discordAPI, open) + more
	parleytest.Must(t, os.WriteFile(w.File, append(text, more...), 0o600))
	return w
}

// everywhere adds a setting to each of the channels.
func (w *three) everywhere(setting string) {
	w.T.Helper()
	text, err := os.ReadFile(w.File)
	parleytest.Must(w.T, err)
	parleytest.Must(w.T, os.WriteFile(w.File, []byte(strings.ReplaceAll(string(text), "introduce =", setting+"introduce =")), 0o600))
}

// serve starts the program and waits until it receives messages from all three platforms.
func (w *three) serve(env ...string) *parleytest.Process {
	w.T.Helper()
	p := w.Serve(append(env, w.env...)...)
	parleytest.WaitFor(w.T, "a session at Discord", func() bool { return w.discord.Connected() == 1 || p.HasEnded() })
	return p
}

// tellsOthers plays a model that writes a file and sends it with a formatted text to a chat on each of the other
// platforms.
func tellsOthers(r agenttest.Request) agenttest.Response {
	const words = "The **weekly** report is `green`:\\n\\n- one\\n- two"
	switch r.Rounds() {
	case 0:
		return agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: `{"path":"report.txt","content":"as it was sent"}`})
	case 1:
		return agenttest.Calls(
			agenttest.ToolCall{Name: "message", Args: `{"channel":"discord","chat_id":"100","content":"` + words + `","files":["report.txt"]}`},
			agenttest.ToolCall{Name: "message", Args: `{"channel":"telegram","chat_id":"3","content":"` + words + `","files":["report.txt"]}`},
		)
	}
	return agenttest.Reply("came of it: " + strings.Join(r.Results(), " "))
}

// An arrival is a message as a platform shows it.
type arrival struct{ text, file, content string }

// wantReport checks that a chat has the formatted text and then the file. It returns how often a message was repeated.
func wantReport(t *testing.T, where string, got []arrival, formatted ...string) (again int) {
	t.Helper()
	var all []arrival
	for _, m := range got {
		if len(all) > 0 && all[len(all)-1] == m {
			again++
			continue
		}
		all = append(all, m)
	}
	if len(all) != 2 || all[0].file != "" || all[1] != (arrival{"", "report.txt", "as it was sent"}) {
		t.Errorf("%s has %+v, want the text and then the file", where, all)
		return again
	}
	parleytest.Wants(t, all[0].text, formatted...)
	return again
}

// A person on Slack can have the agent send a text and a file to Discord and Telegram. Each platform gets the text in
// its own format, and each message arrives once, even if the process is killed at any step.
func TestSlackHasOthersTold(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"alive", "c5:before/2", "c5/2", "c5/3", "send:begun/2", "send:sent/2", "send:marked/3"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := newThree(t, tellsOthers, "[agents.main]\nmay_message = [\"discord:100\", \"telegram:3\"]\n")
			var p *parleytest.Process
			if at == "alive" {
				p = w.serve()
				w.slack.Say("D1", "U1", "tell the others")
			} else {
				p = w.serve("PARLEY_KILL_AT=" + at)
				w.slack.Say("D1", "U1", "tell the others")
				p.WaitKilled()
				p = w.serve()
			}
			parleytest.DiscordSaid(t, w.discord, "100", 2)
			w.WaitSaid(3, 2)
			answer := parleytest.SlackSaid(t, w.slack, "D1", 1)[0].Text
			if strings.Count(answer, `"files":1`) != 2 {
				t.Errorf("the model was told %q", answer)
			}
			p.Stop()
			again := wantReport(t, "Discord", arrivals(w.discord.Sent("100"), func(m discordtest.Message) arrival {
				return arrival{m.Text, m.File, string(m.Data)}
			}), "The **weekly** report is `green`:", "- one\n", "- two")
			again += wantReport(t, "Telegram", arrivals(w.Telegram.Sent(3), func(m telegramtest.Message) arrival {
				if m.File != nil {
					return arrival{m.Raw, m.File.Name, string(m.File.Data)}
				}
				return arrival{text: m.Raw}
			}), "The <b>weekly</b> report is <code>green</code>:", "• one\n", "• two")
			again += len(w.slack.Sent("D1")) - 1
			if cut := w.InterruptedSends(); again > cut {
				t.Errorf("%d arrived again, and %d sends were cut off", again, cut)
			}
		})
	}
}

// arrivals converts the messages of a platform to arrivals.
func arrivals[M any](sent []M, one func(M) arrival) (all []arrival) {
	for _, m := range sent {
		all = append(all, one(m))
	}
	return all
}
