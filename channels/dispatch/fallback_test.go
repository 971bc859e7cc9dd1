package dispatch_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/bus/bustest"
	"parley/channels"
	"parley/channels/dispatch"
)

var fallbackAddress = bus.Address{Channel: "d", Chat: "9"}

// takeFallbacks removes the messages to the fallback address from the bus and returns them.
func (s *testStage) takeFallbacks(t *testing.T) []bus.Outbound {
	t.Helper()
	var all []bus.Outbound
	for _, m := range bustest.Take(t, s.Bus, bus.OutboundTopic("d")) {
		out, err := bus.DecodeOutbound(m.Body)
		if err != nil || out.ID != m.ID || out.To != fallbackAddress || m.Key != fallbackAddress.String() {
			t.Fatalf("message %+v: %v", m, err)
		}
		all = append(all, out)
	}
	return all
}

// addFallback gives a message a fallback address.
func addFallback(out bus.Outbound) bus.Outbound {
	out.Fallback = []bus.Address{out.To, fallbackAddress} // its own address does not count as a fallback
	return out
}

func TestARejectedMessageGoesToItsFallback(t *testing.T) {
	setup := func(s *testStage, _ *dispatch.Dispatcher) {
		s.Platform.OnSend = failFirstSends("1", false, &channels.SendError{Fault: channels.Rejected, Code: "chat_not_found"})
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		out := addFallback(subjectMessage("a", "1", "disk", "**disk** is full"))
		out.Expires, out.File = time.Now().Add(time.Hour), &bus.File{Name: "f", Data: []byte("x")}
		s.publish(t, out, subjectMessage("b", "1", "", "next"))
		synctest.Wait()
		wantTexts(t, s, "1", "next")
		fallen := s.takeFallbacks(t)
		if len(fallen) != 1 {
			t.Fatalf("at the fallback: %+v", fallen)
		}
		got := fallen[0]
		if want := "I couldn't deliver this to `c:1`: there's no such chat, or I'm not in it.\n\n**disk** is full"; got.Text != want {
			t.Errorf("text %q, want %q", got.Text, want)
		}
		if got.ID != "a~fallback/1" || got.Origin != "ci" || !got.Expires.Equal(out.Expires) || got.File == nil || got.Fallback != nil ||
			got.Subject == "disk" || got.Subject == "" || got.At.IsZero() {
			t.Errorf("fallback: %+v", got)
		}
		if d := s.TopicDepth(t, bus.OutboundTopic("c")); d.Dead != 1 || d.Waiting != 0 {
			t.Errorf("%+v", d)
		}
	})
}

