package bustest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"parley/bus"
)

var publishing = []promise{
	{"is durable when it returns", durable},
	{"drops an id published today or yesterday", deduplicated},
	{"drops an id published again at the same time", deduplicatedAtOnce},
	{"takes the same id in another topic", topicsAreApart},
	{"refuses what is beyond the cap and does not burn its id", capped},
	{"takes no more than the cap from many at once", cappedAtOnce},
	{"takes urgent mail beyond the cap", urgentBeyondCap},
	{"keeps the fields of a message", fields},
	{"refuses what no bus would take", invalid},
	{"keeps nothing of the caller's buffer", buffers},
	{"leaves nothing of an idle mailbox", idleLeavesNothing},
	{"numbers a mailbox upward, after it was empty and reopened too", numbersGrow},
	{"keeps not-before mail until its time", notBefore},
	{"lets urgent mail wake a mailbox that waits", urgentWakes},
	{"stops at a pause and goes on after it", paused},
	{"counts what waits, is worked on, is delayed, and its age", depth},
	{"keeps the bodies of a long backlog out of memory", memory},
	{"is closed after Close", closed},
	{"has kept what it accepted while it was closed", closedWhilePublishing},
}

func durable(r *rig) {
	r.open(Options{})
	r.say("k", "a", "b")
	r.reopen()
	r.finish("k", "a", "b")
	r.reopen()
	r.nothing(inbound, 50*time.Millisecond)
}

func deduplicated(r *rig) {
	r.open(Options{})
	r.say("k", "a", "a")
	r.finish("k", "a")
	r.say("k", "a")
	r.say("other", "a")
	r.reopen()
	r.say("k", "a")
	r.nothing(inbound, 50*time.Millisecond)
	r.clean()

	if r.h.NextDay == nil && !r.h.Simulated {
		r.Skip("the days of this bus cannot be moved")
	}
	r.nextDay()
	r.say("k", "a")
	r.nothing(inbound, 50*time.Millisecond)
	r.nextDay()
	r.say("k", "a") // the ids of two days ago are forgotten
	r.finish("k", "a")
}

func (r *rig) nextDay() {
	if r.h.NextDay != nil {
		r.h.NextDay(r, r.place)
		return
	}
	<-time.After(24 * time.Hour)
}

func deduplicatedAtOnce(r *rig) {
	r.open(Options{})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := r.Publish(r.Context(), inbound, bus.Message{ID: "a", Key: "k", Body: []byte("body of a")}); err != nil {
				r.Error(err)
			}
		})
	}
	wg.Wait()
	r.finish("k", "a")
	r.nothing(inbound, 50*time.Millisecond)
}

func topicsAreApart(r *rig) {
	r.open(Options{})
	out := bus.OutboundTopic("telegram")
	r.say("k", "a")
	r.ok("publish", r.Publish(r.Context(), out, bus.Message{ID: "a", Key: "k", Body: []byte("body of a")}))
	l := r.claimOf(r.Bus, out)
	r.finish("k", "a") // its inbound mailbox of the same key is free
	r.settle(l, bus.End{Done: r.mail(l, 0, "a")})
	topics, err := r.Topics(r.Context())
	r.ok("topics", err)
	if fmt.Sprint(topics) != fmt.Sprint([]bus.Topic{inbound, out}) {
		r.Errorf("topics are %v", topics)
	}
	r.clean()
}

func (r *rig) full(id string) {
	r.Helper()
	r.is("publish "+id, r.Publish(r.Context(), inbound, bus.Message{ID: id, Key: "k", Body: []byte("body of " + id)}), bus.ErrFull)
}

func capped(r *rig) {
	r.open(Options{Caps: bus.Caps{Inbound: 2, Outbound: 1}})
	r.say("k", "a", "b")
	r.full("c")
	r.say("k", "a")     // known: accepted, full or not
	r.say("other", "d") // another mailbox has its own room
	l := r.claimKey("k")
	r.full("c") // what is being answered counts
	r.settle(l, bus.End{Done: r.mail(l, 0, "a", "b")})
	r.say("k", "c")
	r.finish("other", "d")
	r.finish("k", "c")
	for i := range 5 { // timers have no cap
		r.ok("publish", r.Publish(r.Context(), bus.TimersTopic, bus.Message{ID: fmt.Sprint(i), Key: "k"}))
	}
}

