package dispatch_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/dispatch"
)

// outage fails every send while it is on.
func outage(on *atomic.Bool, tries *atomic.Int64) func(context.Context, bus.Address, channels.Part) (bool, error) {
	return func(context.Context, bus.Address, channels.Part) (bool, error) {
		tries.Add(1)
		if on.Load() {
			return false, &channels.SendError{Fault: channels.Retry, Code: "unreachable"}
		}
		return true, nil
	}
}

// What waits because a platform was away is sent soon after it is back, however
// long the waits had become.
func TestWaitingMessagesAreSentSoonAfterAnOutage(t *testing.T) {
	for _, c := range []struct{ lasts, within time.Duration }{{30 * time.Second, 15 * time.Second}, {10 * time.Minute, 80 * time.Second}} {
		t.Run(c.lasts.String(), func(t *testing.T) {
			var away atomic.Bool
			var tries atomic.Int64
			setup := func(s *stage, _ *dispatch.Dispatcher) { s.Platform.OnSend = outage(&away, &tries) }
			inDispatch(t, setup, func(t *testing.T, s *stage, _ *running) {
				away.Store(true)
				for i := range 20 {
					s.post(t, outbound(fmt.Sprint("m", i), fmt.Sprint(i), "hi"))
				}
				lasts(c.lasts)
				away.Store(false)
				lasts(c.within)
				if n := len(s.Platform.Sent()); n != 20 {
					t.Errorf("%d of 20 were sent %v after an outage of %v", n, c.within, c.lasts)
				}
				if limit := int64(20*(4+c.lasts/(30*time.Second)) + 80); tries.Load() > limit {
					t.Errorf("%d tries, want at most %d", tries.Load(), limit)
				}
			})
		})
	}
}

// A connected is a platform that knows whether it is in reach.
type connected struct {
	channels.Channel
	away *atomic.Bool
}

func (c connected) Connected() bool { return !c.away.Load() }

// The gateway of the same channel may know before anything is sent.
func TestAPlatformThatIsInReachAgainIsSentTo(t *testing.T) {
	var away atomic.Bool
	var tries atomic.Int64
	setup := func(s *stage, d *dispatch.Dispatcher) {
		s.Platform.OnSend = outage(&away, &tries)
		d.Channel = connected{s.Platform, &away}
	}
	inDispatch(t, setup, func(t *testing.T, s *stage, _ *running) {
		away.Store(true)
		s.post(t, outbound("m", "1", "hi"))
		lasts(2 * time.Minute)
		away.Store(false)
		lasts(5 * time.Second)
		if n := len(s.Platform.Sent()); n != 1 {
			t.Errorf("%d messages were sent within 5 s", n)
		}
	})
}

// failIn is an OnSend that counts the sends to one chat and lets each fail.
func failIn(chat string, tries *atomic.Int64, fault channels.SendError) func(context.Context, bus.Address, channels.Part) (bool, error) {
	return func(_ context.Context, to bus.Address, _ channels.Part) (bool, error) {
		if to.Chat != chat {
			return true, nil
		}
		tries.Add(1)
		return false, &fault
	}
}

// A chat that fails by itself is not tried all the time because others are well.
func TestAChatThatFailsAloneIsTriedRarely(t *testing.T) {
	var tries atomic.Int64
	setup := func(s *stage, _ *dispatch.Dispatcher) {
		s.Platform.OnSend = failIn("bad", &tries, channels.SendError{Fault: channels.Retry, Code: "503"})
	}
	inDispatch(t, setup, func(t *testing.T, s *stage, _ *running) {
		s.post(t, outbound("m", "bad", "hi"))
		for i := range 120 {
			lasts(5 * time.Second)
			s.post(t, outbound(fmt.Sprint("g", i), "good", "hi"))
			synctest.Wait()
		}
		if n := tries.Load(); n > 60 {
			t.Errorf("%d tries within ten minutes", n)
		}
	})
}

// postUrgent publishes something urgent for a chat.
func (s *stage) postUrgent(t *testing.T, chat string) {
	t.Helper()
	body, err := outbound("u"+chat, chat, "urgent").Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Bus.Publish(t.Context(), bus.OutboundTopic("c"), bus.Message{ID: "u" + chat, Key: "c:" + chat, Urgent: true, Body: body}); err != nil {
		t.Fatal(err)
	}
}

// Urgent mail does not wait for what failed before it.
func TestUrgentMailEndsAWait(t *testing.T) {
	var away atomic.Bool
	var tries atomic.Int64
	setup := func(s *stage, _ *dispatch.Dispatcher) { s.Platform.OnSend = outage(&away, &tries) }
	inDispatch(t, setup, func(t *testing.T, s *stage, _ *running) {
		away.Store(true)
		s.post(t, outbound("m", "1", "hi"))
		lasts(time.Minute)
		before := tries.Load()
		s.postUrgent(t, "1")
		synctest.Wait()
		if tries.Load() != before+1 {
			t.Errorf("%d tries at once, want one", tries.Load()-before)
		}
	})
}

// Nor does it if the wait is nearly over, and the mailbox is not claimed for it over and over until
// the wait is over.
func TestUrgentMailEndsAShortWait(t *testing.T) {
	var away atomic.Bool
	var tries atomic.Int64
	setup := func(s *stage, _ *dispatch.Dispatcher) { s.Platform.OnSend = outage(&away, &tries) }
	inDispatch(t, setup, func(t *testing.T, s *stage, _ *running) {
		away.Store(true)
		for i := range 20 { // the first wait is a random one of about a second
			chat := fmt.Sprint(i)
			s.post(t, outbound("m"+chat, chat, "hi"))
			synctest.Wait()
			before := tries.Load()
			s.postUrgent(t, chat)
			synctest.Wait()
			if n := tries.Load() - before; n != 1 {
				t.Errorf("%d tries at once, want one", n)
			}
		}
	})
}
