package slack_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/channels/slack"
	"parley/channels/slack/slacktest"
)

// asking is a part with a button.
func asking(text string) channels.Part {
	p := part(text)
	p.Buttons = []bus.Button{{Label: "Approve", Says: "/approve abc"}}
	return p
}

// What people see is the text, whether it fits into a block or not.
func TestButtonsLeaveTheTextAsItIs(t *testing.T) {
	r := newRig(t)
	for _, text := range []string{"*may* I?", strings.Repeat("x", 3000), strings.Repeat("x", 3001), strings.Repeat("😀", 1501)} {
		ts, err := r.Send(t.Context(), at("C1"), asking(text))
		if err != nil {
			t.Fatal(err)
		}
		shown := func() slacktest.Message { all := r.server.Sent("C1"); return all[len(all)-1] }
		if m := shown(); m.TS != ts || m.Text != text || m.Shown != text || len(m.Buttons) != 1 || m.Buttons[0].Value != "/approve abc" {
			t.Errorf("%d characters: shown %+v", len(text), m)
		}
		if err := r.Edit(t.Context(), at("C1"), ts, part("approved")); err != nil {
			t.Fatal(err)
		}
		if m := shown(); m.Shown != "approved" || m.Buttons != nil {
			t.Errorf("%d characters: after the edit %+v", len(text), m)
		}
	}
}

func TestAPressIsHeardWhereTheMessageStands(t *testing.T) {
	r := newRig(t)
	m := newMailbox(r)
	root := r.server.Say("C1", "U1", "root")
	inThread := bus.Address{Channel: "slack", Chat: "C1", Thread: root}
	connected(t, r, m.publish)
	for i, to := range []bus.Address{inThread, at("C1"), at("D1")} {
		ts, err := r.Send(t.Context(), to, asking("may I?"))
		if err != nil {
			t.Fatal(err)
		}
		r.server.PressButton(to.Chat, "U1", ts, "Approve")
		in := m.wait(t, i+1)[i]
		if in.At != to || in.ReplyTo != ts || in.Group != (to.Chat == "C1") || in.From.ID != "slack:U1" || in.From.Name != "Name of U1" || in.Text != "/approve abc" || !in.Pressed || in.SentAt.IsZero() {
			t.Errorf("heard %+v", in)
		}
	}
	if said := m.all(); said[0].ID == said[1].ID || said[1].ID == said[2].ID {
		t.Errorf("the ids are no ids: %+v", said)
	}
}

func TestAStrangersPressIsRefusedToThemAlone(t *testing.T) {
	r := newRig(t)
	ts, err := r.Send(t.Context(), at("C1"), asking("may I?"))
	if err != nil {
		t.Fatal(err)
	}
	connected(t, r, func(_ context.Context, in bus.Inbound) error {
		if in.Pressed {
			return channels.ErrNotAdmitted
		}
		return nil
	})
	envelope := r.server.PressButton("C1", "U9", ts, "Approve")
	until(t, "it is refused", func() bool { return len(r.server.Whispers()) == 1 && r.server.Acked(envelope) })
	if w := r.server.Whispers()[0]; w != (slacktest.Whisper{Channel: "C1", User: "U9", Text: channels.NotAdmitted}) {
		t.Errorf("told %+v", w)
	}
}

// Slack tells who has pressed that it failed, where it is not acknowledged.
func TestAPressThatCannotBeStoredIsNotAcknowledged(t *testing.T) {
	r := newRig(t)
	ts, err := r.Send(t.Context(), at("C1"), asking("may I?"))
	if err != nil {
		t.Fatal(err)
	}
	stop := connected(t, r, func(_ context.Context, in bus.Inbound) error {
		if in.Pressed {
			return errors.New("the store is away")
		}
		return nil
	})
	envelope := r.server.PressButton("C1", "U1", ts, "Approve")
	until(t, "Slack gives up", func() bool { return strings.Contains(r.logged.String(), "was not stored in time") })
	if err := stop(); err != nil || r.server.Acked(envelope) {
		t.Errorf("ended with %v, acknowledged %v", err, r.server.Acked(envelope))
	}
}

