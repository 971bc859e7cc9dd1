package telegram_test

import (
	"context"
	"strings"
	"testing"

	"parley/bus"
	"parley/channels"
	"parley/channels/telegram"
	"parley/channels/telegram/telegramtest"
)

// asking is a part with a button.
func asking(text string) channels.Part {
	p := span(text)
	p.Buttons = []bus.Button{{Label: "Approve", Says: "/approve abc"}}
	return p
}

// answered waits for the answer to a press.
func answered(t *testing.T, r *rig, press string) telegramtest.Press {
	t.Helper()
	until(t, "the answer to the press", func() bool { return r.server.PressResult(press).Answered })
	return r.server.PressResult(press)
}

func TestAPressInAGroupIsHeardInItsTopic(t *testing.T) {
	r := newRig(t)
	to := bus.Address{Channel: "tg", Chat: "-7", Thread: "33"}
	if _, err := r.Send(t.Context(), to, asking("may I?")); err != nil {
		t.Fatal(err)
	}
	box := newMailbox()
	receive(t, r.Channel, box.publish)
	press := r.server.PressButton(-7, 5, 1, "Approve")
	in := box.wait(t, 1)[0]
	if in.At != to || in.From.ID != "tg:5" || in.From.Name != "User 5" || !in.Group || !in.Mentioned || !in.Pressed || in.Text != "/approve abc" || in.ReplyTo != "1" {
		t.Errorf("heard %+v", in)
	}
	if got := answered(t, r, press); got.Text != "" || got.Alert {
		t.Errorf("who pressed was shown %+v", got)
	}
}

// A process that dies before it confirms a press gets it again, under the same id.
func TestAPressThatComesAgainHasTheSameID(t *testing.T) {
	r := newRig(t)
	if _, err := r.Send(t.Context(), at("5"), asking("may I?")); err != nil {
		t.Fatal(err)
	}
	press := r.server.PressButton(5, 5, 1, "Approve")
	first := newMailbox()
	r.server.Fail(telegramtest.Fault{Method: "answerCallbackQuery", Times: 1, Act: telegramtest.Drop})
	stop := receive(t, r.Channel, func(ctx context.Context, in bus.Inbound) error {
		r.server.Fail(telegramtest.Fault{Method: "getUpdates", Times: 2, Act: telegramtest.Drop})
		return first.publish(ctx, in)
	})
	first.wait(t, 1)
	if err := stop(); err != nil {
		t.Errorf("Receive = %v", err)
	}
	r.server.ClearFaults()
	second := newMailbox()
	receive(t, r.channel(t, token), second.publish)
	if one, two := first.wait(t, 1)[0].ID, second.wait(t, 1)[0].ID; one != two || !strings.Contains(one, press) {
		t.Errorf("the ids are %s and %s", one, two)
	}
	answered(t, r, press)
}

func TestAStrangersPressIsRefusedAloud(t *testing.T) {
	r := newRig(t)
	if _, err := r.Send(t.Context(), at("-7"), asking("may I?")); err != nil {
		t.Fatal(err)
	}
	receive(t, r.Channel, func(context.Context, bus.Inbound) error { return channels.ErrNotAdmitted })
	if got := answered(t, r, r.server.PressButton(-7, 9, 1, "Approve")); got.Text != channels.NotAdmitted || !got.Alert {
		t.Errorf("who pressed was shown %+v", got)
	}
	until(t, "it is not asked for again", func() bool { return r.server.Unconfirmed() == 0 })
}

func TestPressesOfMessagesThatAreTooOldOrNotOursAreSurvived(t *testing.T) {
	r := newRig(t)
	box := newMailbox()
	receive(t, r.Channel, box.publish)
	from := map[string]any{"id": 5, "is_bot": false, "first_name": "Ann"}
	chat := map[string]any{"id": -7, "type": "supergroup"}
	r.server.QueueUpdate(map[string]any{"callback_query": map[string]any{"id": "inline", "from": from, "inline_message_id": "x", "chat_instance": "1", "data": "/approve abc"}})
	r.server.QueueUpdate(map[string]any{"callback_query": map[string]any{"id": "game", "from": from, "chat_instance": "1", "game_short_name": "g"}})
	r.server.QueueUpdate(map[string]any{"callback_query": map[string]any{"id": 7}})
	r.server.QueueUpdate(map[string]any{"callback_query": map[string]any{"id": "old", "from": from, "chat_instance": "1", "data": "/approve abc",
		"message": map[string]any{"chat": chat, "message_id": 3, "date": 0}}})
	in := box.wait(t, 1)[0]
	if in.At != at("-7") || in.ReplyTo != "3" || !strings.HasSuffix(in.ID, ":old") {
		t.Errorf("heard %+v", in)
	}
	until(t, "all are confirmed", func() bool { return r.server.Unconfirmed() == 0 })
	if len(box.wait(t, 1)) != 1 {
		t.Errorf("heard %+v", box.wait(t, 1))
	}
}

func TestAnAccountThatOnlySendsShowsNoButtons(t *testing.T) {
	c, err := telegram.New(telegram.Config{Name: "tg", Token: token, SendsOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := channels.ShownButtons(c, asking("x").Buttons); got != nil {
		t.Errorf("shown are %+v", got)
	}
}
