package approvals

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/discord/discordtest"
	"parley/channels/slack/slacktest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

// A shownCall is what a chat shows of the request about a long call: the file, the message with the buttons, and which
// of the two came first.
type shownCall struct {
	file, name string
	text       string
	buttons    []string
	fileFirst  bool
}

// longWriter plays a model that writes a long file once. The file's beginning, middle and end differ.
func longWriter(r agenttest.Request) agenttest.Response {
	if r.Rounds() == 0 {
		content := "THE-HEAD " + strings.Repeat("harmless ", 400) + `THE-MIDDLE\u3164\n` + strings.Repeat("harmless ", 400) + "THE-TAIL"
		return agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: `{"path":"a.txt","content":"` + content + `"}`})
	}
	return agenttest.Reply("then: " + strings.Join(r.Results(), " "))
}

// A chatRig is one platform with a request about a long call in one of its chats.
type chatRig struct {
	world *parleytest.World
	env   []string
	ask   func()
	// refuseFiles makes the platform refuse files.
	refuseFiles func()
	shown       func() shownCall
	press       func(label string)
	say         func(text string)
	texts       func() string
}

func onTelegram(t *testing.T) chatRig {
	w := parleytest.New(t, longWriter, asksAboutWriting)
	return chatRig{
		world: w,
		ask:   func() { w.Telegram.Say(1, 1, "write it") },
		refuseFiles: func() {
			w.Telegram.Fail(telegramtest.Fault{Method: "sendDocument", Act: telegramtest.Refuse, Status: 400, Description: "Bad Request: not enough rights to send documents to the chat"})
		},
		shown: func() (s shownCall) {
			for _, m := range w.Telegram.Sent(1) {
				switch {
				case m.File != nil:
					s.file, s.name, s.fileFirst = string(m.File.Data), m.File.Name, s.text == ""
				case strings.Contains(m.Text, "needs approval"):
					s.text, s.buttons = m.Text, nil
					for _, b := range m.Buttons {
						s.buttons = append(s.buttons, b.Label)
					}
				}
			}
			return s
		},
		press: func(label string) {
			for _, m := range w.Telegram.Sent(1) {
				if len(m.Buttons) > 0 {
					w.Telegram.PressButton(1, 1, m.ID, label)
				}
			}
		},
		say:   func(text string) { w.Telegram.Say(1, 1, "/"+text) },
		texts: func() string { return strings.Join(parleytest.Texts(w.Telegram.Sent(1)), "\n") },
	}
}

func onSlack(t *testing.T) chatRig {
	w, sl := parleytest.NewSlack(t, longWriter)
	given, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	text := strings.Replace(string(given), "U01ADMIN", "U001", 1)
	parleytest.Must(t, os.WriteFile(w.File, []byte(text+asksAboutWriting), 0o600))
	return chatRig{
		world:       w,
		env:         []string{"SLACK_BOT_TOKEN=" + parleytest.SlackBot, "SLACK_APP_TOKEN=" + parleytest.SlackApp},
		ask:         func() { sl.Say("D001", "U001", "write it") },
		refuseFiles: func() { sl.Fail("files.getUploadURLExternal", "", 0, slacktest.Refuse("missing_scope")) },
		shown: func() (s shownCall) {
			for _, m := range sl.Sent("D001") {
				switch {
				case m.File != "":
					s.file, s.name, s.fileFirst = string(m.Data), m.File, s.text == ""
				case strings.Contains(m.Text, "needs approval"):
					s.text, s.buttons = m.Text, nil
					for _, b := range m.Buttons {
						s.buttons = append(s.buttons, b.Label)
					}
				}
			}
			return s
		},
		press: func(label string) {
			parleytest.WaitFor(t, "a connection, without which Slack drops a press", func() bool { return sl.Sockets() > 0 })
			for _, m := range sl.Sent("D001") {
				if len(m.Buttons) > 0 {
					sl.PressButton("D001", "U001", m.TS, label)
				}
			}
		},
		say: func(text string) { sl.Say("D001", "U001", "!"+text) },
		texts: func() string {
			var all []string
			for _, m := range sl.Sent("D001") {
				all = append(all, m.Text)
			}
			return strings.Join(all, "\n")
		},
	}
}

