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

// limitOnce has a platform ask for patience once, on the first send to a chat.
func limitOnce(chat string, limit channels.SendError) func(context.Context, bus.Address, channels.Part) (bool, error) {
	var once sync.Once
	return func(_ context.Context, to bus.Address, _ channels.Part) (arrives bool, err error) {
		arrives = true
		if to.Chat == chat {
			once.Do(func() { arrives, err = false, &limit })
		}
		return arrives, err
	}
}

// After a pause that a platform has asked for, what waited goes on at the pace
// that it asks for, and not all at once.
func TestNoBurstFollowsAPause(t *testing.T) {
	for what, c := range map[string]struct {
		limit channels.SendError
		chat  func(i int) string
		every time.Duration
	}{
		"of a chat":  {channels.SendError{Fault: channels.Retry, Limited: true, RetryAfter: 5 * time.Second}, func(int) string { return "1" }, time.Second},
		"of account": {channels.SendError{Fault: channels.Retry, Limited: true, Account: true, RetryAfter: 5 * time.Second}, func(i int) string { return fmt.Sprint(i) }, time.Second / 4},
	} {
		t.Run(what, func(t *testing.T) {
			setup := func(s *stage, _ *dispatch.Dispatcher) {
				s.Platform.Offers.Chat = channels.Pace{Every: time.Second, Burst: 3}
				s.Platform.Offers.Account = channels.Pace{Every: time.Second / 4, Burst: 30}
				s.Platform.OnSend = limitOnce(c.chat(0), c.limit)
			}
			inDispatch(t, setup, func(t *testing.T, s *stage, _ *running) {
				began := time.Now()
				for i := range 12 {
					out := outbound(fmt.Sprint("m", i), c.chat(i), "hi")
					out.To.Thread = fmt.Sprint(i) // each is a mailbox of its own
					s.post(t, out)
					synctest.Wait()
				}
				early := len(s.Platform.Sent())
				lasts(time.Minute)
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

// What waits for its turn when the pause begins keeps to it too.
func TestAPauseHoldsForWhatWaitsAlready(t *testing.T) {
	setup := func(s *stage, _ *dispatch.Dispatcher) {
		s.Platform.Offers.Chat = channels.Pace{Every: 2 * time.Second, Burst: 1}
		s.Platform.OnSend = limitOnce("1", channels.SendError{Fault: channels.Retry, Limited: true, RetryAfter: 10 * time.Second})
	}
	inDispatch(t, setup, func(t *testing.T, s *stage, _ *running) {
		began := time.Now()
		for i := range 4 {
			out := outbound(fmt.Sprint("m", i), "1", "hi")
			out.To.Thread = fmt.Sprint(i)
			s.post(t, out)
		}
		lasts(time.Minute)
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

// A limitedTyper is a platform that wants less of typing.
type limitedTyper struct {
	*channelstest.TypingChannel
	mu    sync.Mutex
	calls []time.Time
}

func (p *limitedTyper) Typing(context.Context, bus.Address) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, time.Now())
	if len(p.calls) == 1 {
		return 0, &channels.SendError{Fault: channels.Retry, Limited: true, RetryAfter: 20 * time.Second}
	}
	return 5 * time.Second, nil
}

func TestTypingKeepsToWhatThePlatformAsksFor(t *testing.T) {
	typer := &limitedTyper{}
	setup := func(s *stage, d *dispatch.Dispatcher) {
		typer.TypingChannel = &channelstest.TypingChannel{MemoryChannel: s.Platform}
		d.Channel = typer
	}
	inDispatch(t, setup, func(t *testing.T, s *stage, _ *running) {
		synctest.Wait()
		a, other := s.Speaker("t", "1"), s.Speaker("u", "1")
		other.At.Thread = "7"
		a.Start()
		lasts(time.Second)
		other.Start() // in the same chat
		lasts(30 * time.Second)
		typer.mu.Lock()
		defer typer.mu.Unlock()
		if len(typer.calls) < 3 || typer.calls[1].Sub(typer.calls[0]) < 20*time.Second {
			t.Errorf("typing was shown at %v", typer.calls)
		}
	})
}

// startGateway runs the gateway of another process, and returns how to stop it.
func startGateway(t *testing.T, s *stage, gate channels.Channel) (stop func()) {
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

// The gate and the dispatch of a channel may be two processes.
func TestAPauseHoldsInEveryProcess(t *testing.T) {
	limit := channels.SendError{Fault: channels.Retry, Limited: true, RetryAfter: 20 * time.Second}
	gate := channelstest.NewMemoryChannel() // the other process's connection
	setup := func(s *stage, _ *dispatch.Dispatcher) { s.Platform.OnSend = limitOnce("1", limit) }
	inDispatch(t, setup, func(t *testing.T, s *stage, _ *running) {
		defer startGateway(t, s, gate)()
		s.post(t, outbound("m", "1", "hi"))
		synctest.Wait()
		for _, chat := range []string{"1", "2"} {
			if err := gate.Say(t.Context(), stagetest.Said("s"+chat, chat, "hello")); err != nil {
				t.Fatal(err)
			}
		}
		lasts(10 * time.Second)
		if len(gate.Texts("1")) != 0 || len(gate.Texts("2")) != 1 {
			t.Errorf("within the pause the gate said %q, and elsewhere %q", gate.Texts("1"), gate.Texts("2"))
		}
		lasts(15 * time.Second)
		if got := gate.Texts("1"); len(got) != 1 || !strings.Contains(got[0], "don't know you") {
			t.Errorf("after it the gate said %q", got)
		}
	})
}

// And the other way round: what the gate is told holds for the dispatch.
func TestWhatTheGateIsToldHoldsForAnswers(t *testing.T) {
	gate := channelstest.NewMemoryChannel()
	gate.OnSend = limitOnce("1", channels.SendError{Fault: channels.Retry, Limited: true, RetryAfter: 20 * time.Second})
	inDispatch(t, nil, func(t *testing.T, s *stage, _ *running) {
		defer startGateway(t, s, gate)()
		if err := gate.Say(t.Context(), stagetest.Said("s", "1", "hello")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.post(t, outbound("m", "1", "hi"))
		lasts(10 * time.Second)
		if got := s.Platform.Texts("1"); len(got) != 0 {
			t.Errorf("within the pause the dispatch said %q", got)
		}
		lasts(15 * time.Second)
		if len(s.Platform.Texts("1")) != 1 || len(gate.Texts("1")) != 1 {
			t.Errorf("after it: %q and %q", s.Platform.Texts("1"), gate.Texts("1"))
		}
	})
}
