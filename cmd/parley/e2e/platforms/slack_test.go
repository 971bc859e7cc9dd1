package platforms

import (
	"fmt"
	"html"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/channels/slack/slacktest"
	"parley/cmd/parley/parleytest"
)

func TestTeamSlack(t *testing.T) {
	t.Parallel()
	w, sl := parleytest.NewSlack(t, parleytest.EchoModel)
	for n := range 200 {
		sl.AddUser(slacktest.User{ID: fmt.Sprintf("U%03d", n), Name: fmt.Sprint("Member ", n)})
	}
	sl.AddUser(slacktest.User{ID: "UGUEST", Name: "Guest", Guest: true})
	tokens := []string{"SLACK_BOT_TOKEN=" + parleytest.SlackBot, "SLACK_APP_TOKEN=" + parleytest.SlackApp}
	p := w.Serve(tokens...)

	// The bot answers everybody's direct messages, each in a separate conversation.
	for n := range 200 {
		sl.Say(fmt.Sprintf("D%03d", n), fmt.Sprintf("U%03d", n), fmt.Sprint("hello ", n))
	}
	for n := range 200 {
		channel, hello := fmt.Sprintf("D%03d", n), fmt.Sprint("hello ", n)
		said := func() string { return parleytest.SlackSaid(t, sl, channel, 1)[0].Text }
		for deadline := time.Now().Add(parleytest.Patience); !strings.Contains(said(), hello); { // at first it may be a draft
			if time.Now().After(deadline) {
				t.Fatalf("member %d got %+v", n, sl.Sent(channel))
			}
			<-time.After(5 * time.Millisecond)
		}
	}
	// In a channel, the first message has to mention the bot; later messages in the thread need not.
	sl.Say("C1", "U001", "not for the bot")
	root := sl.Say("C1", "U001", "<@"+slacktest.Bot+"> first")
	if got := parleytest.SlackSaid(t, sl, "C1", 1)[0]; got.Thread != root || !strings.Contains(got.Text, "first") {
		t.Errorf("the mention got %+v", got)
	}
	sl.Reply("C1", root, "U002", "second")
	if got := parleytest.SlackSaid(t, sl, "C1", 2)[1]; got.Thread != root || !strings.Contains(got.Text, "second") {
		t.Errorf("the thread got %+v", got)
	}
	// A guest is told why the bot does not answer, and the bot stores nothing about them.
	sl.Say("DGUEST", "UGUEST", "xyzzy-guest")
	if got := parleytest.SlackSaid(t, sl, "DGUEST", 1)[0].Text; strings.Contains(got, "you said") {
		t.Errorf("a guest got %q", got)
	}
	if found := parleytest.FilesWith(t, w.Home, "xyzzy-guest"); len(found) > 0 {
		t.Errorf("what a guest said is in %v", found)
	}
	parleytest.WaitFor(t, "every event to be acknowledged", func() bool { return sl.Unacked() == 0 })

	// Messages that arrive while no server runs are answered once by the next server.
	p.Stop()
	sl.Say("D005", "U005", "while you were away")
	w.Serve(tokens...)
	got := parleytest.SlackSaid(t, sl, "D005", 2)
	if !strings.Contains(got[1].Text, "while you were away") {
		t.Errorf("after the restart member 5 has %+v", got)
	}
	sl.Say("D006", "U006", "still there")
	parleytest.SlackSaid(t, sl, "D006", 2)
	for n := range 200 {
		want := 1
		if n == 5 || n == 6 {
			want = 2
		}
		if got := sl.Sent(fmt.Sprintf("D%03d", n)); len(got) != want {
			t.Errorf("member %d has %d answers, want %d", n, len(got), want)
		}
	}
}

