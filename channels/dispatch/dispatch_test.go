package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/dispatch"
	"parley/channels/sqlbook"
	"parley/channels/stagetest"
	"parley/sessions/outgoing"
)

// A testStage is a bus, a book and a platform in memory, for a dispatcher under test.
type testStage struct {
	*stagetest.Stage
	endDispatcher func() error // ends the dispatcher, if one runs

	files testFiles
	dir   string
}

func newStage(t *testing.T, dir string, caps bus.Caps) *testStage {
	t.Helper()
	return openStage(t, dir, sqlitebus.Config{Caps: caps})
}

// newStageWithMaxHold makes a stage on which no lease can be held for longer than a given time.
func newStageWithMaxHold(t *testing.T, dir string, longest time.Duration) *testStage {
	t.Helper()
	return openStage(t, dir, sqlitebus.Config{MaxHold: longest})
}

func openStage(t *testing.T, dir string, c sqlitebus.Config) *testStage {
	t.Helper()
	files, err := outgoing.Open(dir, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	return &testStage{Stage: stagetest.Open(t, dir, c), files: testFiles{files}, dir: dir}
}

// withDispatcher runs a dispatcher in a synctest bubble while the test runs. setup may change the dispatcher
// before it starts.
func withDispatcher(t *testing.T, setup func(*testStage, *dispatch.Dispatcher), run func(*testing.T, *testStage, *runningDispatcher)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, dir, bus.Caps{})
		defer s.Close()
		d := &dispatch.Dispatcher{Name: "c", Channel: s.Platform, Bus: s.Bus, Book: s.Book, Subjects: s.Book, Drafts: s.Book, Files: s.files, Notify: dispatch.TellSession(s.Bus), Log: s.Logger()}
		if setup != nil {
			setup(s, d)
		}
		r := startDispatcher(t, d)
		s.endDispatcher = r.end
		run(t, s, r)
		if err := r.end(); err != nil && !isStopError(err) {
			t.Errorf("dispatcher ended with %v", err)
		}
	})
}

func isStopError(err error) bool {
	fault, ok := errors.AsType[*channels.SendError](err)
	return ok && fault.Fault == channels.Stop
}

type runningDispatcher struct {
	stop  context.CancelFunc
	ended chan error
	err   error
	once  sync.Once
}

func startDispatcher(t *testing.T, d *dispatch.Dispatcher) *runningDispatcher {
	ctx, stop := context.WithCancel(t.Context())
	r := &runningDispatcher{stop: stop, ended: make(chan error, 1)}
	go func() { r.ended <- d.Run(ctx) }()
	return r
}

func (r *runningDispatcher) end() error {
	r.once.Do(func() {
		r.stop()
		r.err = <-r.ended
	})
	return r.err
}

func newOutbound(id, chat, text string) bus.Outbound {
	return bus.Outbound{ID: id, To: bus.Address{Channel: "c", Chat: chat}, Text: text, Session: "main:c:" + chat, Turn: "t", At: time.Now()}
}

