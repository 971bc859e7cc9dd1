package dispatch_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/dispatch"
	"parley/channels/gateway"
	"parley/channels/stagetest"
)

// limitFirstSend returns an OnSend that fails the first send to a chat with a rate limit.
func limitFirstSend(chat string, limit channels.SendError) func(context.Context, bus.Address, channels.Part) (bool, error) {
	var once sync.Once
	return func(_ context.Context, to bus.Address, _ channels.Part) (arrives bool, err error) {
		arrives = true
		if to.Chat == chat {
			once.Do(func() { arrives, err = false, &limit })
		}
		return arrives, err
	}
}

// After a pause for a rate limit, waiting messages are sent at the platform's pace, and not all at once.
func TestNoBurstFollowsAPause(t *testing.T) {
	for what, c := range map[string]struct {
		limit channels.SendError
		chat  func(i int) string
		every time.Duration
	}{
		"of a chat":  {channels.SendError{Fault: channels.Retry, RateLimited: true, RetryAfter: 5 * time.Second}, func(int) string { return "1" }, time.Second},
		"of account": {channels.SendError{Fault: channels.Retry, RateLimited: true, AccountWide: true, RetryAfter: 5 * time.Second}, func(i int) string { return fmt.Sprint(i) }, time.Second / 4},
	} {
		t.Run(what, func(t *testing.T) {
			setup := func(s *testStage, _ *dispatch.Dispatcher) {
				s.Platform.ChannelLimits.Chat = channels.Pace{Every: time.Second, Burst: 3}
				s.Platform.ChannelLimits.Account = channels.Pace{Every: time.Second / 4, Burst: 30}
				s.Platform.OnSend = limitFirstSend(c.chat(0), c.limit)
			}
			withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
				began := time.Now()
				for i := range 12 {
					out := newOutbound(fmt.Sprint("m", i), c.chat(i), "hi")
					out.To.Thread = fmt.Sprint(i) // each message has a mailbox of its own
					s.publish(t, out)
					synctest.Wait()
				}
				early := len(s.Platform.Sent())
				sleep(time.Minute)
				sent := s.Platform.Sent()
				if len(sent) != 12 {
					t.Fatalf("%d of 12 arrived", len(sent))
				}
				for i, a := range sent[early:] {
					switch {
					case a.At.Sub(began) < 5*time.Second:
						t.Errorf("message %d was sent %v after the platform asked for 5 s", i, a.At.Sub(began))
					case i > 0 && a.At.Sub(sent[early+i-1].At) < c.every:
						t.Errorf("message %d was sent %v after the one before", i, a.At.Sub(sent[early+i-1].At))
					}
				}
			})
		})
	}
}

// The pause also applies to messages that were waiting when it began.
func TestAPauseAppliesToMessagesAlreadyWaiting(t *testing.T) {
	setup := func(s *testStage, _ *dispatch.Dispatcher) {
		s.Platform.ChannelLimits.Chat = channels.Pace{Every: 2 * time.Second, Burst: 1}
		s.Platform.OnSend = limitFirstSend("1", channels.SendError{Fault: channels.Retry, RateLimited: true, RetryAfter: 10 * time.Second})
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		began := time.Now()
		for i := range 4 {
			out := newOutbound(fmt.Sprint("m", i), "1", "hi")
			out.To.Thread = fmt.Sprint(i)
			s.publish(t, out)
		}
		sleep(time.Minute)
		sent := s.Platform.Sent()
		if len(sent) != 4 || sent[0].At.Sub(began) < 10*time.Second {
			t.Errorf("%d sent, the first after %v", len(sent), sent[0].At.Sub(began))
		}
		for i := 1; i < len(sent); i++ {
			if gap := sent[i].At.Sub(sent[i-1].At); gap < 2*time.Second {
				t.Errorf("message %d was sent %v after the one before", i, gap)
			}
		}
	})
}

// A rateLimitedTyper is a platform that limits the rate of typing signs.
type rateLimitedTyper struct {
	*channelstest.TypingChannel
	mu    sync.Mutex
	calls []time.Time
}