// If Slack does not say who one person is, nobody else waits for that, even after a restart. The bot tries again in
// order after a temporary error, and refuses the person after a lasting one.
func TestSlackDoesNotTellWhoOnePersonIs(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"internal_error", "fatal_error", "service_unavailable", "ratelimited", "request_timeout", "missing_scope"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w, sl := parleytest.NewSlack(t, parleytest.EchoModel)
			env := []string{"SLACK_BOT_TOKEN=" + parleytest.SlackBot, "SLACK_APP_TOKEN=" + parleytest.SlackApp}
			p := w.Serve(env...)
			sl.Fail("users.info", "UBAD", 0, slacktest.Refuse(code))
			called := "<@" + slacktest.Bot + "> "
			roots := []string{sl.Say("C1", "UBAD", called+"bad one"), sl.Say("C1", "UBAD", called+"bad two")}
			sl.Say("C1", "U001", called+"good one")
			if got := parleytest.SlackSaid(t, sl, "C1", 1)[0].Text; !strings.Contains(got, "good one") {
				t.Fatalf("the first answer is %q", got)
			}
			if n := sl.Unacked(); n == 0 {
				t.Error("what is not judged was acknowledged")
			}
			p.Stop()
			sl.DropUnacked() // Slack stops delivering the messages; the history contains them
			p = w.Serve(env...)
			sl.Say("C1", "U001", called+"good two")
			if got := parleytest.SlackSaid(t, sl, "C1", 2)[1].Text; !strings.Contains(got, "good two") {
				t.Fatalf("after a restart the next answer is %q", got)
			}
			sl.ClearFaults()
			for i, m := range parleytest.SlackSaid(t, sl, "C1", 4)[2:] {
				if !slices.Contains(roots, m.Thread) || !strings.Contains(m.Text, "bad ") {
					t.Errorf("answer %d is %+v", i, m)
				}
			}
			p.Stop()
		})
	}
}

func TestSlackRefusesWhomItDoesNotTellAboutForGood(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"access_denied", "user_not_found", "user_not_visible", "no_permission"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w, sl := parleytest.NewSlack(t, parleytest.EchoModel)
			p := w.Serve("SLACK_BOT_TOKEN="+parleytest.SlackBot, "SLACK_APP_TOKEN="+parleytest.SlackApp)
			sl.Fail("users.info", "UBAD", 0, slacktest.Refuse(code))
			sl.Say("DBAD", "UBAD", "xyzzy-unknown")
			if got := parleytest.SlackSaid(t, sl, "DBAD", 1)[0].Text; !strings.Contains(got, "slack:UBAD") || !strings.Contains(got, "full members") {
				t.Errorf("they got %q", got)
			}
			parleytest.WaitFor(t, "every event to be acknowledged", func() bool { return sl.Unacked() == 0 })
			if !strings.Contains(p.Stderr.String(), code) || strings.Contains(p.Stderr.String(), "xyzzy-unknown") {
				t.Errorf("the log says %s", p.Stderr.String())
			}
		})
	}
}

// serve and doctor report what is wrong with a Slack app, the setting that it concerns, and what to do.
func TestSlackSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		bot, app string
		wrong    func(*slacktest.Server)
		serves   bool
		says     []string
	}{
		"another app's bot token": {"xoxb-other", parleytest.SlackApp, nil, false, []string{"channels.slack.bot_token", "invalid_auth"}},
		"another app's app token": {parleytest.SlackBot, "xapp-other", nil, false, []string{"channels.slack.app_token", "invalid_auth"}},
		"the wrong kind of token": {parleytest.SlackBot, parleytest.SlackBot, nil, false, []string{"channels.slack.app_token", "begins with xapp-"}},
		"an app token without its scope": {parleytest.SlackBot, parleytest.SlackApp, func(sl *slacktest.Server) {
			sl.Fail("apps.connections.open", "", 0, slacktest.Refuse("missing_scope"))
		}, false, []string{"channels.slack.app_token", "connections:write"}},
		"an app without a scope": {parleytest.SlackBot, parleytest.SlackApp, func(sl *slacktest.Server) { sl.SetScopes("chat:write", "im:history") }, true, []string{"users:read", "install the app again"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w, sl := parleytest.NewSlack(t, parleytest.EchoModel)
			if c.wrong != nil {
				c.wrong(sl)
			}
			env := []string{"SLACK_BOT_TOKEN=" + c.bot, "SLACK_APP_TOKEN=" + c.app}
			p := w.Serve(env...)
			if c.serves {
				parleytest.WaitFor(t, "a word about it", func() bool { return strings.Contains(p.Stderr.String(), c.says[0]) })
				p.Stop()
			} else if err := <-p.Ended; err == nil {
				t.Error("it serves")
			}
			doctor := w.Command("doctor")
			doctor.Env = append(doctor.Env, env...)
			diagnosis, err := doctor.CombinedOutput()
			if err == nil {
				t.Error("doctor finds nothing wrong")
			}
			for _, want := range c.says {
				for who, said := range map[string]string{"serve": p.Stderr.String(), "doctor": string(diagnosis)} {
					if !strings.Contains(said, want) {
						t.Errorf("%s does not name %q:\n%s", who, want, said)
					}
					if strings.Contains(said, "-parley-test") || strings.Contains(said, "-other") {
						t.Errorf("%s shows a token:\n%s", who, said)
					}
				}
			}
		})
	}
}