func (s *testStage) publish(t *testing.T, outs ...bus.Outbound) {
	t.Helper()
	for _, out := range outs {
		body, err := out.Encode()
		if err == nil {
			err = s.Bus.Publish(t.Context(), bus.OutboundTopic("c"), bus.Message{ID: out.ID, Key: out.To.String(), Body: body})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (s *testStage) lookup(t *testing.T, id string) channels.Send {
	t.Helper()
	send, err := s.Book.Lookup(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return send
}

// failFirstSends returns an OnSend that makes the first sends to a chat fail, each with the next error.
func failFirstSends(chat string, arrives bool, errs ...error) func(context.Context, bus.Address, channels.Part) (bool, error) {
	var mu sync.Mutex
	return func(_ context.Context, to bus.Address, _ channels.Part) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		if to.Chat != chat || len(errs) == 0 {
			return true, nil
		}
		err := errs[0]
		errs = errs[1:]
		return arrives, err
	}
}

func wantTexts(t *testing.T, s *testStage, chat string, want ...string) {
	t.Helper()
	if got := s.Platform.Texts(chat); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("chat %s got %q, want %q", chat, got, want)
	}
}

func TestEachAddressGetsItsMessagesOnceAndInOrder(t *testing.T) {
	withDispatcher(t, func(s *testStage, _ *dispatch.Dispatcher) { s.Platform.ChannelLimits.Length = 100 }, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		long := strings.Repeat("Nine words make a sentence that is quite short. ", 4)
		for i := range 10 {
			for chat := range 20 {
				s.publish(t, newOutbound(fmt.Sprintf("%d-%d", chat, i), fmt.Sprint(chat), fmt.Sprintf("%d %s", i, long)))
				s.publish(t, newOutbound(fmt.Sprintf("%d-%d", chat, i), fmt.Sprint(chat), "the same id again"))
			}
		}
		synctest.Wait()
		for chat := range 20 {
			got := strings.Join(s.Platform.Texts(fmt.Sprint(chat)), " ")
			var want strings.Builder
			for i := range 10 {
				fmt.Fprintf(&want, "%d %s", i, long)
			}
			if got != strings.TrimSpace(want.String()) {
				t.Errorf("chat %d got %q", chat, got)
			}
		}
		if send := s.lookup(t, "3-4"); send.State() != channels.Sent || len(send.Parts) < 2 || send.Parts[1].PlatformID == "" || send.Parts[1].Text != "" {
			t.Errorf("book: %+v", send)
		}
		if d := s.TopicDepth(t, bus.OutboundTopic("c")); d.Waiting+d.Leased+d.Dead != 0 {
			t.Errorf("left over: %+v", d)
		}
	})
}

func TestRetryHonoursThePlatformAndDelaysNobodyElse(t *testing.T) {
	fault := &channels.SendError{Fault: channels.Retry, RetryAfter: 40 * time.Second, Code: "503"}
	setup := func(s *testStage, _ *dispatch.Dispatcher) { s.Platform.OnSend = failFirstSends("1", false, fault) }
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		s.publish(t, newOutbound("a", "1", "one"), newOutbound("b", "1", "two"), newOutbound("c", "2", "other"))
		synctest.Wait()
		wantTexts(t, s, "1")
		wantTexts(t, s, "2", "other")
		if send := s.lookup(t, "a"); send.Parts[0].State != channels.Queued || send.Parts[0].Interrupted != 0 {
			t.Errorf("what was certainly not sent is noted as %+v", send.Parts[0])
		}
		time.Sleep(39 * time.Second)
		synctest.Wait()
		wantTexts(t, s, "1")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		wantTexts(t, s, "1", "one", "two")
	})
}

func TestARateLimitOfTheAccountPausesTheTopic(t *testing.T) {
	fault := &channels.SendError{Fault: channels.Retry, RetryAfter: time.Minute, RateLimited: true, AccountWide: true, Code: "429"}
	setup := func(s *testStage, _ *dispatch.Dispatcher) { s.Platform.OnSend = failFirstSends("1", false, fault) }
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		s.publish(t, newOutbound("a", "1", "one"))
		synctest.Wait()
		s.publish(t, newOutbound("b", "2", "two"))
		time.Sleep(59 * time.Second)
		synctest.Wait()
		wantTexts(t, s, "2")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		wantTexts(t, s, "1", "one")
		wantTexts(t, s, "2", "two")
	})
}

func TestARejectedMessageBecomesADeadLetter(t *testing.T) {
	setup := func(s *testStage, _ *dispatch.Dispatcher) {
		s.Platform.ChannelLimits.Length = 64
		s.Platform.OnSend = failFirstSends("1", false, &channels.SendError{Fault: channels.Rejected, Code: "chat_not_found"})
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		s.publish(t, newOutbound("a", "1", strings.Repeat("secret ", 20)), newOutbound("b", "1", "next"))
		synctest.Wait()
		wantTexts(t, s, "1", "next")
		letters, err := s.Bus.DeadLetters(t.Context(), bus.OutboundTopic("c"), "", 10)
		if err != nil || len(letters) != 1 || letters[0].Message.ID != "a" || letters[0].Reason != "chat_not_found" {
			t.Errorf("dead letters %+v, %v", letters, err)
		}
		send := s.lookup(t, "a")
		for _, p := range send.Parts {
			if p.State != channels.Failed || p.Text != "" || p.Code != "chat_not_found" {
				t.Errorf("part %+v", p)
			}
		}
		mail := s.TakeMail(t)
		if len(mail) != 1 || mail[0].Kind != bus.Notice || mail[0].ID != "a#undelivered" || !strings.Contains(mail[0].Text, "chat_not_found") {
			t.Errorf("notices %+v", mail)
		}
		if strings.Contains(s.Log.String(), "secret") {
			t.Errorf("log: %s", s.Log)
		}
	})
}

func TestUnknownOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		policy      string
		tracing     bool
		arrives     bool
		arrivals    int
		interrupted int
		state       string
	}{
		"sent again, though it had arrived": {"resend", false, true, 2, 1, channels.Sent},
		"sent again, as it had not arrived": {"", false, false, 1, 1, channels.Sent},
		"dropped":                           {"drop", false, true, 1, 1, channels.OutcomeUnknown},
		"found":                             {"resend", true, true, 1, 0, channels.Sent},
		"found not to have arrived":         {"drop", true, false, 1, 0, channels.Sent},
	} {
		t.Run(name, func(t *testing.T) {
			setup := func(s *testStage, d *dispatch.Dispatcher) {
				d.Policy.OnUnknown = c.policy
				if c.tracing {
					d.Channel = channelstest.FindingChannel{MemoryChannel: s.Platform}
				}
				s.Platform.OnSend = failFirstSends("1", c.arrives, errors.New("connection reset"))
			}
			withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
				s.publish(t, newOutbound("a", "1", "x"), newOutbound("b", "1", "after"))
				time.Sleep(time.Minute)
				synctest.Wait()
				var want []string
				for range c.arrivals {
					want = append(want, "x")
				}
				wantTexts(t, s, "1", append(want, "after")...)
				if p := s.lookup(t, "a").Parts[0]; p.State != c.state || p.Interrupted != c.interrupted {
					t.Errorf("book: %+v", p)
				}
			})
		})
	}
}

func TestARefusedAccountStopsWithoutLoss(t *testing.T) {
	setup := func(s *testStage, _ *dispatch.Dispatcher) {
		s.Platform.OnSend = failFirstSends("1", false, &channels.SendError{Fault: channels.Stop, Code: "401"})
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, r *runningDispatcher) {
		s.publish(t, newOutbound("a", "1", "one"))
		r.err = <-r.ended
		r.once.Do(r.stop)
		if !isStopError(r.err) {
			t.Errorf("ended with %v", r.err)
		}
		if p := s.lookup(t, "a").Parts[0]; p.State != channels.Queued {
			t.Errorf("book: %+v", p)
		}
		again := startDispatcher(t, &dispatch.Dispatcher{Name: "c", Channel: s.Platform, Bus: s.Bus, Book: s.Book, Log: s.Logger()})
		time.Sleep(time.Minute)
		synctest.Wait()
		wantTexts(t, s, "1", "one")
		if err := again.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestWhenMessagesAreGivenUp(t *testing.T) {
	var tries atomic.Int64
	setup := func(s *testStage, _ *dispatch.Dispatcher) {
		s.Platform.OnSend = func(_ context.Context, to bus.Address, _ channels.Part) (bool, error) {
			if to.Chat != "1" {
				return true, nil
			}
			tries.Add(1)
			return false, &channels.SendError{Fault: channels.Retry, Code: "503"}
		}
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		s.publish(t, newOutbound("a", "1", "one"))
		time.Sleep(23 * time.Hour)
		synctest.Wait()
		if d := s.TopicDepth(t, bus.OutboundTopic("c")); d.Waiting != 1 || tries.Load() < 100 || tries.Load() > 1500 {
			t.Errorf("after 23 hours and %d tries: %+v", tries.Load(), d)
		}
		time.Sleep(90 * time.Minute)
		synctest.Wait()
		if d := s.TopicDepth(t, bus.OutboundTopic("c")); d.Dead != 1 || d.Waiting != 0 {
			t.Errorf("after a day: %+v", d)
		}
		if mail := s.TakeMail(t); len(mail) != 1 || mail[0].Kind != bus.Notice {
			t.Errorf("notices %+v", mail)
		}
	})
}

func TestAChatThatMovedIsFollowed(t *testing.T) {
	var moves atomic.Int64
	setup := func(s *testStage, _ *dispatch.Dispatcher) {
		s.Platform.OnSend = failAndCount("-1", &moves, channels.SendError{Fault: channels.Rejected, MovedTo: "-1001"})
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		s.publish(t, newOutbound("a", "-1", "one"), newOutbound("b", "-1", "two"))
		synctest.Wait()
		wantTexts(t, s, "-1001", "one", "two")
		if moves.Load() != 1 {
			t.Errorf("the platform said %d times that the chat moved", moves.Load())
		}
	})
}

