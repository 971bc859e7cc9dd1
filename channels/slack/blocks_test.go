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

// partWithButton returns a part with a button.
func partWithButton(text string) channels.Part {
	p := textPart(text)
	p.Buttons = []bus.Button{{Label: "Approve", Says: "/approve abc"}}
	return p
}

// People must see the same text, whether or not it fits into a block.
func TestButtonsDoNotChangeTheText(t *testing.T) {
	r := newRig(t)
	for _, text := range []string{"*may* I?", strings.Repeat("x", 3000), strings.Repeat("x", 3001), strings.Repeat("😀", 1501)} {
		ts, err := r.Send(t.Context(), address("C1"), partWithButton(text))
		if err != nil {
			t.Fatal(err)
		}
		shown := func() slacktest.Message { all := r.server.Sent("C1"); return all[len(all)-1] }
		if m := shown(); m.TS != ts || m.Text != text || m.Shown != text || len(m.Buttons) != 1 || m.Buttons[0].Value != "/approve abc" {
			t.Errorf("%d characters: shown %+v", len(text), m)
		}
		if err := r.Edit(t.Context(), address("C1"), ts, textPart("approved")); err != nil {
			t.Fatal(err)
		}
		if m := shown(); m.Shown != "approved" || m.Buttons != nil {
			t.Errorf("%d characters: after the edit %+v", len(text), m)
		}
	}
}