func cappedAtOnce(r *rig) {
	r.open(Options{Caps: bus.Caps{Inbound: 10}})
	var wg sync.WaitGroup
	var mu sync.Mutex
	var taken, refused int
	for i := range 40 {
		wg.Go(func() {
			err := r.Publish(r.Context(), inbound, bus.Message{ID: fmt.Sprint(i), Key: "k"})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				taken++
			case errors.Is(err, bus.ErrFull):
				refused++
			default:
				r.Error(err)
			}
		})
	}
	wg.Wait()
	if taken != 10 || refused != 30 {
		r.Errorf("%d taken and %d refused, want 10 and 30", taken, refused)
	}
}

func (r *rig) urgent(key, id string) {
	r.Helper()
	r.ok("publish "+id, r.Publish(r.Context(), inbound, bus.Message{ID: id, Key: key, Urgent: true, Body: []byte("body of " + id)}))
}

func urgentBeyondCap(r *rig) {
	r.open(Options{Caps: bus.Caps{Inbound: 1}})
	r.say("k", "a")
	r.full("b")
	r.urgent("k", "stop")
	r.full("b")
	r.finish("k", "a", "stop")
}

func fields(r *rig) {
	r.open(Options{})
	due := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	in := bus.Message{ID: strings.Repeat("ü", bus.MaxID/2), Key: "{main}:a b%\n", NotBefore: due, Urgent: true, Body: []byte{0, 255, '\n'}}
	empty := bus.Message{ID: "empty", Key: in.Key}
	for range 2 {
		r.ok("publish", r.Publish(r.Context(), inbound, in))
		r.ok("publish", r.Publish(r.Context(), inbound, empty))
		for range 2 {
			l := r.claimKey(in.Key)
			got, err := l.Mail(r.Context(), 0)
			r.ok("mail", err)
			if len(got) != 2 || got[0].ID != in.ID || got[0].Key != in.Key || !got[0].NotBefore.Equal(due) || !got[0].Urgent || !bytes.Equal(got[0].Body, in.Body) {
				r.Fatalf("got %+v, want %+v and another", got, in)
			}
			if m := got[1]; m.ID != "empty" || !m.NotBefore.IsZero() || m.Urgent || len(m.Body) != 0 {
				r.Fatalf("got %+v, want %+v", m, empty)
			}
			r.settle(l, bus.End{})
			r.reopen() // and the same once it is read from where it is durable
		}
	}
}

func invalid(r *rig) {
	r.open(Options{})
	long := strings.Repeat("x", 257)
	for name, m := range map[string]bus.Message{
		"no id": {Key: "k"}, "no key": {ID: "a"}, "long id": {ID: long, Key: "k"}, "long key": {ID: "a", Key: long},
		"NUL in id": {ID: "a\x00", Key: "k"}, "NUL in key": {ID: "a", Key: "k\x00"},
		"not UTF-8 in id": {ID: "\xff", Key: "k"}, "not UTF-8 in key": {ID: "a", Key: "\xff"},
		"large body": {ID: "a", Key: "k", Body: make([]byte, bus.MaxBody+1)},
	} {
		r.is(name, r.Publish(r.Context(), inbound, m), bus.ErrInvalid)
	}
	largest := bus.Message{ID: long[1:], Key: long[1:], Body: make([]byte, bus.MaxBody)}
	r.ok("largest", r.Publish(r.Context(), inbound, largest))
	r.reopen()
	got, err := r.claimKey(largest.Key).Mail(r.Context(), 0)
	r.ok("mail", err)
	if len(got) != 1 || !bytes.Equal(got[0].Body, largest.Body) {
		r.Error("the largest message came back changed")
	}
}

func buffers(r *rig) {
	r.open(Options{})
	m := bus.Message{ID: "a", Key: "k", Body: []byte("body of a")}
	r.ok("publish", r.Publish(r.Context(), inbound, m))
	m.Body[0] = 'X'
	l := r.claimKey("k")
	got, err := l.Mail(r.Context(), 0)
	r.ok("mail", err)
	got[0].Body[0] = 'Y'
	r.mail(l, 0, "a")
}

func idleLeavesNothing(r *rig) {
	r.open(Options{Caps: bus.Caps{Inbound: 5}})
	for i := range 50 {
		r.say(fmt.Sprint("key", i), fmt.Sprint("id", i))
	}
	if len(r.h.Residue(r, r.place, r.Bus)) == 0 {
		r.Fatal("the harness sees no mailbox while there are 50")
	}
	for i := range 50 {
		r.finish(fmt.Sprint("key", i), fmt.Sprint("id", i))
	}
	r.clean()
	r.reopen()
	r.clean()
	d, err := r.Depth(r.Context(), inbound)
	r.ok("depth", err)
	if d != (bus.Depth{}) {
		r.Errorf("depth is %+v", d)
	}
}