func TestAnUnreadableMessageBecomesADeadLetter(t *testing.T) {
	withDispatcher(t, nil, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		if err := s.Bus.Publish(t.Context(), bus.OutboundTopic("c"), bus.Message{ID: "bad", Key: "c:1", Body: []byte("{")}); err != nil {
			t.Fatal(err)
		}
		s.publish(t, subjectMessage("blank", "1", "", " \n"), newOutbound("a", "1", "one"))
		synctest.Wait()
		wantTexts(t, s, "1", "one")
		if d := s.TopicDepth(t, bus.OutboundTopic("c")); d.Dead != 1 || d.Waiting != 0 {
			t.Errorf("%+v", d)
		}
	})
}

func TestSendsKeepTheRateLimits(t *testing.T) {
	setup := func(s *testStage, _ *dispatch.Dispatcher) {
		s.Platform.ChannelLimits = channels.Limits{
			Chat: channels.Pace{Every: time.Second, Burst: 1}, Group: channels.Pace{Every: 3 * time.Second, Burst: 20},
			Account: channels.Pace{Every: time.Second / 30, Burst: 30}, IsGroup: func(chat string) bool { return chat[0] == '-' },
		}
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		began := time.Now()
		for i := range 25 {
			s.publish(t, newOutbound(fmt.Sprint("g", i), "-1", "x"), newOutbound(fmt.Sprint("p", i), "1", "x"))
		}
		for i := range 200 {
			s.publish(t, newOutbound(fmt.Sprint("o", i), fmt.Sprint("other", i), "x"))
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		var group, private []time.Time
		perSecond := map[time.Duration]int{}
		for _, a := range s.Platform.Sent() {
			perSecond[a.At.Sub(began)/time.Second]++
			switch a.To.Chat {
			case "-1":
				group = append(group, a.At)
			case "1":
				private = append(private, a.At)
			}
		}
		if len(s.Platform.Sent()) != 250 {
			t.Fatalf("%d of 250 were sent", len(s.Platform.Sent()))
		}
		for second, n := range perSecond {
			if n > 60 || second > 0 && n > 31 {
				t.Errorf("%d sends in second %d", n, second)
			}
		}
		if d := private[24].Sub(private[0]); d < 24*time.Second || d > 40*time.Second {
			t.Errorf("25 messages to one chat took %v", d)
		}
		if d := group[24].Sub(group[0]); d < 15*time.Second || d > 40*time.Second {
			t.Errorf("25 messages to a group took %v", d)
		}
	})
}

// A failingBook fails to record sends until a given time.
type failingBook struct {
	channels.Sends
	failsUntil time.Time
}

func (b failingBook) Mark(ctx context.Context, id string, part int, now channels.SentPart) error {
	if time.Now().Before(b.failsUntil) {
		return errors.New("away")
	}
	return b.Sends.Mark(ctx, id, part, now)
}

// A rivalBook is a book in which another process finishes a message's second part just before this process
// begins it.
type rivalBook struct{ channels.Sends }

