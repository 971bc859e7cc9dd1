package platforms

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/bus"
	"parley/channels/discord/discordtest"
	"parley/cmd/parley/parleytest"
)

// discordCalled is a mention of the bot.
const discordCalled = "<@" + discordtest.Bot + "> "

func TestDiscordAnswers(t *testing.T) {
	t.Parallel()
	w, dc := parleytest.NewDiscord(t, parleytest.EchoModel, "")
	p := w.Serve("DISCORD=" + parleytest.DiscordToken)
	parleytest.WaitFor(t, "a session", func() bool { return dc.Connected() == 1 })
	dc.Say("201", "501", "not for the bot either")
	dc.Say("51", "501", "hello")
	if got := parleytest.DiscordSaid(t, dc, "51", 1)[0]; !strings.Contains(got.Text, "hello") || got.ReplyTo != "" {
		t.Errorf("a direct message got %+v", got)
	}
	dc.Say("100", "501", "not for the bot")
	asked := dc.Say("100", "501", discordCalled+"in the channel")
	if got := parleytest.DiscordSaid(t, dc, "100", 1)[0]; !strings.Contains(got.Text, "in the channel") || got.ReplyTo != asked {
		t.Errorf("a mention got %+v", got)
	}
	dc.Say("201", "501", discordCalled+"in a thread")
	parleytest.DiscordSaid(t, dc, "201", 1)
	dc.Say("201", "502", "and more of it")
	if got := parleytest.DiscordSaid(t, dc, "201", 2); !strings.Contains(got[0].Text, "in a thread") || !strings.Contains(got[1].Text, "and more of it") {
		t.Errorf("a thread got %+v", got)
	}
	dc.Say("301", "501", discordCalled+"an idea")
	if got := parleytest.DiscordSaid(t, dc, "301", 1)[0]; !strings.Contains(got.Text, "an idea") {
		t.Errorf("a post got %+v", got)
	}
	p.Stop()
	dc.ExpireSessions()
	dc.Say("51", "501", "while you were away")
	dc.Say("301", "502", "more ideas")
	p = w.Serve("DISCORD=" + parleytest.DiscordToken)
	if got := parleytest.DiscordSaid(t, dc, "51", 2)[1].Text; !strings.Contains(got, "while you were away") {
		t.Errorf("after the restart the person got %q", got)
	}
	if got := parleytest.DiscordSaid(t, dc, "301", 2)[1].Text; !strings.Contains(got, "more ideas") {
		t.Errorf("after the restart the post got %q", got)
	}
	if strings.Contains(p.Stderr.String(), parleytest.DiscordToken) {
		t.Error("the log has the token")
	}
	if n := dc.Sends(); n != 7 {
		t.Errorf("the bot has said %d things, want 7", n)
	}
}

// A message that is deleted on Discord is blanked in the log, even if another process received it, and even if people
// have separate conversations in a channel.
func TestDiscordDeletions(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"thread", "user"} {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			w, dc := parleytest.NewDiscord(t, agenttest.Always(agenttest.Reply("fine")), "")
			text, err := os.ReadFile(w.File)
			parleytest.Must(t, err)
			parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(string(text), "[channels.discord]\n", "[channels.discord]\nsession = \""+scope+"\"\n", 1)), 0o600))
			p := w.Serve("DISCORD=" + parleytest.DiscordToken)
			parleytest.WaitFor(t, "a session", func() bool { return dc.Connected() == 1 })
			for n, user := range []string{"501", "502"} {
				dc.Say("201", user, discordCalled+"this stays, says "+user)
				parleytest.DiscordSaid(t, dc, "201", n+1)
			}
			id := dc.Say("201", "502", discordCalled+"my secret plan")
			parleytest.DiscordSaid(t, dc, "201", 3)
			p.Stop()
			parleytest.WaitFor(t, "the session to end", func() bool { return dc.Connected() == 0 })
			logged := func(words string) int {
				return w.Count("sessions.db", "SELECT count(*) FROM entries WHERE data LIKE '%"+words+"%'")
			}
			if logged("secret plan") != 1 {
				t.Fatal("it is not in the log")
			}
			p = w.Serve("DISCORD=" + parleytest.DiscordToken)
			parleytest.WaitFor(t, "a session again", func() bool { return dc.Connected() == 1 })
			dc.Remove("201", id)
			parleytest.WaitFor(t, "it to be blanked", func() bool { return logged("secret plan") == 0 })
			p.Stop()
			if n := logged("this stays"); n != 2 {
				t.Errorf("of 2 other messages %d are left", n)
			}
		})
	}
}

