package bustest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/bus"
)

// forgetPromises are tested only if a bus is a bus.Forgetter.
var forgetPromises = []promise{
	{"takes out what it is told to, and leaves the rest in order", testForgetWaiting},
	{"keeps ids from being used again", testForgetKeepsIDs},
	{"takes the mailbox from its holder, for whom all is over", testForgetLeased},
	{"leaves those in peace who hold none of it", testForgetSparesOthers},
	{"ends the wait of what is gone, and of nothing else", testForgetDelayed},
	{"takes out dead letters", testForgetDeadLetters},
	{"takes out every topic's", testForgetTopics},
	{"leaves no events of a session", testForgetEvents},
	{"holds over a restart", testForgetReopen},
	{"loses nothing else under load", testForgetUnderLoad},
}

// openForgetter opens r's bus, and skips the test if that is not a bus.Forgetter.
func (r *rig) openForgetter() {
	r.Helper()
	r.open(Options{})
	if _, ok := r.Bus.(bus.Forgetter); !ok {
		r.Skip("this bus does not forget")
	}
}

// forget forgets the messages with these ids, and checks how many there were.
func (r *rig) forget(want bus.Forgotten, ids ...string) {
	r.Helper()
	got := r.forgetThat(func(_ bus.Topic, m bus.Message) bool { return slices.Contains(ids, m.ID) })
	if got != want {
		r.Errorf("forgot %+v, want %+v", got, want)
	}
}

// forgetThat forgets the messages for which match returns true, and the events of sessions, and
// returns the counts.
func (r *rig) forgetThat(match func(bus.Topic, bus.Message) bool, sessions ...string) bus.Forgotten {
	r.Helper()
	got, err := r.Bus.(bus.Forgetter).Forget(r.Context(), match, sessions...)
	r.noError("forget", err)
	return got
}

func testForgetWaiting(r *rig) {
	r.openForgetter()
	r.publish("k", "a", "b", "c", "d", "e")
	r.publish("gone", "f")
	r.publish("other", "g")
	r.forgetThat(func(topic bus.Topic, m bus.Message) bool {
		if topic != inbound || string(m.Body) != "body of "+m.ID || m.Seq == 0 {
			r.Errorf("asked about %s %+v", topic, m)
		}
		return false
	})
	r.forget(bus.Forgotten{Messages: 4}, "a", "c", "e", "f")
	if d := r.readDepth(inbound); d.Waiting != 3 || d.Leased != 0 || d.Delayed != 0 {
		r.Errorf("depth is %+v", d)
	}
	r.publish("k", "h")
	for range 2 { // a mailbox that lost a message is at the end of the queue
		l := r.claim()
		ids := []string{"b", "d", "h"}
		if l.Claim().Key == "other" {
			ids = []string{"g"}
		}
		r.settle(l, bus.End{Done: r.wantMail(l, 0, ids...)})
	}
	r.wantNothingDue(inbound, 50*time.Millisecond)
	r.wantNothingLeft()
}

func testForgetKeepsIDs(r *rig) {
	r.openForgetter()
	r.publish("k", "a")
	r.forget(bus.Forgotten{Messages: 1}, "a")
	r.publish("k", "a")
	r.wantNothingDue(inbound, 50*time.Millisecond)
	r.wantNothingLeft()
}

func testForgetLeased(r *rig) {
	r.openForgetter()
	r.publish("k", "a", "b")
	l := r.claimKey("k")
	last := r.wantMail(l, 0, "a", "b")
	var waiting sync.WaitGroup
	waiting.Go(func() {
		_, err := AwaitMail(r.Context(), l, last)
		if !errors.Is(err, bus.ErrFenced) {
			r.Errorf("waiting for mail: %v", err)
		}
	})
	r.waitIdle()
	r.forget(bus.Forgotten{Messages: 1, Leases: 1}, "a")
	waiting.Wait()
	<-l.Lost()
	r.wantError("held", l.Held(r.Context()), bus.ErrFenced)
	r.wantError("settle", l.Settle(r.Context(), bus.End{Done: last}), bus.ErrFenced)
	r.wantNothingDue(inbound, time.Second) // pending work gets time to end
	l = r.claimKey("k")
	r.wantAttempts(l, 1)
	r.publish("k", "c")
	r.settle(l, bus.End{Done: r.wantMail(l, 0, "b", "c")})

	r.publish("k", "d", "e")
	r.settle(r.claimKey("k"), bus.End{})
	r.claimKey("k")
	r.forget(bus.Forgotten{Messages: 1, Leases: 1}, "e")
	l = r.claimKey("k")
	r.wantAttempts(l, 2) // the claim that was cut off isn't counted, the one before is
	r.settle(l, bus.End{Done: r.wantMail(l, 0, "d")})
	r.wantNothingLeft()
}

