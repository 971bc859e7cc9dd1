package telegram_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/telegram/telegramtest"
)

// A process that dies in the middle of a batch has confirmed none of its updates.
func TestUnpublishedUpdatesOfADeadProcessComeAgain(t *testing.T) {
	r := newRig(t)
	for i := range 4 {
		r.server.Say(1, 1, fmt.Sprint(i))
	}
	first := newMessageRecorder()
	stuck := make(chan struct{})
	stop := startReceiving(t, r.Channel, func(ctx context.Context, in bus.Inbound) error {
		if in.Text == "2" {
			close(stuck)
			<-ctx.Done() // the process dies here
			return ctx.Err()
		}
		return first.publish(ctx, in)
	})
	<-stuck
	r.server.Fail(telegramtest.Fault{Method: "getUpdates", Times: 1, Act: telegramtest.Drop}) // the process dies before it confirms the handled updates
	if err := stop(); err != nil {
		t.Errorf("Receive = %v", err)
	}
	if n := r.server.Unconfirmed(); n != 4 {
		t.Errorf("%d of 4 updates are still held", n)
	}
	second := newMessageRecorder()
	startReceiving(t, r.newChannel(t, token), second.publish)
	again := second.wait(t, 4)
	for i, in := range again {
		if in.Text != fmt.Sprint(i) {
			t.Errorf("message %d is %q", i, in.Text)
		}
	}
	for i, in := range first.wait(t, 2) {
		if in.ID != again[i].ID {
			t.Errorf("the same message has the ids %s and %s", in.ID, again[i].ID)
		}
	}
}

func TestPublishedUpdatesAreConfirmedAtShutdown(t *testing.T) {
	r := newRig(t)
	for i := range 4 {
		r.server.Say(1, 1, fmt.Sprint(i))
	}
	stuck := make(chan struct{})
	stop := startReceiving(t, r.Channel, func(ctx context.Context, in bus.Inbound) error {
		if in.Text != "2" {
			return nil
		}
		close(stuck)
		<-ctx.Done()
		return ctx.Err()
	})
	<-stuck
	if err := stop(); err != nil {
		t.Errorf("Receive = %v", err)
	}
	if n := r.server.Unconfirmed(); n != 2 {
		t.Errorf("%d updates are left for the next start, want 2", n)
	}
}

func TestARefusedTokenStopsReceiving(t *testing.T) {
	r := newRig(t)
	for _, status := range []int{401, 404} {
		r.server.Fail(telegramtest.Fault{Status: status, Description: "no"})
		err := r.Receive(t.Context(), newMessageRecorder().publish)
		if e := requireSendError(t, err); e.Fault != channels.Stop {
			t.Errorf("%d gives %v, want stop", status, e)
		}
		r.server.ClearFaults()
	}
}

// Receive continues after each of these outages: what was said in the meantime arrives, and the log reports the
// beginning and the end of the outage once.
func TestReceiveContinuesAfterOutages(t *testing.T) {
	for what, c := range map[string]struct {
		fault telegramtest.Fault
		says  string
	}{
		"a second poller":       {telegramtest.Fault{Status: 409, Description: "Conflict"}, "call deleteWebhook"},
		"a flood":               {telegramtest.Fault{Status: 429, RetryAfter: 1}, "asks to poll later"},
		"a broken gateway":      {telegramtest.Fault{Status: 502, Raw: "<html>Bad Gateway</html>"}, "cannot be reached"},
		"a gateway's 404":       {telegramtest.Fault{Status: 404, Raw: "<html>Not Found</html>"}, "cannot be reached"},
		"resets":                {telegramtest.Fault{Act: telegramtest.Drop}, "cannot be reached"},
		"answers that are lost": {telegramtest.Fault{Act: telegramtest.Cut}, "cannot be reached"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			c.fault.Method, c.fault.Times = "getUpdates", 2
			r.server.Fail(c.fault)
			r.server.Say(1, 1, "hello")
			box := newMessageRecorder()
			began := time.Now()
			stop := startReceiving(t, r.Channel, box.publish)
			box.wait(t, 1)
			if c.fault.RetryAfter > 0 && time.Since(began) < 2*time.Second {
				t.Error("retry_after was not honoured")
			}
			if err := stop(); err != nil {
				t.Errorf("Receive = %v", err)
			}
			log := r.logs.String()
			if strings.Count(log, c.says) != 1 || strings.Count(log, "polled again") != 1 {
				t.Errorf("logged:\n%s", log)
			}
		})
	}
}

func TestReceiveContinuesAfterAServerRestart(t *testing.T) {
	r := newRig(t)
	box := newMessageRecorder()
	startReceiving(t, r.Channel, box.publish)
	waitUntil(t, "the first poll", func() bool { return r.server.Calls("getUpdates") == 1 })
	if err := r.server.Close(); err != nil {
		t.Fatal(err)
	}
	r.server.Say(1, 1, "while away")
	waitUntil(t, "it is noticed", func() bool { return strings.Contains(r.logs.String(), "cannot be reached") })
	if _, err := r.server.Start(strings.TrimPrefix(r.url, "http://")); err != nil {
		t.Fatal(err)
	}
	if in := box.wait(t, 1)[0]; in.Text != "while away" {
		t.Errorf("got %q", in.Text)
	}
}