func (p *rateLimitedTyper) Typing(context.Context, bus.Address) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, time.Now())
	if len(p.calls) == 1 {
		return 0, &channels.SendError{Fault: channels.Retry, RateLimited: true, RetryAfter: 20 * time.Second}
	}
	return 5 * time.Second, nil
}

func TestTypingKeepsThePlatformsPauses(t *testing.T) {
	typer := &rateLimitedTyper{}
	setup := func(s *testStage, d *dispatch.Dispatcher) {
		typer.TypingChannel = &channelstest.TypingChannel{MemoryChannel: s.Platform}
		d.Channel = typer
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		synctest.Wait()
		a, other := s.Speaker("t", "1"), s.Speaker("u", "1")
		other.At.Thread = "7"
		a.Start()
		sleep(time.Second)
		other.Start() // in the same chat
		sleep(30 * time.Second)
		typer.mu.Lock()
		defer typer.mu.Unlock()
		if len(typer.calls) < 3 || typer.calls[1].Sub(typer.calls[0]) < 20*time.Second {
			t.Errorf("typing was shown at %v", typer.calls)
		}
	})
}

// startGateway runs the gateway of another process. The function that it returns stops the gateway.
func startGateway(t *testing.T, s *testStage, gate channels.Channel) (stop func()) {
	g := &gateway.Gateway{
		Name: "c", Channel: gate, Bus: s.Bus, Events: s.Bus, Gate: new(gateway.Gate), Chats: s.Book, Pairings: s.Book,
		Route: func(context.Context, bus.Inbound) (gateway.RouteResult, error) {
			return gateway.RouteResult{Session: "main:c:1"}, nil
		}, Log: slog.New(slog.DiscardHandler),
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// The gateway and the dispatcher of a channel may run in different processes.
func TestAPauseAppliesInEveryProcess(t *testing.T) {
	limit := channels.SendError{Fault: channels.Retry, RateLimited: true, RetryAfter: 20 * time.Second}
	gate := channelstest.NewMemoryChannel() // the other process's connection
	setup := func(s *testStage, _ *dispatch.Dispatcher) { s.Platform.OnSend = limitFirstSend("1", limit) }
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		defer startGateway(t, s, gate)()
		s.publish(t, newOutbound("m", "1", "hi"))
		synctest.Wait()
		for _, chat := range []string{"1", "2"} {
			if err := gate.Say(t.Context(), stagetest.PrivateMessage("s"+chat, chat, "hello")); err != nil {
				t.Fatal(err)
			}
		}
		sleep(10 * time.Second)
		if len(gate.Texts("1")) != 0 || len(gate.Texts("2")) != 1 {
			t.Errorf("within the pause the gate said %q, and elsewhere %q", gate.Texts("1"), gate.Texts("2"))
		}
		sleep(15 * time.Second)
		if got := gate.Texts("1"); len(got) != 1 || !strings.Contains(got[0], "don't know you") {
			t.Errorf("after it the gate said %q", got)
		}
	})
}

// A pause that the gateway learns of also applies to the dispatcher.
func TestAPauseOfTheGatewayAppliesToAnswers(t *testing.T) {
	gate := channelstest.NewMemoryChannel()
	gate.OnSend = limitFirstSend("1", channels.SendError{Fault: channels.Retry, RateLimited: true, RetryAfter: 20 * time.Second})
	withDispatcher(t, nil, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		defer startGateway(t, s, gate)()
		if err := gate.Say(t.Context(), stagetest.PrivateMessage("s", "1", "hello")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.publish(t, newOutbound("m", "1", "hi"))
		sleep(10 * time.Second)
		if got := s.Platform.Texts("1"); len(got) != 0 {
			t.Errorf("within the pause the dispatch said %q", got)
		}
		sleep(15 * time.Second)
		if len(s.Platform.Texts("1")) != 1 || len(gate.Texts("1")) != 1 {
			t.Errorf("after it: %q and %q", s.Platform.Texts("1"), gate.Texts("1"))
		}
	})
}