func testForgetSparesOthers(r *rig) {
	r.openForgetter()
	r.publish("k", "a")
	r.publish("other", "b")
	l := r.claimKey("k")
	awaitLeased(r, 1)
	r.forget(bus.Forgotten{Messages: 1}, "b")
	r.noError("held", l.Held(r.Context()))
	r.publish("k", "c")
	r.settle(l, bus.End{Done: r.wantMail(l, 0, "a", "c")})
	r.wantNothingLeft()
}

func testForgetDelayed(r *rig) {
	r.openForgetter()
	r.publish("first", "a", "b")
	r.publish("second", "c", "d")
	for range 2 {
		r.settle(r.claim(), bus.End{After: time.Hour})
	}
	r.forget(bus.Forgotten{Messages: 2}, "a", "d")
	l := r.claimKey("first")
	r.wantAttempts(l, 1)
	r.settle(l, bus.End{Done: r.wantMail(l, 0, "b")})
	r.wantNothingDue(inbound, 50*time.Millisecond)
	if err := r.Publish(r.Context(), inbound, bus.Message{ID: "e", Key: "second", Urgent: true, Body: []byte("body of e")}); err != nil {
		r.Fatal(err)
	}
	l = r.claimKey("second")
	r.wantAttempts(l, 2)
	r.settle(l, bus.End{Done: r.wantMail(l, 0, "c", "e")})
	r.wantNothingLeft()
}

func testForgetDeadLetters(r *rig) {
	r.openForgetter()
	r.publish("k", "a", "b", "c")
	r.bury("k", "poison", "a", "b", "c")
	r.forget(bus.Forgotten{DeadLetters: 2}, "a", "c")
	r.wantDeadLetters("", 10, "b")
	r.wantNothingLeft()
}

func testForgetTopics(r *rig) {
	r.openForgetter()
	topics := []bus.Topic{inbound, bus.OutboundTopic("telegram"), bus.TimersTopic}
	for _, topic := range topics {
		for _, id := range []string{"a", "b"} {
			m := bus.Message{ID: id, Key: id, Body: []byte("body of " + id)}
			if topic == bus.TimersTopic {
				m.NotBefore = time.Now().Add(time.Hour)
			}
			r.noError("publish", r.Publish(r.Context(), topic, m))
		}
	}
	var asked []bus.Topic
	r.forgetThat(func(topic bus.Topic, m bus.Message) bool {
		if !slices.Contains(asked, topic) {
			asked = append(asked, topic)
		}
		return m.ID == "a"
	})
	if len(asked) != len(topics) {
		r.Errorf("was asked about %v", asked)
	}
	for _, topic := range topics {
		if d := r.readDepth(topic); d.Waiting != 1 {
			r.Errorf("%s: depth is %+v", topic, d)
		}
	}
}

func testForgetEvents(r *rig) {
	r.openForgetter()
	live := r.subscribe(bus.SessionFeed("s"), 0)
	channel := r.subscribe(bus.ChannelFeed("telegram"), 0)
	for i := range 3 {
		for _, session := range []string{"s", "other"} {
			e := newEvent(session, i)
			e.Delta = "said in " + session
			r.Emit(e)
		}
	}
	first := live.wantBlocks(0)
	if e, err, _ := channel.next(); err != nil || e.Delta == "" {
		r.Fatalf("the first event is %+v, %v", e, err)
	}
	r.forgetThat(func(bus.Topic, bus.Message) bool { return false }, "s")
	if _, err := r.Subscribe(r.Context(), bus.SessionFeed("s"), first.ID); !errors.Is(err, bus.ErrGone) {
		r.Errorf("the past can be subscribed to: %v", err)
	}
	r.Emit(newEvent("s", 3))
	for {
		e, err, _ := live.next()
		if errors.Is(err, bus.ErrGone) {
			continue
		}
		if err != nil || e.Block != 3 {
			r.Fatalf("the next event is %+v, %v", e, err)
		}
		break
	}
	for last := false; !last; { // the events of another session are complete
		e, err, _ := channel.next()
		if errors.Is(err, bus.ErrGone) {
			continue
		}
		r.noError("the channel's next event", err)
		if strings.Contains(e.Delta, "said in s") || e.Session == "other" && e.Delta == "" {
			r.Errorf("the channel has %+v", e)
		}
		last = e.Block == 3
	}
}

