package bustest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"sync"
	"time"

	"parley/bus"
)

func testNotBefore(r *rig) {
	r.open(Options{})
	const delay = 600 * time.Millisecond
	start := time.Now()
	late := func(id, key string, d time.Duration) {
		r.Helper()
		r.noError("publish", r.Publish(r.Context(), inbound, bus.Message{ID: id, Key: key, NotBefore: start.Add(d), Body: []byte("body of " + id)}))
	}
	late("later", "k1", 2*delay)
	late("late", "k2", delay)
	r.publish("k3", "now")
	late("then", "k3", delay) // not the first message, so it delays nothing
	r.finish("k3", "now", "then")
	r.wantNothingDue(inbound, delay/3)
	r.reopen()
	r.finish("k2", "late")
	if took := time.Since(start); took < delay {
		r.Errorf("claimed after %v, want %v", took, delay)
	}
	l := r.claimKey("k1")
	if took := time.Since(start); took < 2*delay || took > 2*delay+2*time.Second {
		r.Errorf("claimed after %v, want %v", took, 2*delay)
	}
	r.settle(l, bus.End{Done: r.wantMail(l, 0, "later")})

	late("far", "k", 20*time.Hour)
	r.publish("k", "behind") // it waits behind the first, because the order stays
	r.wantNothingDue(inbound, delay/3)
	r.reopen()
	r.wantNothingDue(inbound, delay/3)
}

func testUrgentWakes(r *rig) {
	r.open(Options{})
	r.publish("k", "a")
	r.settle(r.claimKey("k"), bus.End{After: time.Hour})
	r.publish("k", "b")
	r.wantNothingDue(inbound, 50*time.Millisecond)
	r.publishUrgent("k", "stop")
	l := r.claimKey("k")
	r.wantMail(l, 0, "a", "b", "stop")

	// Urgent mail that its holder has seen does not end the wait that the holder requests, but urgent mail that the
	// holder has not seen does.
	r.settle(l, bus.End{After: time.Hour})
	r.wantNothingDue(inbound, 50*time.Millisecond)
	r.publishUrgent("k", "stop2")
	l = r.claimKey("k")
	r.wantMail(l, 0, "a", "b", "stop", "stop2")
	r.publishUrgent("k", "stop3")
	r.settle(l, bus.End{After: time.Hour})
	r.finish("k", "a", "b", "stop", "stop2", "stop3")

	r.noError("publish", r.Publish(r.Context(), inbound, bus.Message{ID: "far", Key: "t", NotBefore: time.Now().Add(time.Hour), Body: []byte("body of far")}))
	r.wantNothingDue(inbound, 50*time.Millisecond)
	r.publishUrgent("t", "now")
	r.finish("t", "far", "now")
}

func testPause(r *rig) {
	r.open(Options{})
	r.publish("a", "1")
	held := r.claimKey("a")
	r.noError("pause", r.Pause(r.Context(), inbound, time.Hour))
	r.publish("b", "2")
	r.publish("a", "3")
	r.wantNothingDue(inbound, 50*time.Millisecond)
	r.noError("held", held.Held(r.Context()))
	r.settle(held, bus.End{Done: r.wantMail(held, 0, "1", "3")}) // leases that are held continue
	r.noError("publish", r.Publish(r.Context(), bus.TimersTopic, bus.Message{ID: "t", Key: "t"}))
	r.claimOf(r.Bus, bus.TimersTopic) // other topics continue
	r.reopen()
	r.wantNothingDue(inbound, 50*time.Millisecond)
	r.noError("pause", r.Pause(r.Context(), inbound, 0))
	r.finish("b", "2")

	start := time.Now()
	r.noError("pause", r.Pause(r.Context(), inbound, 300*time.Millisecond)) // this replaces the pause
	r.publish("b", "4")
	r.finish("b", "4")
	if took := time.Since(start); took < 290*time.Millisecond {
		r.Errorf("claimed %v after a pause of 300ms began", took)
	}
}

// readDepth returns the depth of a topic.
func (r *rig) readDepth(topic bus.Topic) bus.Depth {
	r.Helper()
	d, err := r.Depth(r.Context(), topic)
	r.noError("depth", err)
	return d
}

// isNothing reports whether a topic has nothing.
func isNothing(d bus.Depth) bool {
	return len(d.LeasedBy) == 0 && reflect.DeepEqual(d, bus.Depth{LeasedBy: d.LeasedBy})
}

// awaitLeased waits until that many inbound mailboxes are leased. A bus that divides its mailboxes may lease one more for
// a moment, before it gives back what nobody has claimed.
func awaitLeased(r *rig, n int) {
	r.Helper()
	Await(r, "what nobody has claimed to be given back", func() bool { return r.readDepth(inbound).Leased == n })
}