func TestAPressIsPublishedAtItsMessagesAddress(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	root := r.server.Say("C1", "U1", "root")
	inThread := bus.Address{Channel: "slack", Chat: "C1", Thread: root}
	startConnected(t, r, m.publish)
	for i, to := range []bus.Address{inThread, address("C1"), address("D1")} {
		ts, err := r.Send(t.Context(), to, partWithButton("may I?"))
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

func TestAStrangersPressIsRefusedPrivately(t *testing.T) {
	r := newRig(t)
	ts, err := r.Send(t.Context(), address("C1"), partWithButton("may I?"))
	if err != nil {
		t.Fatal(err)
	}
	startConnected(t, r, func(_ context.Context, in bus.Inbound) error {
		if in.Pressed {
			return channels.ErrNotAdmitted
		}
		return nil
	})
	envelope := r.server.PressButton("C1", "U9", ts, "Approve")
	waitUntil(t, "it is refused", func() bool { return len(r.server.Whispers()) == 1 && r.server.Acked(envelope) })
	if w := r.server.Whispers()[0]; w != (slacktest.Whisper{Channel: "C1", User: "U9", Text: channels.TextNotAdmitted}) {
		t.Errorf("told %+v", w)
	}
}

// If a press isn't acknowledged, Slack tells the person who pressed that it failed.
func TestAPressThatCannotBePublishedIsNotAcknowledged(t *testing.T) {
	r := newRig(t)
	ts, err := r.Send(t.Context(), address("C1"), partWithButton("may I?"))
	if err != nil {
		t.Fatal(err)
	}
	stop := startConnected(t, r, func(_ context.Context, in bus.Inbound) error {
		if in.Pressed {
			return errors.New("the store is away")
		}
		return nil
	})
	envelope := r.server.PressButton("C1", "U1", ts, "Approve")
	waitUntil(t, "Slack gives up", func() bool { return strings.Contains(r.logs.String(), "was not stored in time") })
	if err := stop(); err != nil || r.server.Acked(envelope) {
		t.Errorf("ended with %v, acknowledged %v", err, r.server.Acked(envelope))
	}
}

func TestActionsThatAreNoPressAreAcknowledged(t *testing.T) {
	r := newRig(t)
	startConnected(t, r, newMessageRecorder(r).publish)
	for id, payload := range map[string]string{"view": `{"type":"view_submission","user":{"id":"U1"}}`, "bad": `{"user":1}`, "empty": `{"type":"block_actions"}`} {
		r.server.WriteFrame(`{"type":"interactive","envelope_id":"` + id + `","payload":` + payload + `}`)
		waitUntil(t, id, func() bool { return r.server.Acked(id) })
	}
}

func TestAnAppThatOnlySendsShowsNoButtons(t *testing.T) {
	c, err := slack.New(slack.Config{Name: "slack", BotToken: botToken})
	if err != nil {
		t.Fatal(err)
	}
	if got := channels.ShownButtons(c, partWithButton("x").Buttons); got != nil {
		t.Errorf("shown are %+v", got)
	}
}

// partWithHeading returns a part with a heading, as the dispatcher makes it.
func partWithHeading(key, text string) channels.Part {
	p := markup.Render("# "+text+"\n\n| a | b |\n|---|---|\n| 1 | 2 |", markup.SlackMrkdwn, 4000)[0]
	return channels.Part{Key: key, Text: p.Text, Plain: p.Plain, Markdown: p.Markdown}
}

// Slack gets Markdown as a block, and the plain text for notifications. An edit with Markdown keeps the block;
// an edit without it removes the block.
func TestMarkdownIsSentAsABlock(t *testing.T) {
	r := newRig(t)
	ts, err := r.Send(t.Context(), address("C1"), partWithHeading("k/0", "First"))
	if err != nil {
		t.Fatal(err)
	}
	shown := func() slacktest.Message { return r.server.Sent("C1")[0] }
	const want = "# First\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"
	if m := shown(); m.Markdown != want || m.Shown != want || m.Text != "*First*\n\n```\na | b\n--+--\n1 | 2\n```" || m.Key != "k/0" {
		t.Errorf("sent %+v", m)
	}
	if id, sent, err := r.FindSent(t.Context(), address("C1"), partWithHeading("k/0", "First")); err != nil || !sent || id != ts {
		t.Errorf("it is found as %q, %v, %v", id, sent, err)
	}
	if err := r.Edit(t.Context(), address("C1"), ts, partWithHeading("k/0", "Second")); err != nil {
		t.Fatal(err)
	}
	if m := shown(); !strings.HasPrefix(m.Markdown, "# Second") || !strings.HasPrefix(m.Text, "*Second*") {
		t.Errorf("edited %+v", m)
	}
	asked := partWithHeading("k/0", "Third")
	asked.Buttons = []bus.Button{{Label: "Approve", Says: "/approve abc"}}
	if err := r.Edit(t.Context(), address("C1"), ts, asked); err != nil {
		t.Fatal(err)
	}
	if m := shown(); !strings.HasPrefix(m.Shown, "# Third") || len(m.Buttons) != 1 {
		t.Errorf("with a button %+v", m)
	}
	if err := r.Edit(t.Context(), address("C1"), ts, textPart("*no more*")); err != nil {
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
		asked := partWithHeading(channels.PartKey("k", i), "Hello")
		asked.Buttons = []bus.Button{{Label: "Approve", Says: "/approve abc"}}
		ts, err := r.Send(t.Context(), address("C1"), asked)
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
		if err := r.Edit(t.Context(), address("C1"), ts, partWithHeading(channels.PartKey("k", i), "Edited")); err != nil {
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

// After a workspace has accepted Markdown, a refusal concerns only the message that was refused.
func TestOneRefusedBlockDoesNotStopMarkdown(t *testing.T) {
	r := newRig(t)
	send := func(key, want string) {
		t.Helper()
		if _, err := r.Send(t.Context(), address("C1"), partWithHeading(key, "Hello")); err != nil {
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
	// After a refusal that isn't about blocks, the message is not sent again without its block.
	before := r.server.Calls("chat.postMessage")
	r.server.Fail("chat.postMessage", "C1", 1, slacktest.Refuse("is_archived"))
	if _, err := r.Send(t.Context(), address("C1"), partWithHeading("k/9", "Hello")); requireSendError(t, err).Code != "is_archived" {
		t.Errorf("got %v", err)
	}
	if n := r.server.Calls("chat.postMessage") - before; n != 1 {
		t.Errorf("%d calls", n)
	}
}

// Slack accepts the Markdown of any text, and no such text mentions anybody.
func TestSlackAcceptsTheMarkdownOfEveryText(t *testing.T) {
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
			if _, err := r.Send(t.Context(), address("C1"), part); err != nil {
				t.Fatal(err)
			}
		}
	}
	sent := r.server.Sent("C1")
	if calls := r.server.Calls("chat.postMessage"); calls != len(sent) || n < 10 {
		t.Errorf("%d messages, %d of them Markdown, took %d calls", len(sent), n, calls)
	}
	for _, m := range sent {
		if m.NotifiesEverybody || strings.Contains(m.Markdown, "<@") {
			t.Errorf("it calls somebody: %q", m.Markdown)
		}
	}
}