func numbersGrow(r *rig) {
	r.open(Options{})
	var last int64
	for i := range 6 {
		id := fmt.Sprint("id", i)
		r.say("k", id)
		l := r.claimKey("k")
		seq := r.mail(l, 0, id)
		if seq <= last {
			r.Fatalf("number %d after %d", seq, last)
		}
		last = seq
		r.settle(l, bus.End{Done: seq})
		if i%2 == 1 {
			r.reopen()
		}
	}
}

func notBefore(r *rig) {
	r.open(Options{})
	const delay = 600 * time.Millisecond
	start := time.Now()
	late := func(id, key string, d time.Duration) {
		r.Helper()
		r.ok("publish", r.Publish(r.Context(), inbound, bus.Message{ID: id, Key: key, NotBefore: start.Add(d), Body: []byte("body of " + id)}))
	}
	late("later", "k1", 2*delay)
	late("late", "k2", delay)
	r.say("k3", "now")
	late("then", "k3", delay) // it is not the first: it keeps nothing waiting
	r.finish("k3", "now", "then")
	r.nothing(inbound, delay/3)
	r.reopen()
	r.finish("k2", "late")
	if took := time.Since(start); took < delay {
		r.Errorf("claimed after %v, want %v", took, delay)
	}
	l := r.claimKey("k1")
	if took := time.Since(start); took < 2*delay || took > 2*delay+2*time.Second {
		r.Errorf("claimed after %v, want %v", took, 2*delay)
	}
	r.settle(l, bus.End{Done: r.mail(l, 0, "later")})

	late("far", "k", 20*time.Hour)
	r.say("k", "behind") // in order: it waits with the first
	r.nothing(inbound, delay/3)
	r.reopen()
	r.nothing(inbound, delay/3)
}

func urgentWakes(r *rig) {
	r.open(Options{})
	r.say("k", "a")
	r.settle(r.claimKey("k"), bus.End{After: time.Hour})
	r.say("k", "b")
	r.nothing(inbound, 50*time.Millisecond)
	r.urgent("k", "stop")
	l := r.claimKey("k")
	r.mail(l, 0, "a", "b", "stop")

	// Urgent mail that its holder has seen does not end the wait that the
	// holder asks for; what came without its knowledge does.
	r.settle(l, bus.End{After: time.Hour})
	r.nothing(inbound, 50*time.Millisecond)
	r.urgent("k", "stop2")
	l = r.claimKey("k")
	r.mail(l, 0, "a", "b", "stop", "stop2")
	r.urgent("k", "stop3")
	r.settle(l, bus.End{After: time.Hour})
	r.finish("k", "a", "b", "stop", "stop2", "stop3")

	r.ok("publish", r.Publish(r.Context(), inbound, bus.Message{ID: "far", Key: "t", NotBefore: time.Now().Add(time.Hour), Body: []byte("body of far")}))
	r.nothing(inbound, 50*time.Millisecond)
	r.urgent("t", "now")
	r.finish("t", "far", "now")
}

func paused(r *rig) {
	r.open(Options{})
	r.say("a", "1")
	held := r.claimKey("a")
	r.ok("pause", r.Pause(r.Context(), inbound, time.Hour))
	r.say("b", "2")
	r.say("a", "3")
	r.nothing(inbound, 50*time.Millisecond)
	r.ok("held", held.Held(r.Context()))
	r.settle(held, bus.End{Done: r.mail(held, 0, "1", "3")}) // what is held goes on
	r.ok("publish", r.Publish(r.Context(), bus.TimersTopic, bus.Message{ID: "t", Key: "t"}))
	r.claimOf(r.Bus, bus.TimersTopic) // other topics go on
	r.reopen()
	r.nothing(inbound, 50*time.Millisecond)
	r.ok("pause", r.Pause(r.Context(), inbound, 0))
	r.finish("b", "2")

	start := time.Now()
	r.ok("pause", r.Pause(r.Context(), inbound, 300*time.Millisecond)) // replaces
	r.say("b", "4")
	r.finish("b", "4")
	if took := time.Since(start); took < 290*time.Millisecond {
		r.Errorf("claimed %v after a pause of 300ms began", took)
	}
}

func (r *rig) depth(topic bus.Topic) bus.Depth {
	r.Helper()
	d, err := r.Depth(r.Context(), topic)
	r.ok("depth", err)
	return d
}