// A stranger who mentions the bot in a channel gets a message that only they can see. The command in that message
// admits them.
func TestSlackTellsAStrangerInAChannel(t *testing.T) {
	t.Parallel()
	w, sl := parleytest.NewSlack(t, parleytest.EchoModel)
	text, err := os.ReadFile(w.File)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.File, []byte(strings.Replace(string(text), `access = "members"`, "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"SLACK_BOT_TOKEN=" + parleytest.SlackBot, "SLACK_APP_TOKEN=" + parleytest.SlackApp}
	w.Serve(env...)
	called := "<@" + slacktest.Bot + "> "
	for range 3 {
		sl.Say("C1", "U7", called+"xyzzy-secret")
	}
	sl.Say("C1", "U8", "not to the bot")
	parleytest.WaitFor(t, "a word to the stranger", func() bool { return len(sl.Whispers()) > 0 })
	parleytest.WaitFor(t, "every event to be acknowledged", func() bool { return sl.Unacked() == 0 })
	all := sl.Whispers()
	if got := all[0]; len(all) != 1 || got.Channel != "C1" || got.User != "U7" || got.Thread != "" || !strings.Contains(got.Text, "slack:U7") {
		t.Fatalf("whispered %+v", all)
	}
	if sent := sl.Sent("C1"); len(sent) != 0 {
		t.Errorf("everybody sees %+v", sent)
	}
	if found := parleytest.FilesWith(t, w.Home, "xyzzy-secret"); len(found) > 0 {
		t.Errorf("what a stranger said is in %v", found)
	}
	_, command, _ := strings.Cut(all[0].Text, "parley pairing approve ")
	approve := w.Command("pairing", "approve", strings.Fields(command)[0])
	approve.Env = append(approve.Env, env...)
	if out, err := approve.CombinedOutput(); err != nil {
		t.Fatalf("approve: %v\n%s", err, out)
	}
	sl.Say("C1", "U7", called+"now?")
	if got := parleytest.SlackSaid(t, sl, "C1", 1)[0].Text; !strings.Contains(got, "now?") {
		t.Errorf("once admitted they got %q", got)
	}
}

// Slack does not pass on messages that begin with a slash, so each text that names a command names it in a form that
// works on Slack.
func TestSlackIsToldOfCommandsThatCanBeSaid(t *testing.T) {
	t.Parallel()
	w, sl := parleytest.NewSlack(t, parleytest.EchoModel)
	text, err := os.ReadFile(w.File)
	if err != nil {
		t.Fatal(err)
	}
	unowned := strings.Replace(strings.Replace(string(text), `access = "members"`, "", 1), `owners = ["U01ADMIN"]`, "", 1)
	if err := os.WriteFile(w.File, []byte(unowned), 0o600); err != nil {
		t.Fatal(err)
	}
	p := w.Serve("SLACK_BOT_TOKEN="+parleytest.SlackBot, "SLACK_APP_TOKEN="+parleytest.SlackApp)
	parleytest.WaitFor(t, "the owner's code", func() bool { return strings.Contains(p.Stderr.String(), "!start ") })
	_, offer, _ := strings.Cut(p.Stderr.String(), "!start ")
	code, _, _ := strings.Cut(offer, `"`) // the end of the record's text
	sl.Say("D1", "U1", "!start "+code)
	if got := parleytest.SlackSaid(t, sl, "D1", 1)[0].Text; !strings.Contains(got, "You own this bot") || !strings.Contains(got, "!help") {
		t.Errorf("the owner was told %q", got)
	}
	sl.Say("D1", "U1", "!help")
	if got := parleytest.SlackSaid(t, sl, "D1", 2)[1].Text; !strings.Contains(got, "!stop") || strings.Contains(got, "/stop") {
		t.Errorf("help says %q", got)
	}
	pairing := func(args ...string) (string, error) {
		cmd := w.Command(append([]string{"pairing"}, args...)...)
		cmd.Env = append(cmd.Env, "SLACK_BOT_TOKEN="+parleytest.SlackBot, "SLACK_APP_TOKEN="+parleytest.SlackApp)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := pairing("owner"); err == nil || !strings.Contains(out, "parley pairing revoke slack:U1") {
		t.Errorf("pairing owner where there is one: %q, %v", out, err)
	}
	if out, err := pairing("revoke", "slack:U1"); err != nil {
		t.Errorf("pairing revoke: %q, %v", out, err)
	}
	if out, err := pairing("owner"); err != nil || !strings.Contains(out, "!start ") {
		t.Errorf("pairing owner: %q, %v", out, err)
	}
}

// On Slack, a slow answer is shown while it is written, in one message.
func TestSlackShowsTheAnswerBeingMade(t *testing.T) {
	t.Parallel()
	const half = "a beginning that is long enough to be worth showing before the rest of it is there"
	rest := make(chan struct{})
	w, sl := parleytest.NewSlack(t, func(agenttest.Request) agenttest.Response {
		r := agenttest.Raw(
			`data: {"choices":[{"index":0,"delta":{"content":"`+half+`"}}]}`+"\n\n",
			`data: {"choices":[{"index":0,"delta":{"content":", and the end"}}]}`+"\n\n"+
				`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n",
		)
		r.Parts[1].Wait = rest
		return r
	})
	w.Serve("SLACK_BOT_TOKEN="+parleytest.SlackBot, "SLACK_APP_TOKEN="+parleytest.SlackApp)
	said := sl.Say("D001", "U001", "tell me")
	// The bot may hold back the last letters of a draft, because they might be the beginning of a secret.
	if got := parleytest.SlackSaid(t, sl, "D001", 1)[0].Text; !strings.Contains(got, strings.TrimSuffix(half, " there")) {
		t.Errorf("meanwhile it says %q", got)
	}
	close(rest)
	parleytest.WaitFor(t, "the whole answer", func() bool { return strings.Contains(sl.Sent("D001")[0].Text, "and the end") })
	parleytest.WaitFor(t, "the mark that it is answered", func() bool { return len(sl.Reactions("D001", said)) > 0 })
	if got := sl.Sent("D001"); len(got) != 1 || got[0].Edits == 0 {
		t.Errorf("the chat has %+v, want one message that was edited", got)
	}
}

// Slack allows fewer characters in an edit than in a new message for some scripts. A long answer in any script is still
// shown once and completely.
func TestSlackShowsALongAnswerInAnyScriptOnce(t *testing.T) {
	t.Parallel()
	for what, sentence := range map[string]string{"japanese": "これは長い答えの一文です。", "emoji": "👍🎉✅ ", "entities": "a & b < c. "} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			half, rest := strings.Repeat(sentence, 3800/2/len(sentence)), make(chan struct{})
			whole := strings.TrimSpace(strings.Repeat(sentence, 3800/len([]rune(sentence))))
			w, sl := parleytest.NewSlack(t, func(agenttest.Request) agenttest.Response {
				r := agenttest.Raw(
					`data: {"choices":[{"index":0,"delta":{"content":"`+half+`"}}]}`+"\n\n",
					`data: {"choices":[{"index":0,"delta":{"content":"`+strings.TrimPrefix(whole, half)+`"}}]}`+"\n\n"+
						`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n",
				)
				r.Parts[1].Wait = rest
				return r
			})
			w.Serve("SLACK_BOT_TOKEN="+parleytest.SlackBot, "SLACK_APP_TOKEN="+parleytest.SlackApp)
			said := sl.Say("D001", "U001", "tell me")
			parleytest.SlackSaid(t, sl, "D001", 1)
			close(rest)
			parleytest.WaitFor(t, "the mark that it is answered", func() bool { return slices.Contains(sl.Reactions("D001", said), "white_check_mark") })
			var all []string
			for _, m := range sl.Sent("D001") {
				if len(m.Text) > 4000 && m.Edits > 0 || strings.Contains(m.Text, "…") {
					t.Errorf("a message of %d bytes ends %q", len(m.Text), m.Text[len(m.Text)-20:])
				}
				all = append(all, m.Text)
			}
			letters := func(text string) string { return strings.Join(strings.Fields(html.UnescapeString(text)), "") }
			if got := letters(strings.Join(all, "")); got != letters(whole) {
				t.Errorf("%d messages show %d bytes of an answer of %d", len(all), len(got), len(letters(whole)))
			}
		})
	}
}