func (b rivalBook) Mark(ctx context.Context, id string, part int, now channels.SentPart) error {
	if part == 1 && now.State == channels.Sending {
		if err := b.Sends.Mark(ctx, id, part, channels.SentPart{State: channels.Sent, PlatformID: "of the other"}); err != nil {
			return err
		}
	}
	return b.Sends.Mark(ctx, id, part, now)
}

// A process that was paused must not send a part again that another process has sent and recorded in the
// meantime.
func TestAPartThatAnotherProcessSentIsNotSentAgain(t *testing.T) {
	setup := func(s *testStage, d *dispatch.Dispatcher) {
		s.Platform.ChannelLimits.Length, d.Book = 100, rivalBook{s.Book}
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		first, second := strings.Repeat("one ", 20)+"end.", strings.Repeat("two ", 20)+"end."
		s.publish(t, newOutbound("a", "1", first+"\n\n"+second))
		sleep(2 * time.Minute)
		wantTexts(t, s, "1", first)
		if part := s.lookup(t, "a").Parts[1]; part.State != channels.Sent || part.PlatformID != "of the other" {
			t.Errorf("book: %+v", part)
		}
		if d := s.TopicDepth(t, bus.OutboundTopic("c")); d.Waiting != 0 {
			t.Errorf("%+v", d)
		}
	})
}

// While a process and its lease last, the process knows what it has sent, however long the book fails.
func TestABookOutageMakesNoSendUnknown(t *testing.T) {
	setup := func(s *testStage, d *dispatch.Dispatcher) { d.Book = failingBook{s.Book, time.Now().Add(time.Minute)} }
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		s.publish(t, newOutbound("a", "1", "one"), newOutbound("b", "1", "two"))
		sleep(2 * time.Minute)
		wantTexts(t, s, "1", "one", "two")
		if part := s.lookup(t, "a").Parts[0]; part.State != channels.Sent || part.Interrupted != 0 {
			t.Errorf("book: %+v", part)
		}
	})
}

// An erasure may remove the record of a message while the message is being sent.
func TestAMessageWhoseRecordIsErasedIsNotSentAgain(t *testing.T) {
	setup := func(s *testStage, _ *dispatch.Dispatcher) {
		s.Platform.ChannelLimits.Length = 100
		var once sync.Once
		s.Platform.OnSend = func(ctx context.Context, _ bus.Address, _ channels.Part) (arrives bool, err error) {
			once.Do(func() { _, err = s.Book.Erase(ctx, sqlbook.Erasure{Sends: []string{"a"}}) })
			return true, err
		}
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		first, second := strings.Repeat("one ", 20)+"end.", strings.Repeat("two ", 20)+"end."
		s.publish(t, newOutbound("a", "1", first+"\n\n"+second))
		sleep(2 * time.Minute)
		wantTexts(t, s, "1", first, second)
		if d := s.TopicDepth(t, bus.OutboundTopic("c")); d.Waiting != 0 {
			t.Errorf("%+v", d)
		}
	})
}

func TestSendsInFlightAreFinishedAtTheEnd(t *testing.T) {
	var cut atomic.Bool
	setup := func(s *testStage, d *dispatch.Dispatcher) {
		d.Policy.Drain = 3 * time.Second
		s.Platform.OnSend = func(ctx context.Context, to bus.Address, _ channels.Part) (bool, error) {
			wait := time.Second
			if to.Chat == "stuck" {
				wait = time.Hour
			}
			select {
			case <-time.After(wait):
				return true, nil
			case <-ctx.Done():
				cut.Store(true)
				return false, ctx.Err()
			}
		}
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, r *runningDispatcher) {
		s.publish(t, newOutbound("a", "1", "one"), newOutbound("b", "1", "two"), newOutbound("c", "stuck", "three"))
		synctest.Wait()
		began := time.Now()
		if err := r.end(); err != nil {
			t.Errorf("ended with %v", err)
		}
		if took := time.Since(began); took < time.Second || took > 4*time.Second {
			t.Errorf("it took %v to end", took)
		}
		wantTexts(t, s, "1", "one")
		if s.lookup(t, "a").State() != channels.Sent || !cut.Load() || s.lookup(t, "c").Parts[0].State != channels.Sending {
			t.Errorf("book: %+v, %+v; cut off: %v", s.lookup(t, "a"), s.lookup(t, "c"), cut.Load())
		}
		if _, err := s.Book.Lookup(t.Context(), "b"); !errors.Is(err, channels.ErrNoSend) {
			t.Errorf("what was not begun is in the book: %v", err)
		}
		if d := s.TopicDepth(t, bus.OutboundTopic("c")); d.Waiting != 2 || d.Leased != 0 {
			t.Errorf("%+v", d)
		}
	})
}