func depth(r *rig) {
	r.open(Options{})
	if d := r.depth("nowhere"); d != (bus.Depth{}) {
		r.Errorf("an unknown topic is %+v", d)
	}
	r.say("a", "1", "2")
	r.say("b", "3")
	r.say("c", "4", "5")
	r.say("d", "6")
	r.nothing(bus.TimersTopic, 100*time.Millisecond) // time passes
	l := r.claimKey("a")
	r.mail(l, 0, "1", "2")
	r.settle(r.claimKey("b"), bus.End{After: time.Hour})
	dead := r.claimKey("c")
	r.settle(dead, bus.End{Dead: r.mail(dead, 0, "4", "5"), Reason: "no"})
	d := r.depth(inbound)
	if d.Oldest < 100*time.Millisecond || d.Oldest > patience {
		r.Errorf("the oldest is %v old", d.Oldest)
	}
	d.Oldest = 0
	if want := (bus.Depth{Waiting: 2, Leased: 1, Delayed: 1, Dead: 2}); d != want {
		r.Errorf("depth is %+v, want %+v", d, want)
	}
}

func closed(r *rig) {
	r.open(Options{})
	r.say("k", "a")
	l := r.claimKey("k")
	last := r.mail(l, 0, "a")
	b := r.Bus
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := b.Claim(r.Context(), inbound); !errors.Is(err, bus.ErrClosed) {
			r.Errorf("waiting claim: %v", err)
		}
	})
	wg.Go(func() {
		if _, err := l.Mail(r.Context(), last); !errors.Is(err, bus.ErrClosed) && !errors.Is(err, bus.ErrFenced) {
			r.Errorf("waiting mail: %v", err)
		}
	})
	r.settled()
	r.reopen()
	wg.Wait()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	_, err := b.Claim(ctx, inbound)
	r.is("claim", err, bus.ErrClosed)
	r.is("publish", b.Publish(ctx, inbound, bus.Message{ID: "b", Key: "k"}), bus.ErrClosed)
	_, _, err = b.Hold(ctx, "x")
	r.is("hold", err, bus.ErrClosed)
	if l.Held(ctx) == nil || l.Settle(ctx, bus.End{Done: last}) == nil {
		r.Error("a lease of a closed bus can still be used")
	}
	<-l.Lost()
	r.ok("close again", b.Close())
	again := r.claimKey("k") // what was worked on is found again, and counted
	r.attempts(again, 2)
	r.mail(again, 0, "a")
}

// memory publishes far more than may be kept, and reads it back.
func memory(r *rig) {
	r.open(Options{})
	const keys, each, size = 50, 40, 32 << 10
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	var wg sync.WaitGroup
	for k := range keys {
		wg.Go(func() {
			for i := range each {
				m := bus.Message{ID: fmt.Sprintf("%d/%d", k, i), Key: fmt.Sprint(k), Body: bytes.Repeat([]byte{byte(i)}, size)}
				if err := r.Publish(r.Context(), inbound, m); err != nil {
					r.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if grown := heap() - before; grown > keys*each*size/3 {
		r.Errorf("%d MB wait, and memory has grown by %d MB", keys*each*size>>20, grown>>20)
	}
	next := map[string]int{}
	for r.depth(inbound).Waiting > 0 {
		l := r.claim()
		mail, err := l.Mail(r.Context(), 0)
		r.ok("mail", err)
		for _, m := range mail {
			i := next[m.Key]
			next[m.Key]++
			if m.ID != fmt.Sprintf("%s/%d", m.Key, i) || len(m.Body) != size || m.Body[size-1] != byte(i) {
				r.Fatalf("got %s, want %s/%d as it was published", m.ID, m.Key, i)
			}
		}
		r.settle(l, bus.End{Done: mail[len(mail)-1].Seq})
	}
	if len(next) != keys || next["0"] != each {
		r.Errorf("read %v", next)
	}
	r.clean()
}

func closedWhilePublishing(r *rig) {
	r.open(Options{})
	b := r.Bus
	var mu sync.Mutex
	accepted := map[string]bool{}
	some := make(chan struct{})
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d/%d", k, i)
				if err := b.Publish(r.Context(), inbound, bus.Message{ID: id, Key: "k"}); err != nil {
					if !errors.Is(err, bus.ErrClosed) {
						r.Error(err)
					}
					return
				}
				mu.Lock()
				if accepted[id] = true; len(accepted) == 100 {
					close(some)
				}
				mu.Unlock()
			}
		})
	}
	<-some
	r.reopen()
	wg.Wait()
	for _, id := range r.drain()["k"] {
		delete(accepted, id)
	}
	if len(accepted) > 0 {
		r.Errorf("%d accepted messages are lost", len(accepted))
	}
}
