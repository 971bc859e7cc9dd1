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

// failDuring returns an OnSend that fails, and counts, every send while on is true.
func failDuring(on *atomic.Bool, tries *atomic.Int64) func(context.Context, bus.Address, channels.Part) (bool, error) {
	return func(context.Context, bus.Address, channels.Part) (bool, error) {
		tries.Add(1)
		if on.Load() {
			return false, &channels.SendError{Fault: channels.Retry, Code: "unreachable"}
		}
		return true, nil
	}
}

// Waiting messages are sent soon after an outage, however long their waits had become.
func TestWaitingMessagesAreSentSoonAfterAnOutage(t *testing.T) {
	for _, c := range []struct{ lasts, within time.Duration }{{30 * time.Second, 15 * time.Second}, {10 * time.Minute, 80 * time.Second}} {
		t.Run(c.lasts.String(), func(t *testing.T) {
			var away atomic.Bool
			var tries atomic.Int64
			setup := func(s *testStage, _ *dispatch.Dispatcher) { s.Platform.OnSend = failDuring(&away, &tries) }
			withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
				away.Store(true)
				for i := range 20 {
					s.publish(t, newOutbound(fmt.Sprint("m", i), fmt.Sprint(i), "hi"))
				}
				sleep(c.lasts)
				away.Store(false)
				sleep(c.within)
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

// A reachabilityPlatform is a platform that knows whether it can be reached.
type reachabilityPlatform struct {
	channels.Channel
	unreachable *atomic.Bool
}

func (c reachabilityPlatform) Connected() bool { return !c.unreachable.Load() }

// The gateway of the same channel may notice that the platform works before anything is sent.
func TestMessagesAreSentOnceThePlatformIsReachable(t *testing.T) {
	var away atomic.Bool
	var tries atomic.Int64
	setup := func(s *testStage, d *dispatch.Dispatcher) {
		s.Platform.OnSend = failDuring(&away, &tries)
		d.Channel = reachabilityPlatform{s.Platform, &away}
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		away.Store(true)
		s.publish(t, newOutbound("m", "1", "hi"))
		sleep(2 * time.Minute)
		away.Store(false)
		sleep(5 * time.Second)
		if n := len(s.Platform.Sent()); n != 1 {
			t.Errorf("%d messages were sent within 5 s", n)
		}
	})
}

// failAndCount returns an OnSend that fails, and counts, the sends to one chat.
func failAndCount(chat string, tries *atomic.Int64, fault channels.SendError) func(context.Context, bus.Address, channels.Part) (bool, error) {
	return func(_ context.Context, to bus.Address, _ channels.Part) (bool, error) {
		if to.Chat != chat {
			return true, nil
		}
		tries.Add(1)
		return false, &fault
	}
}

// If only one chat fails, it isn't retried more often because sends to others succeed.
func TestAChatThatFailsAloneIsRetriedRarely(t *testing.T) {
	var tries atomic.Int64
	setup := func(s *testStage, _ *dispatch.Dispatcher) {
		s.Platform.OnSend = failAndCount("bad", &tries, channels.SendError{Fault: channels.Retry, Code: "503"})
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		s.publish(t, newOutbound("m", "bad", "hi"))
		for i := range 120 {
			sleep(5 * time.Second)
			s.publish(t, newOutbound(fmt.Sprint("g", i), "good", "hi"))
			synctest.Wait()
		}
		if n := tries.Load(); n > 60 {
			t.Errorf("%d tries within ten minutes", n)
		}
	})
}

// postUrgent publishes an urgent message for a chat.
func (s *testStage) postUrgent(t *testing.T, chat string) {
	t.Helper()
	body, err := newOutbound("u"+chat, chat, "urgent").Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Bus.Publish(t.Context(), bus.OutboundTopic("c"), bus.Message{ID: "u" + chat, Key: "c:" + chat, Urgent: true, Body: body}); err != nil {
		t.Fatal(err)
	}
}

// An urgent message does not wait for the message before it that has failed.
func TestUrgentMailEndsALongWait(t *testing.T) {
	var away atomic.Bool
	var tries atomic.Int64
	setup := func(s *testStage, _ *dispatch.Dispatcher) { s.Platform.OnSend = failDuring(&away, &tries) }
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		away.Store(true)
		s.publish(t, newOutbound("m", "1", "hi"))
		sleep(time.Minute)
		before := tries.Load()
		s.postUrgent(t, "1")
		synctest.Wait()
		if tries.Load() != before+1 {
			t.Errorf("%d tries at once, want one", tries.Load()-before)
		}
	})
}

// The same holds if the wait is nearly over, and the mailbox isn't claimed again and again until then.
func TestUrgentMailEndsAShortWait(t *testing.T) {
	var away atomic.Bool
	var tries atomic.Int64
	setup := func(s *testStage, _ *dispatch.Dispatcher) { s.Platform.OnSend = failDuring(&away, &tries) }
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		away.Store(true)
		for i := range 20 { // the first wait has a random length of about a second
			chat := fmt.Sprint(i)
			s.publish(t, newOutbound("m"+chat, chat, "hi"))
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