func TestAMessageWaitsForAFullFallback(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, dir, bus.Caps{Outbound: 2})
		defer s.Close()
		s.Platform.OnSend = failFirstSends("1", false, &channels.SendError{Fault: channels.Rejected, Code: "kicked"}, &channels.SendError{Fault: channels.Rejected, Code: "kicked"})
		r := startDispatcher(t, &dispatch.Dispatcher{Name: "c", Channel: s.Platform, Bus: s.Bus, Book: s.Book, Log: s.Logger()})
		for i := range 2 {
			full := bus.Message{ID: fmt.Sprint("full", i), Key: fallbackAddress.String(), Body: []byte(`{"id": "full` + fmt.Sprint(i) + `", "to": {"channel": "d", "chat": "9"}}`)}
			if err := s.Bus.Publish(t.Context(), bus.OutboundTopic("d"), full); err != nil {
				t.Fatal(err)
			}
		}
		s.publish(t, addFallback(subjectMessage("a", "1", "", "one")), subjectMessage("b", "1", "", "two"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if d := s.TopicDepth(t, bus.OutboundTopic("c")); d.Dead != 0 || d.Waiting != 2 {
			t.Errorf("with a full fallback: %+v", d)
		}
		if fallen := s.takeFallbacks(t); len(fallen) != 2 {
			t.Errorf("at the fallback: %+v", fallen)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if fallen := s.takeFallbacks(t); len(fallen) != 1 || fallen[0].ID != "a~fallback/1" {
			t.Errorf("at the fallback: %+v", fallen)
		}
		if d := s.TopicDepth(t, bus.OutboundTopic("c")); d.Dead != 2 || d.Waiting != 0 {
			t.Errorf("after that: %+v", d)
		}
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestTheFallbackIsUsedWhileThePlatformIsDown(t *testing.T) {
	for name, fault := range map[string]*channels.SendError{
		"unreachable": {Fault: channels.Retry, Code: "unreachable"},
		"mute":        {Fault: channels.Unknown, Code: "http_502"},
	} {
		t.Run(name, func(t *testing.T) {
			var up atomic.Bool
			setup := func(s *testStage, _ *dispatch.Dispatcher) {
				s.Platform.OnSend = func(_ context.Context, to bus.Address, _ channels.Part) (bool, error) {
					if up.Load() || to.Chat == "fine" {
						return true, nil
					}
					return false, fault
				}
			}
			withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
				for i := range 50 {
					s.publish(t, addFallback(subjectMessage(fmt.Sprint("a", i), "1", "", fmt.Sprint("text ", i))))
				}
				s.publish(t, subjectMessage("keeps", "2", "", "has no fallback"), subjectMessage("fine", "fine", "", "unaffected"))
				time.Sleep(14 * time.Minute)
				synctest.Wait()
				wantTexts(t, s, "fine", "unaffected")
				if fallen := s.takeFallbacks(t); len(fallen) != 0 {
					t.Errorf("after 14 minutes %d messages are at the fallback", len(fallen))
				}
				time.Sleep(30 * time.Minute)
				synctest.Wait()
				fallen := s.takeFallbacks(t)
				if len(fallen) != 50 {
					t.Fatalf("after 44 minutes %d messages are at the fallback, want 50", len(fallen))
				}
				for i, out := range fallen {
					if want := fmt.Sprint("text ", i); !strings.HasSuffix(out.Text, want) || !strings.Contains(out.Text, "`c:1`") {
						t.Errorf("fallback %d is %q", i, out.Text)
					}
				}
				s.publish(t, addFallback(subjectMessage("late", "1", "", "said late")))
				time.Sleep(5 * time.Minute)
				up.Store(true)
				time.Sleep(time.Hour)
				synctest.Wait()
				wantTexts(t, s, "1", "said late")
				wantTexts(t, s, "2", "has no fallback")
				if fallen := s.takeFallbacks(t); len(fallen) != 0 {
					t.Errorf("once the platform was back: %+v", fallen)
				}
			})
		})
	}
}

func TestExpiredMessagesAreNotSent(t *testing.T) {
	expires := func(out bus.Outbound, after time.Duration) bus.Outbound {
		out.Expires = time.Now().Add(after)
		return out
	}
	setup := func(s *testStage, _ *dispatch.Dispatcher) {
		s.Platform.ChannelLimits.Length = 64
		s.Platform.OnSend = failFirstSends("1", false, &channels.SendError{Fault: channels.Retry, RetryAfter: time.Minute, Code: "503"})
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		long := strings.Repeat("some words ", 20)
		s.publish(t, expires(addFallback(subjectMessage("tried", "1", "", long)), 30*time.Second), expires(newOutbound("waiting", "1", "late"), 30*time.Second),
			expires(subjectMessage("in time", "1", "", "in time"), time.Hour), expires(subjectMessage("never", "2", "", "late at once"), -time.Second))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		wantTexts(t, s, "1", "in time")
		wantTexts(t, s, "2")
		for _, id := range []string{"tried", "waiting", "never"} {
			send := s.lookup(t, id)
			if send.State() != channels.Failed {
				t.Errorf("%s is %s", id, send.State())
			}
			for _, p := range send.Parts {
				if p.State != channels.Failed || p.Code != "expired" || p.Text != "" {
					t.Errorf("%s has the part %+v", id, p)
				}
			}
		}
		if d := s.TopicDepth(t, bus.OutboundTopic("c")); d.Dead+d.Waiting+d.Leased != 0 {
			t.Errorf("left over: %+v", d)
		}
		if fallen := s.takeFallbacks(t); len(fallen) != 0 {
			t.Errorf("at the fallback: %+v", fallen)
		}
		if mail := s.TakeMail(t); len(mail) != 1 || mail[0].ID != "waiting#undelivered" {
			t.Errorf("notices %+v", mail)
		}
	})
}

func TestAMessageThatExpiresBetweenParts(t *testing.T) {
	setup := func(s *testStage, _ *dispatch.Dispatcher) {
		s.Platform.ChannelLimits.Length = 64
		s.Platform.OnSend = func(_ context.Context, to bus.Address, part channels.Part) (bool, error) {
			if to.Chat == "cut" {
				return false, &channels.SendError{Fault: channels.Unknown, Code: "cut_off"}
			}
			time.Sleep(20 * time.Second) // for each part
			return true, nil
		}
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		begun, cut := subjectMessage("begun", "1", "", strings.Repeat("some words ", 20)), subjectMessage("cut", "cut", "", "x")
		begun.Expires, cut.Expires = time.Now().Add(30*time.Second), time.Now().Add(100*time.Millisecond)
		s.publish(t, begun, cut)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if send := s.lookup(t, "begun"); send.State() != channels.Sent || len(send.Parts) < 3 {
			t.Errorf("a message that has begun to arrive is not finished: %+v", send)
		}
		if send := s.lookup(t, "cut"); send.State() != channels.OutcomeUnknown || send.Parts[0].Interrupted != 1 {
			t.Errorf("a message that may have arrived is noted as %+v", send)
		}
	})
}

func TestAPanickingSendIsGivenUpAndReported(t *testing.T) {
	setup := func(s *testStage, _ *dispatch.Dispatcher) {
		s.Platform.OnSend = func(_ context.Context, to bus.Address, _ channels.Part) (bool, error) {
			if to.Chat == "1" {
				panic("a fault of the adapter's")
			}
			return true, nil
		}
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		s.publish(t, addFallback(newOutbound("a", "1", "x")), subjectMessage("b", "2", "", "fine"))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		wantTexts(t, s, "2", "fine")
		if fallen, mail := s.takeFallbacks(t), s.TakeMail(t); len(fallen) != 1 || len(mail) != 1 {
			t.Errorf("%d messages are at the fallback and the session has %d notices", len(fallen), len(mail))
		}
		if d, send := s.TopicDepth(t, bus.OutboundTopic("c")), s.lookup(t, "a"); d.Dead != 1 || send.State() != channels.Failed {
			t.Errorf("%+v, book: %+v", d, send)
		}
	})
}
