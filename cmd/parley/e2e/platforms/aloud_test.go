package platforms

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

// answersInMarkdown is a model whose answer contains parts that can be read aloud and parts that cannot. It first calls
// a tool if it is asked to speak.
func answersInMarkdown(r agenttest.Request) agenttest.Response {
	all := r.Messages()
	if last := all[len(all)-1]; last.Role == "user" && strings.Contains(last.Content, "read it to me") {
		return agenttest.Calls(agenttest.ToolCall{Name: "speak", Args: `{}`})
	}
	return agenttest.Reply("It **works**, see [the log](https://a.example/log):\n\n```\nok 1\n```\n\nAnything else?")
}

// readAloud is the part of that answer that is read aloud.
const readAloud = "It works, see the log:\nAnything else?"

// speaking returns the settings with which a speech server answers voice messages aloud.
func speaking(t *testing.T, s *agenttest.Speech) string {
	t.Helper()
	return fmt.Sprintf("[transcribe]\nbase_url = %q\nmodel = \"w\"\n[speech]\nbase_url = %q\nmodel = \"tts\"\nvoice = \"vera\"\n", stenographer(t), s.Start(t))
}

// On each platform, a voice message is answered with a text and a recording of the text's words. A text message is
// answered with a text alone.
func TestAVoiceMessageIsAnsweredAloud(t *testing.T) {
	t.Parallel()
	speech := &agenttest.Speech{}
	w := newThree(t, answersInMarkdown, speaking(t, speech))
	w.everywhere("speak = \"asked\"\n")
	p := w.serve()
	recording := sight{"recording", []sentFile{{"voice.ogg", "audio/ogg", []byte(recorded + "does it work")}}, nil}
	w.show(0, recording)
	w.Telegram.Say(7, 7, "does it work?")
	sent, err := w.Telegram.WaitSent(t.Context(), telegramChat(0), 2)
	parleytest.Must(t, err)
	slack := parleytest.SlackSaid(t, w.slack, slackChat(0), 2)
	discord := parleytest.DiscordSaid(t, w.discord, discordChat(0), 2)
	w.WaitSaid(7, 1)
	p.Stop()
	wantVoiceNote(t, sent)
	if m := slack[1]; m.File != "voice.mp3" || string(m.Data) != agenttest.MP3Head+readAloud {
		t.Errorf("Slack has %+v", slack)
	}
	if m := discord[1]; m.File != "voice.mp3" || string(m.Data) != agenttest.MP3Head+readAloud {
		t.Errorf("Discord has %+v", discord)
	}
	if got := w.Telegram.Sent(7); len(got) != 1 {
		t.Errorf("a text is answered with %+v", got)
	}
	asked := speech.Asked()
	for _, q := range asked {
		if q.Model != "tts" || q.Voice != "vera" || q.Input != readAloud {
			t.Errorf("the server was asked for %+v", q)
		}
	}
	if len(asked) != 3 {
		t.Errorf("the server was asked %d times", len(asked))
	}
}

// wantVoiceNote checks that a chat of Telegram has the answer's text and then one voice note.
func wantVoiceNote(t *testing.T, sent []telegramtest.Message) {
	t.Helper()
	if len(sent) != 2 || sent[0].File != nil || !strings.Contains(sent[0].Text, "ok 1") || sent[1].File == nil {
		t.Fatalf("Telegram has %+v", sent)
	}
	if f := sent[1].File; !f.Voice || f.Name != "voice.ogg" || string(f.Data) != agenttest.OpusHead+readAloud {
		t.Errorf("Telegram has the file %+v", f)
	}
}

// If the process is killed at any step, the chat gets one text and one voice note, and the speech server is asked at
// most once more. If a send was interrupted, nobody knows whether it arrived, so it may arrive twice.
func TestAVoiceNoteComesOnce(t *testing.T) {
	t.Parallel()
	for at, asked := range map[string]int{"c6": 1, "c7:published": 1, "aloud:ask": 1, "aloud:made": 1, "aloud:published": 1, "send:begun/2": 1, "c7": 1} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			speech := &agenttest.Speech{}
			w := newThree(t, answersInMarkdown, speaking(t, speech))
			w.everywhere("speak = \"asked\"\n")
			p := w.serve("PARLEY_KILL_AT=" + at)
			w.Telegram.Attach(10, 10, "voice", "", []byte(recorded+"does it work"), nil)
			p.WaitKilled()
			p = w.serve()
			_, err := w.Telegram.WaitSent(t.Context(), 10, 2)
			parleytest.Must(t, err)
			parleytest.WaitFor(t, "nothing waits anymore", func() bool {
				return w.Count("sessions.db", "SELECT count(*) FROM entries WHERE kind = 'published'") == 1
			})
			p.Stop()
			sent := w.Telegram.Sent(10)
			once := slices.CompactFunc(slices.Clone(sent), func(a, b telegramtest.Message) bool { return a.Text == b.Text && (a.File == nil) == (b.File == nil) })
			wantVoiceNote(t, once)
			if again := len(sent) - len(once); again > w.InterruptedSends() {
				t.Errorf("%d messages came again, and %d sends were cut off", again, w.InterruptedSends())
			}
			if n := len(speech.Asked()); n != asked {
				t.Errorf("the server was asked %d times, want %d", n, asked)
			}
		})
	}
}

// An agent that is asked to speak uses its tool for that if the operator has set up a speech server, and tells people
// if the server fails. The text arrives before the server has answered, and even if the server fails.
func TestAnAgentSpeaksWhenAsked(t *testing.T) {
	t.Parallel()
	var w *three
	status, chat := 0, int64(10)
	speech := &agenttest.Speech{Before: func(agenttest.SpeechRequest) int {
		if _, err := w.Telegram.WaitSent(t.Context(), chat, 1); err != nil {
			t.Error(err)
		}
		return status
	}}
	w = newThree(t, answersInMarkdown, speaking(t, speech))
	p := w.serve()
	w.Telegram.Say(10, 10, "does it work? read it to me")
	sent, err := w.Telegram.WaitSent(t.Context(), 10, 2)
	parleytest.Must(t, err)
	wantVoiceNote(t, sent)
	status, chat = http.StatusForbidden, 11
	w.Telegram.Say(11, 11, "does it work? read it to me")
	said := w.WaitSaid(11, 2)
	parleytest.Wants(t, said[0], "Anything else?")
	parleytest.Wants(t, said[1], "I couldn't read that aloud: the speech server refused it.")
	p.Stop()
	if n := len(speech.Asked()); n != 2 {
		t.Errorf("the server was asked %d times", n)
	}
}

// Without a speech server, the agent has no tool to speak.
func TestWithoutAServerNothingSpeaks(t *testing.T) {
	t.Parallel()
	w := newThree(t, answersInMarkdown, "")
	p := w.serve()
	w.Telegram.Say(10, 10, "does it work? read it to me")
	w.WaitSaid(10, 1)
	p.Stop()
	for _, q := range w.Model.Requests() {
		if strings.Contains(string(q.Body), `"name":"speak"`) && !strings.Contains(string(q.Body), `"tool_calls"`) {
			t.Errorf("the model is offered the tool speak:\n%s", q.Body)
		}
	}
	if got := w.Telegram.Sent(10); len(got) != 1 {
		t.Errorf("said %+v", got)
	}
}