func testForgetReopen(r *rig) {
	r.openForgetter()
	r.publish("k", "a", "b", "c")
	r.publish("gone", "d")
	r.forget(bus.Forgotten{Messages: 3}, "a", "c", "d")
	r.reopen()
	r.publish("k", "a", "e")
	r.finish("k", "b", "e")
	r.wantNothingDue(inbound, 50*time.Millisecond)
	r.wantNothingLeft()
}

// testForgetUnderLoad forgets some messages while others are worked on. Those with ids "keep…" have
// to be answered all the same, all of them and in order.
func testForgetUnderLoad(r *rig) {
	r.openForgetter()
	const keys, each = 4, 60
	var publishing sync.WaitGroup
	for k := range keys {
		publishing.Go(func() {
			for n := range each {
				r.publish(fmt.Sprint("k", k), fmt.Sprintf("keep-%d-%03d", k, n), fmt.Sprintf("drop-%d-%03d", k, n))
			}
		})
	}
	published := make(chan struct{})
	go func() { publishing.Wait(); close(published) }()

	ctx, stop := context.WithTimeout(r.Context(), 2*patience)
	defer stop()
	answers := &answerCounter{rig: r, next: map[string]int{}}
	var working sync.WaitGroup
	work := func() {
		for range 3 {
			working.Go(func() {
				r.answerUntil(ctx, func(mail []bus.Message) {
					if answers.count(mail) == keys*each {
						stop()
					}
				})
			})
		}
	}
	forgotten := 0
	for done := false; !done; {
		select {
		case <-published:
			done = true
		default:
		}
		before := forgotten
		forgotten += r.forgetThat(func(_ bus.Topic, m bus.Message) bool { return strings.HasPrefix(m.ID, "drop") }).Messages
		if before == 0 && (forgotten > 0 || done) {
			work() // not earlier: all messages could be answered, and none would be left to forget
		}
	}
	working.Wait()
	if !errors.Is(ctx.Err(), context.Canceled) {
		r.Errorf("answered %v of %d each", answers.next, each)
	}
	if forgotten == 0 {
		r.Error("nothing was forgotten: the test has shown nothing")
	}
	// A worker that was stopped may have held what was to be forgotten last.
	r.forgetThat(func(_ bus.Topic, m bus.Message) bool { return strings.HasPrefix(m.ID, "drop") })
	answerRest(r, func(mail []bus.Message) { answers.count(mail) })
	r.wantNothingLeft()
}

// answerRest answers mail until nothing is left. A holder that lost a lease to a Forget has answered the mail without
// settling it, so the mail comes again.
func answerRest(r *rig, answered func([]bus.Message)) {
	r.Helper()
	ctx, stop := context.WithCancel(r.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer stop()
	working.Go(func() { r.answerUntil(ctx, answered) })
	r.await("the rest to be answered", func() bool { return len(r.harness.Residue(r, r.place, r.Bus)) == 0 })
}

// An answerCounter counts the messages with ids "keep…" that were answered, and fails the test if
// one is answered out of order.
type answerCounter struct {
	*rig
	mu   sync.Mutex
	next map[string]int
}

// count counts mail that is being answered, and returns how many messages were answered so
// far.
func (a *answerCounter) count(mail []bus.Message) (all int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range mail {
		if !strings.HasPrefix(m.ID, "keep") {
			continue
		}
		switch want := fmt.Sprintf("keep-%s-%03d", m.Key[1:], a.next[m.Key]); {
		case m.ID == want:
			a.next[m.Key]++
		case m.ID > want: // a smaller one is a repeat, because its holder lost the lease before it settled
			a.Errorf("answered %s, want %s", m.ID, want)
		}
	}
	for _, n := range a.next {
		all += n
	}
	return all
}

// answerUntil claims mail, calls answered, and settles, until ctx ends. It calls answered
// before it settles, because afterwards another worker may have the next mail already.
func (r *rig) answerUntil(ctx context.Context, answered func([]bus.Message)) {
	for {
		l, err := r.Claim(ctx, inbound)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.Errorf("claim: %v", err)
			return
		}
		mail, err := l.Mail(r.Context(), 0)
		if err == nil {
			answered(mail)
			err = l.Settle(r.Context(), bus.End{Done: mail[len(mail)-1].Seq})
		}
		if err != nil && !errors.Is(err, bus.ErrFenced) { // otherwise the next holder gets all of it again
			r.Errorf("work: %v", err)
			return
		}
	}
}
