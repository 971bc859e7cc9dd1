package telegram_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"parley/bus"
	"parley/channels/telegram/telegramtest"
)

func TestWhatWasPrefetchedIsConfirmedOnceItIsPublished(t *testing.T) {
	r := newRig(t)
	r.server.Say(1, 1, "hello")
	r.Prefetch(t.Context())
	if n := r.server.Unconfirmed(); n != 1 {
		t.Fatalf("%d updates are held after the prefetch, want 1", n)
	}
	failing := receive(t, r.Channel, func(context.Context, bus.Inbound) error { return errors.New("the store is away") })
	until(t, "it is tried", func() bool { return strings.Contains(r.logged.String(), "not stored yet") })
	if err := failing(); err != nil {
		t.Errorf("Receive = %v", err)
	}
	if n := r.server.Unconfirmed(); n != 1 {
		t.Errorf("%d updates are held though nothing was stored, want 1", n)
	}
	box := newMailbox()
	receive(t, r.Channel, box.publish)
	if in := box.wait(t, 1)[0]; in.Text != "hello" {
		t.Errorf("got %q", in.Text)
	}
	until(t, "it is confirmed", func() bool { return r.server.Unconfirmed() == 0 })
}

// Telegram ends a poll when another one begins.
func TestReceiveWaitsForThePrefetchInsteadOfPolling(t *testing.T) {
	r := newRig(t)
	done := make(chan struct{})
	go func() { defer close(done); r.Prefetch(t.Context()) }()
	until(t, "the prefetch has begun", func() bool { return r.server.Calls("getUpdates") == 1 })
	box := newMailbox()
	receive(t, r.Channel, box.publish)
	until(t, "Receive has begun", func() bool { return r.server.Calls("getMyCommands") > 0 })
	r.Prefetch(t.Context()) // does nothing once Receive was called
	r.server.Say(1, 1, "hello")
	box.wait(t, 1)
	<-done
	r.server.Say(1, 1, "hello again")
	if all := box.wait(t, 2); all[0].Text != "hello" || all[1].Text != "hello again" {
		t.Errorf("got %+v", all)
	}
	if strings.Contains(r.logged.String(), "another process polls") {
		t.Error("two polls ran at the same time")
	}
}

func TestAFailedPrefetchIsMadeUpFor(t *testing.T) {
	r := newRig(t)
	r.server.Say(1, 1, "hello")
	r.server.Fail(telegramtest.Fault{Method: "getUpdates", Times: 1, Status: 502, Raw: "<html>Bad Gateway</html>"})
	r.Prefetch(t.Context())
	box := newMailbox()
	receive(t, r.Channel, box.publish)
	box.wait(t, 1)
	if strings.Contains(r.logged.String(), "cannot be reached") {
		t.Error("an outage is logged")
	}
}

func TestAPrefetchThatWasEndedKeepsNobodyWaiting(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Prefetch(ctx) }()
	until(t, "the prefetch has begun", func() bool { return r.server.Calls("getUpdates") == 1 })
	box := newMailbox()
	receive(t, r.Channel, box.publish)
	cancel()
	<-done
	r.server.Say(1, 1, "hello")
	box.wait(t, 1)
}