func onDiscord(t *testing.T) chatRig {
	w, dc := parleytest.NewDiscord(t, longWriter, asksAboutWriting)
	return chatRig{
		world: w,
		env:   []string{"DISCORD=" + parleytest.DiscordToken},
		ask: func() {
			parleytest.WaitFor(t, "a session", func() bool { return dc.Connected() == 1 })
			dc.Say("11", "1", "write it")
		},
		refuseFiles: func() {
			dc.Fail("POST messages", "11", 0, func(w http.ResponseWriter, r *http.Request, do http.Handler) {
				if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
					discordtest.Answer(http.StatusRequestEntityTooLarge, `{"message":"Request entity too large","code":40005}`)(w, r, do)
					return
				}
				do.ServeHTTP(w, r)
			})
		},
		shown: func() (s shownCall) {
			for _, m := range dc.Sent("11") {
				switch {
				case m.File != "":
					s.file, s.name, s.fileFirst = string(m.Data), m.File, s.text == ""
				case strings.Contains(m.Text, "needs approval"):
					s.text, s.buttons = m.Text, nil
					for _, b := range m.Buttons {
						s.buttons = append(s.buttons, b.Label)
					}
				}
			}
			return s
		},
		press: func(label string) {
			parleytest.WaitFor(t, "a session, without which Discord drops a press", func() bool { return dc.Connected() > 0 })
			for _, m := range dc.Sent("11") {
				if len(m.Buttons) > 0 {
					dc.PressButton("11", "1", m.ID, label)
				}
			}
		},
		say: func(text string) { dc.Say("11", "1", "/"+text) },
		texts: func() string {
			var all []string
			for _, m := range dc.Sent("11") {
				all = append(all, m.Text)
			}
			return strings.Join(all, "\n")
		},
	}
}

// wantWhole checks that a chat shows the beginning and the end of the call, and that a file with the whole call came
// first.
func wantWhole(t *testing.T, s shownCall) {
	t.Helper()
	if !strings.Contains(s.text, "THE-HEAD") || !strings.Contains(s.text, "THE-TAIL") || strings.Contains(s.text, "THE-MIDDLE") || !strings.Contains(s.text, s.name) {
		t.Errorf("the request says %q", s.text)
	}
	if !s.fileFirst || strings.Count(s.file, "THE-MIDDLE") != 2 || strings.Count(s.file, "THE-TAIL") != 2 || strings.ContainsRune(s.file, '\u3164') || !strings.Contains(s.file, `THE-MIDDLE\u3164`) {
		t.Errorf("the file, first %t, has %d bytes: %q", s.fileFirst, len(s.file), s.file)
	}
	if strings.Join(s.buttons, "|") != "Approve|For this conversation|Deny" {
		t.Errorf("the buttons are %q", s.buttons)
	}
}

// A chat shows the whole of a long call before it shows a button to approve it.
func TestALongCallIsShownWholeWhereItIsApproved(t *testing.T) {
	t.Parallel()
	for name, platform := range map[string]func(*testing.T) chatRig{"telegram": onTelegram, "slack": onSlack, "discord": onDiscord} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := platform(t)
			p.world.Serve(p.env...)
			p.ask()
			parleytest.WaitFor(t, "the request", func() bool { return len(p.shown().buttons) > 0 })
			wantWhole(t, p.shown())
			p.press("Approve")
			parleytest.WaitFor(t, "what came of it", func() bool { return strings.Contains(p.texts(), "Successfully wrote") })
			if s := p.shown(); len(s.buttons) > 0 || !strings.Contains(s.text, "THE-TAIL") || !strings.Contains(s.text, "Approved by") {
				t.Errorf("then the request says %q, with buttons %q", s.text, s.buttons)
			}
		})
	}
}