// If the program is killed at any step while people talk, each message is answered once, and in each place in order.
func TestDiscordThroughKills(t *testing.T) {
	t.Parallel()
	w, dc := parleytest.NewDiscord(t, parleytest.EchoModel, "[agents.main]\nqueue = \"followup\"\n")
	const each = 12
	places := []bus.Address{{Chat: "51"}, {Chat: "52"}, {Chat: "100"}, {Chat: "201"}, {Chat: "301"}}
	say := func(i int) {
		for _, at := range places {
			dc.Say(at.Chat, "501", discordCalled+fmt.Sprintf("m%02d.", i))
		}
	}
	serve := func() *parleytest.Process {
		p := w.Serve("DISCORD=" + parleytest.DiscordToken)
		parleytest.WaitFor(t, "a session", func() bool { return dc.Connected() == 1 })
		return p
	}
	p := serve()
	say(0)
	for _, at := range places { // the bot knows the direct messages from then on
		parleytest.DiscordSaid(t, dc, at.Chat, 1)
	}
	for i := 1; i < each; i++ {
		say(i)
		if i%4 == 0 {
			p.Kill()
			dc.ExpireSessions()
			say(i + 100)
			p = serve()
		}
	}
	said := func(chat string) (texts []string) {
		for _, m := range dc.Sent(chat) {
			texts = append(texts, m.Text)
		}
		return texts
	}
	wanted := []string{}
	for i := range each {
		wanted = append(wanted, fmt.Sprintf("m%02d.", i))
		if i > 0 && i%4 == 0 {
			wanted = append(wanted, fmt.Sprintf("m%02d.", i+100))
		}
	}
	for _, at := range places {
		var got []string
		parleytest.WaitFor(t, "every answer", func() bool {
			got = nil
			for _, text := range said(at.Chat) {
				for word := range strings.FieldsSeq(text) {
					if slices.Contains(wanted, word) {
						got = append(got, word)
					}
				}
			}
			return len(got) >= len(wanted)
		})
		if !slices.Equal(got, wanted) {
			t.Errorf("in %s was answered %q, want %q", at.Chat, got, wanted)
		}
	}
}

// A file is in the workspace before the model is asked, even if the program is killed while it fetches the file, and
// the message is answered once.
func TestDiscordFilesAreFetched(t *testing.T) {
	t.Parallel()
	w, dc := parleytest.NewDiscord(t, parleytest.EchoModel, "")
	p := w.Serve("DISCORD=" + parleytest.DiscordToken)
	parleytest.WaitFor(t, "a session", func() bool { return dc.Connected() == 1 })
	dc.Fail("GET files", "", 0, discordtest.Hang(false))
	dc.Post("51", "501", map[string]any{"content": "read this", "attachments": []any{dc.AddFile("notes.txt", "text/plain", []byte("xyzzy-notes"))}})
	parleytest.WaitFor(t, "the fetching", func() bool { return dc.Calls("GET files") > 0 })
	p.Kill()
	dc.ClearFaults()
	w.Serve("DISCORD=" + parleytest.DiscordToken)
	if got := parleytest.DiscordSaid(t, dc, "51", 1)[0]; !strings.Contains(got.Text, "read this") {
		t.Errorf("it was answered %q", got.Text)
	}
	if found := parleytest.FilesWith(t, filepath.Join(w.Home, "workspaces"), "xyzzy-notes"); len(found) != 1 {
		t.Errorf("the file is at %q", found)
	}
	dc.Say("51", "501", "more")
	if got := parleytest.DiscordSaid(t, dc, "51", 2); len(got) != 2 || !strings.Contains(got[1].Text, "more") {
		t.Errorf("the person has %+v", got)
	}
}

