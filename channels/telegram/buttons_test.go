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

// partWithButton returns a part with a button.
func partWithButton(text string) channels.Part {
	p := textPart(text)
	p.Buttons = []bus.Button{{Label: "Approve", Says: "/approve abc"}}
	return p
}

// awaitPressAnswer waits until a press is answered, and returns it with its answer.
func awaitPressAnswer(t *testing.T, r *rig, press string) telegramtest.Press {
	t.Helper()
	waitUntil(t, "the answer to the press", func() bool { return r.server.PressResult(press).Answered })
	return r.server.PressResult(press)
}

func TestAPressInAGroupIsPublishedInItsTopic(t *testing.T) {
	r := newRig(t)
	to := bus.Address{Channel: "tg", Chat: "-7", Thread: "33"}
	if _, err := r.Send(t.Context(), to, partWithButton("may I?")); err != nil {
		t.Fatal(err)
	}
	box := newMessageRecorder()
	startReceiving(t, r.Channel, box.publish)
	press := r.server.PressButton(-7, 5, 1, "Approve")
	in := box.wait(t, 1)[0]
	if in.At != to || in.From.ID != "tg:5" || in.From.Name != "User 5" || !in.Group || !in.Mentioned || !in.Pressed || in.Text != "/approve abc" || in.ReplyTo != "1" {
		t.Errorf("heard %+v", in)
	}
	if got := awaitPressAnswer(t, r, press); got.Text != "" || got.ShownAsAlert {
		t.Errorf("who pressed was shown %+v", got)
	}
}

// If a process dies before it confirms a press, the next one gets the press again, with the same id.
func TestARepeatedPressHasTheSameID(t *testing.T) {
	r := newRig(t)
	if _, err := r.Send(t.Context(), address("5"), partWithButton("may I?")); err != nil {
		t.Fatal(err)
	}
	press := r.server.PressButton(5, 5, 1, "Approve")
	first := newMessageRecorder()
	r.server.Fail(telegramtest.Fault{Method: "answerCallbackQuery", Times: 1, Act: telegramtest.Drop})
	stop := startReceiving(t, r.Channel, func(ctx context.Context, in bus.Inbound) error {
		r.server.Fail(telegramtest.Fault{Method: "getUpdates", Times: 2, Act: telegramtest.Drop})
		return first.publish(ctx, in)
	})
	first.wait(t, 1)
	if err := stop(); err != nil {
		t.Errorf("Receive = %v", err)
	}
	r.server.ClearFaults()
	second := newMessageRecorder()
	startReceiving(t, r.newChannel(t, token), second.publish)
	if one, two := first.wait(t, 1)[0].ID, second.wait(t, 1)[0].ID; one != two || !strings.Contains(one, press) {
		t.Errorf("the ids are %s and %s", one, two)
	}
	awaitPressAnswer(t, r, press)
}

func TestAStrangersPressIsRefused(t *testing.T) {
	r := newRig(t)
	if _, err := r.Send(t.Context(), address("-7"), partWithButton("may I?")); err != nil {
		t.Fatal(err)
	}
	startReceiving(t, r.Channel, func(context.Context, bus.Inbound) error { return channels.ErrNotAdmitted })
	if got := awaitPressAnswer(t, r, r.server.PressButton(-7, 9, 1, "Approve")); got.Text != channels.TextNotAdmitted || !got.ShownAsAlert {
		t.Errorf("who pressed was shown %+v", got)
	}
	waitUntil(t, "it is not asked for again", func() bool { return r.server.Unconfirmed() == 0 })
}

func TestPressesOfOldOrForeignMessages(t *testing.T) {
	r := newRig(t)
	box := newMessageRecorder()
	startReceiving(t, r.Channel, box.publish)
	from := map[string]any{"id": 5, "is_bot": false, "first_name": "Ann"}
	chat := map[string]any{"id": -7, "type": "supergroup"}
	r.server.QueueUpdate(map[string]any{"callback_query": map[string]any{"id": "inline", "from": from, "inline_message_id": "x", "chat_instance": "1", "data": "/approve abc"}})
	r.server.QueueUpdate(map[string]any{"callback_query": map[string]any{"id": "game", "from": from, "chat_instance": "1", "game_short_name": "g"}})
	r.server.QueueUpdate(map[string]any{"callback_query": map[string]any{"id": 7}})
	r.server.QueueUpdate(map[string]any{"callback_query": map[string]any{"id": "old", "from": from, "chat_instance": "1", "data": "/approve abc",
		"message": map[string]any{"chat": chat, "message_id": 3, "date": 0}}})
	in := box.wait(t, 1)[0]
	if in.At != address("-7") || in.ReplyTo != "3" || !strings.HasSuffix(in.ID, ":old") {
		t.Errorf("heard %+v", in)
	}
	waitUntil(t, "all are confirmed", func() bool { return r.server.Unconfirmed() == 0 })
	if len(box.wait(t, 1)) != 1 {
		t.Errorf("heard %+v", box.wait(t, 1))
	}
}

func TestAnAccountThatOnlySendsShowsNoButtons(t *testing.T) {
	c, err := telegram.New(telegram.Config{Name: "tg", Token: token, SendsOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := channels.ShownButtons(c, partWithButton("x").Buttons); got != nil {
		t.Errorf("shown are %+v", got)
	}
}