func TestTwoPollersTakeTurnsAndLoseNothing(t *testing.T) {
	r := newRig(t)
	box := newMessageRecorder()
	startReceiving(t, r.Channel, box.publish)
	waitUntil(t, "the first poll", func() bool { return r.server.Calls("getUpdates") == 1 })
	startReceiving(t, r.newChannel(t, token), box.publish)
	waitUntil(t, "it is said", func() bool { return strings.Contains(r.logs.String(), "stop the other process") })
	for i := range int64(10) {
		r.server.Say(i+1, i+1, "hello")
	}
	seen := make(map[string]bool)
	waitUntil(t, "all ten", func() bool {
		for _, in := range box.wait(t, 0) {
			seen[in.ID] = true
		}
		return len(seen) == 10
	})
}

func TestUnreadableUpdatesAreSkipped(t *testing.T) {
	r := newRig(t)
	r.server.QueueUpdate(map[string]any{"edited_message": map[string]any{"message_id": 1}})
	r.server.QueueUpdate(map[string]any{"message": map[string]any{"message_id": "not a number"}})
	r.server.Say(1, 1, "hello")
	box := newMessageRecorder()
	startReceiving(t, r.Channel, box.publish)
	waitUntil(t, "all confirmed", func() bool { return r.server.Unconfirmed() == 0 })
	if said := box.wait(t, 1); len(said) != 1 || said[0].Text != "hello" {
		t.Errorf("got %+v", said)
	}
	if !strings.Contains(r.logs.String(), "update=2") {
		t.Error("the unreadable update is not logged by its id")
	}
}

func TestTheFirstPollDoesNotWaitForTheBotsName(t *testing.T) {
	r := newRig(t)
	r.server.Fail(telegramtest.Fault{Method: "getMe", Act: telegramtest.Hang})
	r.server.Say(1, 1, "hello")
	r.server.Say(-1, 1, "nobody is named here")
	box := newMessageRecorder()
	startReceiving(t, r.Channel, box.publish)
	box.wait(t, 2)
}

// While the bot's name isn't known, nobody can tell whether a message mentions it. The message waits, and is
// not lost when the process ends.
func TestAMessageThatMayNameTheBotWaitsForItsName(t *testing.T) {
	r := newRig(t)
	r.server.Fail(telegramtest.Fault{Method: "getMe", Act: telegramtest.Hang})
	r.server.Say(-1, 1, "@"+botName+" hello")
	box := newMessageRecorder()
	stop := startReceiving(t, r.Channel, box.publish)
	waitUntil(t, "the name is asked for", func() bool { return r.server.Calls("getMe") > 0 && r.server.Calls("getUpdates") > 0 })
	if err := stop(); err != nil {
		t.Errorf("Receive = %v", err)
	}
	if r.server.Unconfirmed() != 1 {
		t.Error("it is lost")
	}
	r.server.ClearFaults()
	startReceiving(t, r.newChannel(t, token), box.publish)
	if in := box.wait(t, 1)[0]; !in.Mentioned || in.Text != "hello" {
		t.Errorf("got %+v", in)
	}
}

// However long the bus was down, messages are published soon after it is back, because people are waiting for
// answers.
func TestMessagesArePublishedSoonAfterTheBusIsBack(t *testing.T) {
	r := newRig(t)
	synctest.Test(t, func(t *testing.T) {
		began, back := time.Now(), 10*time.Minute
		if !r.Channel.Deliver(t.Context(), "hello", func(context.Context, bus.Inbound) error {
			if time.Since(began) < back {
				return errors.New("the store is away")
			}
			return nil
		}) {
			t.Error("it was not published")
		}
		if late := time.Since(began) - back; late > 2*time.Second {
			t.Errorf("it was published %v after the store was back", late)
		}
	})
}

// Two processes of different fleets that poll for the same bot interrupt each other again and again. The log
// reports that once a minute, not each time.
func TestConflictsDoNotFloodTheLog(t *testing.T) {
	r := newRig(t)
	box := newMessageRecorder()
	startReceiving(t, r.Channel, box.publish)
	const conflicts = 5
	for n := range conflicts {
		polls := r.server.Calls("getUpdates")
		r.server.Fail(telegramtest.Fault{Method: "getUpdates", Times: 1, Status: 409, Description: "Conflict"})
		r.server.Say(1, 1, fmt.Sprint("m", n))
		box.wait(t, n+1)
		// The refused poll, and the ones before and after it.
		waitUntil(t, "the next poll", func() bool { return r.server.Calls("getUpdates") >= polls+3 })
	}
	if n := strings.Count(r.logs.String(), "another process polls"); n != 1 {
		t.Errorf("logged %d times for %d conflicts", n, conflicts)
	}
	if n := strings.Count(r.logs.String(), "polled again"); n > 1 {
		t.Errorf("the end is logged %d times", n)
	}
}