func TestWhatIsNoPressIsAcknowledged(t *testing.T) {
	r := newRig(t)
	connected(t, r, newMailbox(r).publish)
	for id, payload := range map[string]string{"view": `{"type":"view_submission","user":{"id":"U1"}}`, "bad": `{"user":1}`, "empty": `{"type":"block_actions"}`} {
		r.server.WriteFrame(`{"type":"interactive","envelope_id":"` + id + `","payload":` + payload + `}`)
		until(t, id, func() bool { return r.server.Acked(id) })
	}
}

func TestAnAppThatOnlySendsShowsNoButtons(t *testing.T) {
	c, err := slack.New(slack.Config{Name: "slack", BotToken: botToken})
	if err != nil {
		t.Fatal(err)
	}
	if got := channels.ShownButtons(c, asking("x").Buttons); got != nil {
		t.Errorf("shown are %+v", got)
	}
}

// rich is a part with a heading, as the dispatcher makes it.
func rich(key, text string) channels.Part {
	p := markup.Render("# "+text+"\n\n| a | b |\n|---|---|\n| 1 | 2 |", markup.SlackMrkdwn, 4000)[0]
	return channels.Part{Key: key, Text: p.Text, Plain: p.Plain, Markdown: p.Markdown}
}

// What Slack shows better as Markdown it is given so, its text beside it for notifications;
// an edit keeps that, and one without takes it away.
func TestMarkdownIsABlock(t *testing.T) {
	r := newRig(t)
	ts, err := r.Send(t.Context(), at("C1"), rich("k/0", "First"))
	if err != nil {
		t.Fatal(err)
	}
	shown := func() slacktest.Message { return r.server.Sent("C1")[0] }
	const want = "# First\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"
	if m := shown(); m.Markdown != want || m.Shown != want || m.Text != "*First*\n\n```\na | b\n--+--\n1 | 2\n```" || m.Key != "k/0" {
		t.Errorf("sent %+v", m)
	}
	if id, sent, err := r.FindSent(t.Context(), at("C1"), rich("k/0", "First")); err != nil || !sent || id != ts {
		t.Errorf("it is found as %q, %v, %v", id, sent, err)
	}
	if err := r.Edit(t.Context(), at("C1"), ts, rich("k/0", "Second")); err != nil {
		t.Fatal(err)
	}
	if m := shown(); !strings.HasPrefix(m.Markdown, "# Second") || !strings.HasPrefix(m.Text, "*Second*") {
		t.Errorf("edited %+v", m)
	}
	asked := rich("k/0", "Third")
	asked.Buttons = []bus.Button{{Label: "Approve", Says: "/approve abc"}}
	if err := r.Edit(t.Context(), at("C1"), ts, asked); err != nil {
		t.Fatal(err)
	}
	if m := shown(); !strings.HasPrefix(m.Shown, "# Third") || len(m.Buttons) != 1 {
		t.Errorf("with a button %+v", m)
	}
	if err := r.Edit(t.Context(), at("C1"), ts, part("*no more*")); err != nil {
		t.Fatal(err)
	}
	if m := shown(); m.Markdown != "" || m.Shown != "*no more*" || m.Buttons != nil {
		t.Errorf("without Markdown %+v", m)
	}
}

// A workspace that refuses markdown blocks is sent none from then on.
func TestAWorkspaceThatRefusesMarkdownGetsText(t *testing.T) {
	r := newRig(t)
	r.server.RefuseMarkdown(true)
	for i, calls := range []int{2, 1, 1} {
		before := r.server.Calls("chat.postMessage")
		asked := rich(channels.PartKey("k", i), "Hello")
		asked.Buttons = []bus.Button{{Label: "Approve", Says: "/approve abc"}}
		ts, err := r.Send(t.Context(), at("C1"), asked)
		if err != nil {
			t.Fatal(err)
		}
		if n := r.server.Calls("chat.postMessage") - before; n != calls {
			t.Errorf("message %d took %d calls, want %d", i, n, calls)
		}
		m := r.server.Sent("C1")[i]
		if m.TS != ts || m.Markdown != "" || m.Shown != asked.Text || len(m.Buttons) != 1 {
			t.Errorf("sent %+v", m)
		}
		if err := r.Edit(t.Context(), at("C1"), ts, rich(channels.PartKey("k", i), "Edited")); err != nil {
			t.Fatal(err)
		}
		if m := r.server.Sent("C1")[i]; !strings.HasPrefix(m.Shown, "*Edited*") || m.Markdown != "" || m.Buttons != nil {
			t.Errorf("edited %+v", m)
		}
	}
	if n := len(r.server.Sent("C1")); n != 3 {
		t.Errorf("%d messages", n)
	}
}

