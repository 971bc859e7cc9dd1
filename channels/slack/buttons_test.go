package slack_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"parley/bus"
	"parley/channels"
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
		r.server.Raw(`{"type":"interactive","envelope_id":"` + id + `","payload":` + payload + `}`)
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