func TestTyping(t *testing.T) {
	var p *channelstest.TypingChannel
	setup := func(s *testStage, d *dispatch.Dispatcher) {
		p = &channelstest.TypingChannel{MemoryChannel: s.Platform}
		d.Channel = p
	}
	event := func(typ, turn, chat string) bus.Event {
		return bus.Event{Type: typ, Session: "main:c:" + chat, Turn: turn, Route: bus.Address{Channel: "c", Chat: chat}}
	}
	shown := func(chat string) (n int) {
		for _, a := range p.Shown() {
			if a.To.Chat == chat {
				n++
			}
		}
		return n
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		synctest.Wait()
		s.Bus.Emit(event(bus.TurnStart, "quick", "1"))
		s.Bus.Emit(event(bus.TurnStart, "t", "2"))
		s.Bus.Emit(event(bus.TurnStart, "long", "3"))
		time.Sleep(100 * time.Millisecond)
		s.Bus.Emit(event(bus.TurnComplete, "quick", "1"))
		time.Sleep(10 * time.Second)
		s.publish(t, newOutbound("a", "2", "the answer"))
		synctest.Wait()
		if shown("1") != 0 || shown("2") < 2 || shown("3") < 2 {
			t.Errorf("shown %d, %d and %d times", shown("1"), shown("2"), shown("3"))
		}
		before := shown("2")
		time.Sleep(10 * time.Second)
		if shown("2") != before {
			t.Error("shown at work after the answer was sent")
		}
		time.Sleep(time.Hour)
		if n := shown("3"); n < 300 || n > 600 {
			t.Errorf("a turn without end is shown %d times", n)
		}
		last := p.Shown()[len(p.Shown())-1]
		if time.Since(last.At) < 29*time.Minute {
			t.Error("shown for longer than half an hour")
		}
	})
}

func TestAnotherProcessTakesOverTheDispatch(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, dir, bus.Caps{})
		defer s.Close()
		first := startDispatcher(t, &dispatch.Dispatcher{Name: "c", Channel: s.Platform, Bus: s.Bus, Book: s.Book, Log: s.Logger()})
		synctest.Wait()
		second := startDispatcher(t, &dispatch.Dispatcher{Name: "c", Channel: s.Platform, Bus: s.Bus, Book: s.Book, Log: s.Logger()})
		s.publish(t, newOutbound("a", "1", "one"))
		synctest.Wait()
		if err := first.end(); err != nil {
			t.Error(err)
		}
		s.publish(t, newOutbound("b", "1", "two"))
		synctest.Wait()
		wantTexts(t, s, "1", "one", "two")
		if err := second.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestNothingIsSentAfterTheLeaseIsLost(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newStageWithMaxHold(t, dir, 10*time.Second)
		defer s.Close()
		s.Platform.ChannelLimits.Length = 64
		first := make(chan struct{}, 1)
		first <- struct{}{}
		s.Platform.OnSend = func(context.Context, bus.Address, channels.Part) (bool, error) {
			select {
			case <-first:
				time.Sleep(20 * time.Second) // longer than any lease
			default:
			}
			return true, nil
		}
		r := startDispatcher(t, &dispatch.Dispatcher{Name: "c", Channel: s.Platform, Bus: s.Bus, Book: s.Book, Log: s.Logger()})
		s.publish(t, newOutbound("a", "1", strings.Repeat("word ", 30)))
		time.Sleep(time.Minute)
		synctest.Wait()
		keys := map[string]int{}
		for _, a := range s.Platform.Sent() {
			keys[a.Part.Key]++
		}
		send := s.lookup(t, "a")
		if send.State() != channels.Sent || send.Parts[0].Interrupted != 1 {
			t.Errorf("book: %+v", send)
		}
		for i := range send.Parts {
			if want := 1 + send.Parts[i].Interrupted; keys[fmt.Sprint("a/", i)] != want {
				t.Errorf("part %d arrived %d times, want %d", i, keys[fmt.Sprint("a/", i)], want)
			}
		}
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
}