// If the file with the whole call cannot be delivered, nobody can approve the call in that chat, neither with a button
// nor with a command. People can deny it there, and can approve it where the whole call is shown.
func TestWhatCannotBeShownWholeIsNotApproved(t *testing.T) {
	t.Parallel()
	for name, platform := range map[string]func(*testing.T) chatRig{"telegram": onTelegram, "slack": onSlack, "discord": onDiscord} {
		for _, end := range []string{"denied", "approved"} {
			t.Run(name+" "+end, func(t *testing.T) {
				t.Parallel()
				p := platform(t)
				p.refuseFiles()
				p.world.Serve(p.env...)
				p.ask()
				parleytest.WaitFor(t, "the request", func() bool { return len(p.shown().buttons) > 0 })
				s := p.shown()
				if strings.Join(s.buttons, "|") != "Deny" || !strings.Contains(s.text, "can't approve it here") || !strings.Contains(s.text, "THE-TAIL") || s.file != "" {
					t.Fatalf("the request says %q, with buttons %q", s.text, s.buttons)
				}
				id := parleytest.Requested(t, s.text)
				p.say("approve " + id)
				parleytest.WaitFor(t, "the refusal", func() bool { return strings.Contains(p.texts(), " here: it's too long") })
				if end == "denied" {
					p.press("Deny")
					parleytest.WaitFor(t, "what came of it", func() bool { return strings.Contains(p.texts(), "then: ") })
					if !strings.Contains(p.texts(), "then: ") || !strings.Contains(p.texts(), "Denied by") {
						t.Errorf("said %q", p.texts())
					}
					return
				}
				if out, stderr, code := p.world.Run("approvals", "list"); code != 0 || !strings.Contains(out, "THE-MIDDLE") {
					t.Errorf("parley approvals list said %q, %q", out, stderr)
				}
				if _, stderr, code := p.world.Run("approvals", "approve", id); code != 0 {
					t.Errorf("parley approvals approve said %q", stderr)
				}
				parleytest.WaitFor(t, "what came of it", func() bool { return strings.Contains(p.texts(), "Successfully wrote") })
				if strings.Contains(p.texts(), "I have an answer") {
					t.Errorf("people were told of an answer: %q", p.texts())
				}
				if out, _, _ := p.world.Run("dead-letters", "list"); strings.Contains(out, id) {
					t.Errorf("the file is a dead letter: %q", out)
				}
			})
		}
	}
}

// If the process is killed between the file and the request, both still arrive, in this order.
func TestKilledBetweenTheFileAndTheRequest(t *testing.T) {
	t.Parallel()
	for name, platform := range map[string]func(*testing.T) chatRig{"telegram": onTelegram, "slack": onSlack, "discord": onDiscord} {
		for _, at := range []string{"park:opened", "park:shown", "park:asked", "send:begun", "send:sent", "send:marked", "send:settled"} {
			t.Run(name+" "+at, func(t *testing.T) {
				t.Parallel()
				if testing.Short() && name != "telegram" {
					t.Skip("one platform is enough")
				}
				p := platform(t)
				killed := p.world.Serve(append([]string{"PARLEY_KILL_AT=" + at}, p.env...)...)
				p.ask()
				killed.WaitKilled()
				p.world.Serve(p.env...)
				parleytest.WaitFor(t, "the request", func() bool { return len(p.shown().buttons) == 3 })
				wantWhole(t, p.shown())
				if cut := p.world.InterruptedSends(); strings.Count(p.texts(), "needs approval") > 1+cut {
					t.Errorf("it was asked %d times", strings.Count(p.texts(), "needs approval"))
				}
				p.press("Approve")
				parleytest.WaitFor(t, "what came of it", func() bool { return strings.Contains(p.texts(), "Successfully wrote") })
			})
		}
	}
}

// If a repeated send shows a request twice, both messages have buttons. A press removes the buttons of the message that
// was pressed.
func TestADoubledRequestLosesItsButtonsOnceTheyArePressed(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"the stray", "the other"} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			w := parleytest.New(t, writer, asksAboutWriting)
			w.Telegram.Fail(telegramtest.Fault{Method: "sendMessage", Chat: 1, Times: 1, Act: telegramtest.Cut})
			w.Serve()
			w.Telegram.Say(1, 1, "write it")
			buttons := func() (with []int) {
				for _, m := range w.Telegram.Sent(1) {
					if len(m.Buttons) > 0 {
						with = append(with, m.ID)
					}
				}
				return with
			}
			parleytest.WaitFor(t, "the request, twice", func() bool { return len(buttons()) == 2 })
			stray, other := buttons()[0], buttons()[1]
			if first == "the other" {
				w.Telegram.PressButton(1, 1, other, "Approve")
				parleytest.WaitFor(t, "the end of one", func() bool { return len(buttons()) == 1 })
			}
			w.Telegram.PressButton(1, 1, stray, "Approve")
			parleytest.WaitFor(t, "the end of both", func() bool { return len(buttons()) == 0 })
			parleytest.WaitFor(t, "what came of it", func() bool {
				return strings.Contains(strings.Join(parleytest.Texts(w.Telegram.Sent(1)), "\n"), "Successfully wrote")
			})
			for _, m := range w.Telegram.Sent(1) {
				if (m.ID == stray || m.ID == other) && !strings.Contains(m.Text, "Approved by User 1") {
					t.Errorf("message %d says %q", m.ID, m.Text)
				}
			}
		})
	}
}