// serve and doctor report what is wrong with a Discord bot, and what to do about it.
func TestDiscordSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		token  string
		wrong  func(*discordtest.Server)
		serves bool
		says   []string
	}{
		"another token":      {"NDI0Mg.OTHER-SECRET.x", nil, false, []string{"channels.discord.bot_token", "401"}},
		"no token":           {"client-SECRET", nil, false, []string{"channels.discord.bot_token", "three parts"}},
		"no message content": {parleytest.DiscordToken, func(dc *discordtest.Server) { dc.AllowContent(false) }, false, []string{"Message Content Intent"}},
		"no permissions":     {parleytest.DiscordToken, func(dc *discordtest.Server) { dc.SetPermissions(1 << 10) }, true, nil},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w, dc := parleytest.NewDiscord(t, parleytest.EchoModel, "")
			if c.wrong != nil {
				c.wrong(dc)
			}
			p := w.Serve("DISCORD=" + c.token)
			if c.serves {
				parleytest.WaitFor(t, "a session", func() bool { return dc.Connected() == 1 })
				p.Stop()
			} else if err := <-p.Ended; err == nil {
				t.Error("it serves")
			}
			doctor := w.Command("doctor")
			doctor.Env = append(doctor.Env, "DISCORD="+c.token)
			diagnosis, err := doctor.CombinedOutput()
			if err == nil {
				t.Error("doctor finds nothing wrong")
			}
			if c.serves && !strings.Contains(string(diagnosis), "Send Messages") {
				t.Errorf("doctor does not name what it lacks:\n%s", diagnosis)
			}
			for who, said := range map[string]string{"serve": p.Stderr.String(), "doctor": string(diagnosis)} {
				for _, want := range c.says {
					if !strings.Contains(said, want) {
						t.Errorf("%s does not name %q:\n%s", who, want, said)
					}
				}
				if strings.Contains(said, "SECRET") {
					t.Errorf("%s shows a token:\n%s", who, said)
				}
			}
		})
	}
}

// doctor checks which permissions the bot lacks in channels: in the channels that the configuration names and, while
// the bot serves, in the channels in which people spoke to the bot.
func TestDoctorLooksAtChannelsOfDiscord(t *testing.T) {
	t.Parallel()
	w, dc := parleytest.NewDiscord(t, parleytest.EchoModel, "[targets]\nalerts = [\"discord:100\"]\n")
	doctor := func() string {
		cmd := w.Command("doctor")
		cmd.Env = append(cmd.Env, "DISCORD="+parleytest.DiscordToken)
		out, _ := cmd.CombinedOutput() // doctor may find other problems here
		return string(out)
	}
	if said := doctor(); strings.Contains(said, "the bot lacks") {
		t.Errorf("nothing is lacking, and doctor says:\n%s", said)
	}
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(string(text), "introduce =", "chats = [\"100\", \"301\"]\nintroduce =", 1)), 0o600))
	if said := doctor(); !strings.Contains(said, "\"chats\" contains 301, which is a thread of the channel 300: it has no effect") || !strings.Contains(said, `write "300" instead`) {
		t.Errorf("of a thread among chats doctor says:\n%s", said)
	}
	parleytest.Must(t, os.WriteFile(w.File, text, 0o600))
	dc.Deny("100", discordtest.BotRole, 1<<15) // the right to attach files
	dc.Deny("300", discordtest.Guild, 1<<38)   // the right to send messages in threads
	const lacks, there = "the bot lacks Attach Files in #general (100) of the server Home (900)", "Send Messages in Threads in #a post (301)"
	if said := doctor(); !strings.Contains(said, lacks) || !strings.Contains(said, "in the channel's own") || strings.Contains(said, there) {
		t.Errorf("doctor says:\n%s", said)
	}
	p := w.Serve("DISCORD=" + parleytest.DiscordToken)
	dc.Say("301", "1", discordCalled+"hello")
	parleytest.DiscordSaid(t, dc, "301", 1)
	if said := doctor(); !strings.Contains(said, lacks) || !strings.Contains(said, there) {
		t.Errorf("doctor says:\n%s", said)
	}
	p.Stop()
}