// What Slack refuses of one message says nothing of others, if it has taken Markdown before.
func TestOneRefusedBlockIsNoRefusalOfAll(t *testing.T) {
	r := newRig(t)
	send := func(key, want string) {
		t.Helper()
		if _, err := r.Send(t.Context(), at("C1"), rich(key, "Hello")); err != nil {
			t.Fatal(err)
		}
		all := r.server.Sent("C1")
		if m := all[len(all)-1]; !strings.HasPrefix(m.Shown, want) {
			t.Errorf("%s is shown as %q, want %q", key, m.Shown, want)
		}
	}
	send("k/0", "# Hello")
	for _, code := range []string{"invalid_blocks", "msg_blocks_too_long"} {
		r.server.Fail("chat.postMessage", "C1", 1, slacktest.Refuse(code))
		send("k/"+code, "*Hello*")
		send("k/after-"+code, "# Hello")
	}
	// Other refusals are not about blocks: the message is not tried again.
	before := r.server.Calls("chat.postMessage")
	r.server.Fail("chat.postMessage", "C1", 1, slacktest.Refuse("is_archived"))
	if _, err := r.Send(t.Context(), at("C1"), rich("k/9", "Hello")); sendError(t, err).Code != "is_archived" {
		t.Errorf("got %v", err)
	}
	if n := r.server.Calls("chat.postMessage") - before; n != 1 {
		t.Errorf("%d calls", n)
	}
}

// Whatever a text has in it, Slack takes its Markdown, and it calls nobody.
func TestSlackTakesTheMarkdownOfEveryText(t *testing.T) {
	r := newRig(t)
	const call = "<!channel> @here <!here|x> <@U1> &lt;!channel&gt; `<!everyone>` [a](https://x.example/<!channel>)"
	table := "| a <!channel> | `<!here>` |\n|--|--|\n" + strings.Repeat("| 1 | <!everyone> |\n", 150) + "\n"
	wide := "| a | b |\n|--|--|\n" + strings.Repeat("| "+strings.Repeat("word ", 20)+" | <!here> |\n", 30) + "\n"
	columns := strings.Repeat("| c ", 21) + "|\n" + strings.Repeat("|--", 21) + "|\n" + strings.Repeat("| x ", 21) + "|\n\n"
	n := 0
	for _, text := range []string{
		"# " + call + "\n\n" + call, "# a\n\n" + table, table + table, wide + "# b\n\n" + wide, columns,
		strings.Repeat("# "+call+"\n\n", 100), "```go\n<!channel> <@U1> <#C1>\n```\n# x", "# <\n\n" + strings.Repeat("<&>*_~`[] ", 900),
	} {
		for i, p := range markup.Render(text, markup.SlackMrkdwn, r.Limits().Length) {
			if p.Markdown != "" {
				n++
			}
			part := channels.Part{Key: channels.PartKey("k", i), Text: p.Text, Plain: p.Plain, Markdown: p.Markdown}
			if _, err := r.Send(t.Context(), at("C1"), part); err != nil {
				t.Fatal(err)
			}
		}
	}
	sent := r.server.Sent("C1")
	if calls := r.server.Calls("chat.postMessage"); calls != len(sent) || n < 10 {
		t.Errorf("%d messages, %d of them Markdown, took %d calls", len(sent), n, calls)
	}
	for _, m := range sent {
		if m.Calls || strings.Contains(m.Markdown, "<@") {
			t.Errorf("it calls somebody: %q", m.Markdown)
		}
	}
}