// On Slack, an answer with a table is shown in Slack's own markup while it is written, and then becomes Markdown in the
// same message. If the workspace refuses Markdown, the answer stays text.
func TestSlackShowsTables(t *testing.T) {
	t.Parallel()
	const table = "# Prices\n\n| plan | price |\n| --- | --: |\n| Team | 49 € |"
	for _, refused := range []bool{false, true} {
		t.Run(fmt.Sprint(refused), func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			w, sl := parleytest.NewSlack(t, func(agenttest.Request) agenttest.Response {
				r := agenttest.Reply("These are the prices that you have asked for.\n\n" + table)
				r = r.Split(r.Len() * 3 / 4)
				r.Parts[1].Wait = release
				return r
			})
			sl.RefuseMarkdown(refused)
			sl.AddUser(slacktest.User{ID: "U1", Name: "Ada"})
			w.Serve("SLACK_BOT_TOKEN="+parleytest.SlackBot, "SLACK_APP_TOKEN="+parleytest.SlackApp)
			sl.Say("D1", "U1", "prices?")
			if draft := parleytest.SlackSaid(t, sl, "D1", 1)[0]; draft.Markdown != "" || !strings.HasPrefix(draft.Shown, "These") {
				t.Errorf("the draft is %+v", draft)
			}
			close(release)
			want := table
			if refused {
				want = "*Prices*\n\n```\nplan | price\n-----+------\nTeam |  49 €\n```"
			}
			parleytest.WaitFor(t, "the whole answer", func() bool { return strings.HasSuffix(sl.Sent("D1")[0].Shown, want) })
			if all := sl.Sent("D1"); len(all) != 1 || all[0].Markdown == "" != refused {
				t.Errorf("sent %+v", all)
			}
		})
	}
}