// An answer is planned before it is published only if it can be sent at once, and if it may be sent again after
// a crash.
func TestRepliesThatArePlannedBeforeTheyArePublished(t *testing.T) {
	answer := func(change func(*bus.Outbound)) bus.Outbound {
		out := newOutbound("t#reply", "1", "hello")
		if change != nil {
			change(&out)
		}
		return out
	}
	plan := func(t *testing.T, d *dispatch.Dispatcher, out bus.Outbound) (channels.Send, bool) {
		t.Helper()
		body, err := out.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return d.PlanReply(out.ID, body)
	}
	var d *dispatch.Dispatcher
	remember := func(s *testStage, one *dispatch.Dispatcher) { d, s.Platform.ChannelLimits.Length = one, 100 }
	withDispatcher(t, remember, func(t *testing.T, s *testStage, r *runningDispatcher) {
		synctest.Wait()
		send, ok := plan(t, d, answer(nil))
		if !ok || send.ID != "t#reply" || send.To.Chat != "1" || send.Session != "main:c:1" || len(send.Parts) != 1 || send.Parts[0].Text != "hello" {
			t.Errorf("planned is %+v, %v", send, ok)
		}
		for name, change := range map[string]func(*bus.Outbound){
			"a message of the tool":         func(out *bus.Outbound) { out.ID = "t#m1" },
			"an answer that expires":        func(out *bus.Outbound) { out.Expires = time.Now().Add(time.Hour) },
			"an answer with a file":         func(out *bus.Outbound) { out.Files = []bus.FileRef{{Name: "a.txt"}} },
			"an answer about a subject":     func(out *bus.Outbound) { out.Subject = "deploy" },
			"an answer with unknown needs":  func(out *bus.Outbound) { out.Needs = []string{"wings"} },
			"an answer that shows nothing":  func(out *bus.Outbound) { out.Text = "" },
			"an answer for a file":          func(out *bus.Outbound) { out.Text = strings.Repeat("a sentence that is quite short. ", 100) },
			"an answer to no clean address": func(out *bus.Outbound) { out.To.Chat = "1\x00" },
		} {
			if send, ok := plan(t, d, answer(change)); ok {
				t.Errorf("%s is planned as %+v", name, send)
			}
		}
		if err := r.end(); err != nil {
			t.Error(err)
		}
		if send, ok := plan(t, d, answer(nil)); ok {
			t.Errorf("while nobody sends, an answer is planned as %+v", send)
		}
	})
	withDispatcher(t, func(s *testStage, one *dispatch.Dispatcher) { d, one.Policy.OnUnknown = one, "drop" }, func(t *testing.T, _ *testStage, _ *runningDispatcher) {
		synctest.Wait()
		if send, ok := plan(t, d, answer(nil)); ok {
			t.Errorf("where nothing is sent again, an answer is planned as %+v", send)
		}
	})
	refuseOne := func(s *testStage, one *dispatch.Dispatcher) {
		d = one
		s.Platform.OnSend = failFirstSends("1", false, &channels.SendError{Fault: channels.Retry, Code: "503"})
	}
	withDispatcher(t, refuseOne, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		s.publish(t, newOutbound("a", "1", "one"))
		synctest.Wait()
		if send, ok := plan(t, d, answer(nil)); ok {
			t.Errorf("behind a message that waits, an answer is planned as %+v", send)
		}
		if _, ok := plan(t, d, answer(func(out *bus.Outbound) { out.To.Chat = "2" })); !ok {
			t.Error("an answer to another chat is not planned")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, ok := plan(t, d, answer(nil)); !ok {
			t.Error("when nothing waits anymore, an answer is not planned")
		}
	})
}