func testMailboxes(r *rig) {
	r.open(Options{})
	began := time.Now()
	read := func(limit int) bus.MailboxList {
		r.Helper()
		list, err := r.Mailboxes(r.Context(), inbound, limit)
		r.noError("list mailboxes", err)
		return list
	}
	if list := read(5); len(list.Leased)+len(list.Waiting)+list.LeasedCount+list.WaitingCount != 0 {
		r.Errorf("before anything is said: %+v", list)
	}
	r.publish("held", "1", "2")
	held := r.claimKey("held")
	r.publish("later", "3")
	r.settle(r.claimKey("later"), bus.End{After: time.Hour})
	r.publish("next", "4", "5", "6")
	awaitLeased(r, 1)
	list := read(5)
	if list.LeasedCount != 1 || len(list.Leased) != 1 || list.Leased[0].Key != "held" || list.Leased[0].Messages != 2 || !list.Leased[0].Due.IsZero() {
		r.Errorf("leased are %+v", list)
	}
	if list.WaitingCount != 2 || len(list.Waiting) != 2 || list.Waiting[0].Key != "later" || list.Waiting[1].Key != "next" || list.Waiting[1].Messages != 3 {
		r.Fatalf("waiting are %+v", list)
	}
	if due := time.Until(list.Waiting[0].Due); due < 50*time.Minute || due > 61*time.Minute || !list.Waiting[1].Due.IsZero() {
		r.Errorf("they are due at %+v", list.Waiting)
	}
	if since := list.Waiting[1].Since; since.Before(began.Add(-time.Minute)) || since.After(time.Now().Add(time.Minute)) {
		r.Errorf("the mail is of %v", since)
	}
	if list := read(1); list.LeasedCount != 1 || list.WaitingCount != 2 || len(list.Leased) != 1 || len(list.Waiting) != 1 {
		r.Errorf("of each, one is %+v", list)
	}
	r.settle(held, bus.End{Done: r.wantMail(held, 0, "1", "2")})
	if list := read(5); list.LeasedCount != 0 || list.WaitingCount != 2 {
		r.Errorf("when it is settled: %+v", list)
	}
}

func testDepth(r *rig) {
	r.open(Options{})
	if d := r.readDepth("nowhere"); !isNothing(d) {
		r.Errorf("an unknown topic is %+v", d)
	}
	r.publish("a", "1", "2")
	r.publish("b", "3")
	r.publish("c", "4", "5")
	r.publish("d", "6")
	r.wantNothingDue(bus.TimersTopic, 100*time.Millisecond) // let some time pass, so that the oldest message has an age
	l := r.claimKey("a")
	r.wantMail(l, 0, "1", "2")
	r.settle(r.claimKey("b"), bus.End{After: time.Hour})
	dead := r.claimKey("c")
	r.settle(dead, bus.End{Dead: r.wantMail(dead, 0, "4", "5"), Reason: "no"})
	awaitLeased(r, 1)
	d := r.readDepth(inbound)
	if d.Oldest < 100*time.Millisecond || d.Oldest > 30*time.Second {
		r.Errorf("the oldest is %v old", d.Oldest)
	}
	d.Oldest = 0
	if by := d.LeasedBy; by != nil && !maps.Equal(by, map[string]int{r.processes(r.Bus)[0]: 1}) {
		r.Errorf("leased are %v", by)
	}
	d.LeasedBy = nil
	if want := (bus.Depth{Waiting: 2, Leased: 1, Delayed: 1, Dead: 2}); !reflect.DeepEqual(d, want) {
		r.Errorf("depth is %+v, want %+v", d, want)
	}
}

func testClosed(r *rig) {
	r.open(Options{})
	r.publish("k", "a")
	l := r.claimKey("k")
	last := r.wantMail(l, 0, "a")
	b := r.Bus
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := b.Claim(r.Context(), inbound); !errors.Is(err, bus.ErrClosed) {
			r.Errorf("waiting claim: %v", err)
		}
	})
	wg.Go(func() {
		if _, err := AwaitMail(r.Context(), l, last); !errors.Is(err, bus.ErrClosed) && !errors.Is(err, bus.ErrFenced) {
			r.Errorf("waiting mail: %v", err)
		}
	})
	r.waitIdle()
	r.reopen()
	wg.Wait()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	_, err := b.Claim(ctx, inbound)
	r.wantError("claim", err, bus.ErrClosed)
	r.wantError("publish", b.Publish(ctx, inbound, bus.Message{ID: "b", Key: "k"}), bus.ErrClosed)
	_, _, err = b.Hold(ctx, "x")
	r.wantError("hold", err, bus.ErrClosed)
	if l.Held(ctx) == nil || l.Settle(ctx, bus.End{Done: last}) == nil {
		r.Error("a lease of a closed bus can still be used")
	}
	<-l.Lost()
	r.noError("close again", b.Close())
	again := r.claimKey("k") // mail that was worked on is found again, and the attempt was counted
	r.wantAttempts(again, 2)
	r.wantMail(again, 0, "a")
}

// testMemory publishes far more bytes than a bus may keep in memory, checks how much memory
// the process uses, and reads all messages back.
func testMemory(r *rig) {
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
	for r.readDepth(inbound).Waiting > 0 {
		l := r.claim()
		mail, err := l.Mail(r.Context(), 0)
		r.noError("mail", err)
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
	r.wantNothingLeft()
}

func testClosedWhilePublishing(r *rig) {
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