// The caps of the example configuration for a team hold for each member, in every chat.
func TestTeamSlackHasCaps(t *testing.T) {
	t.Parallel()
	w, sl := parleytest.NewSlack(t, agenttest.Always(parleytest.Costs("1.999")))
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(string(text), "price_input = 0\n", "price_input = 0.25\nprice_output = 2\n", 1)), 0o600))
	for _, id := range []string{"U001", "U002"} {
		sl.AddUser(slacktest.User{ID: id, Name: "Member"})
	}
	p := w.Serve("SLACK_BOT_TOKEN="+parleytest.SlackBot, "SLACK_APP_TOKEN="+parleytest.SlackApp)
	sl.Say("D001", "U001", "hello")
	if got := parleytest.SlackSaid(t, sl, "D001", 1)[0].Text; got != "fine" {
		t.Errorf("the first is told %q", got)
	}
	sl.Say("D001", "U001", "hello again") // comes after the end of the turn
	if got := parleytest.SlackSaid(t, sl, "D001", 2)[1].Text; !strings.Contains(got, "You've used $1.9990 of the $2.00 that a person can spend in a day") {
		t.Errorf("over the cap: %q", got)
	}
	sl.Say("C1", "U001", "<@"+slacktest.Bot+"> and here?")
	if got := parleytest.SlackSaid(t, sl, "C1", 1)[0].Text; !strings.Contains(got, "$2.00") {
		t.Errorf("over the cap, in a channel: %q", got)
	}
	sl.Say("D002", "U002", "hello")
	if got := parleytest.SlackSaid(t, sl, "D002", 1)[0].Text; got != "fine" {
		t.Errorf("another is told %q", got)
	}
	p.Stop()
}
