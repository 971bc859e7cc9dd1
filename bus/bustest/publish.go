package bustest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"parley/bus"
)

var publishPromises = []promise{
	{"is durable when it returns", testDurable},
	{"drops an id published today or yesterday", testDeduplicates},
	{"drops an id published again at the same time", testDeduplicatesAtOnce},
	{"takes the same id in another topic", testTopicsApart},
	{"refuses what is beyond the cap and does not burn its id", testCap},
	{"takes no more than the cap from many at once", testCapAtOnce},
	{"takes urgent mail beyond the cap", testUrgentBeyondCap},
	{"takes bounded urgent mail beyond the cap up to a bound", testBoundedUrgent},
	{"refuses what would make too many bytes wait", testBoundInBytes},
	{"measures again what was settled, given back and reopened", testBytesMeasuredAgain},
	{"measures a long backlog of small messages", testManySmallMessages},
	{"keeps the fields of a message", testKeepsFields},
	{"refuses what no bus would take", testInvalid},
	{"keeps nothing of the caller's buffer", testCopiesBuffer},
	{"tells of a mailbox whether it has mail", testHasMail},
	{"leaves nothing of an idle mailbox", testIdleLeavesNothing},
	{"numbers a mailbox upward, after it was empty and reopened too", testNumbersGrow},
	{"keeps not-before mail until its time", testNotBefore},
	{"lets urgent mail wake a mailbox that waits", testUrgentWakes},
	{"stops at a pause and goes on after it", testPause},
	{"counts what waits, is worked on, is delayed, and its age", testDepth},
	{"lists the mailboxes that are worked on and that wait, and no more than it is asked for", testMailboxes},
	{"keeps the bodies of a long backlog out of memory", testMemory},
	{"is closed after Close", testClosed},
	{"has kept what it accepted while it was closed", testClosedWhilePublishing},
}

func testDurable(r *rig) {
	r.open(Options{})
	r.publish("k", "a", "b")
	r.reopen()
	r.finish("k", "a", "b")
	r.reopen()
	r.wantNothingDue(inbound, 50*time.Millisecond)
}

func testDeduplicates(r *rig) {
	r.open(Options{})
	r.publish("k", "a", "a")
	r.finish("k", "a")
	r.publish("k", "a")
	if !r.harness.Divided {
		r.publish("other", "a")
	}
	r.reopen()
	r.publish("k", "a")
	r.wantNothingDue(inbound, 50*time.Millisecond)
	r.wantNothingLeft()

	if r.harness.NextDay == nil && !r.harness.Simulated {
		r.Skip("the days of this bus cannot be moved")
	}
	r.nextDay()
	r.publish("k", "a")
	r.wantNothingDue(inbound, 50*time.Millisecond)
	r.nextDay()
	r.publish("k", "a") // the ids of two days ago are forgotten
	r.finish("k", "a")
}

// nextDay lets a day pass for the bus.
func (r *rig) nextDay() {
	if r.harness.NextDay != nil {
		r.harness.NextDay(r, r.place)
		return
	}
	<-time.After(24 * time.Hour)
}

func testDeduplicatesAtOnce(r *rig) {
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
	r.wantNothingDue(inbound, 50*time.Millisecond)
}

func testTopicsApart(r *rig) {
	r.open(Options{})
	out := bus.OutboundTopic("telegram")
	r.publish("k", "a")
	r.noError("publish", r.Publish(r.Context(), out, bus.Message{ID: "a", Key: "k", Body: []byte("body of a")}))
	l := r.claimOf(r.Bus, out)
	r.finish("k", "a") // the inbound mailbox of the same key is free
	r.settle(l, bus.End{Done: r.wantMail(l, 0, "a")})
	topics, err := r.Topics(r.Context())
	r.noError("topics", err)
	if fmt.Sprint(topics) != fmt.Sprint([]bus.Topic{inbound, out}) {
		r.Errorf("topics are %v", topics)
	}
	r.wantNothingLeft()
}

// wantFull checks that the mailbox of key k refuses the message with that id because it is full.
func (r *rig) wantFull(id string) {
	r.Helper()
	r.wantError("publish "+id, r.Publish(r.Context(), inbound, bus.Message{ID: id, Key: "k", Body: []byte("body of " + id)}), bus.ErrFull)
}

func testCap(r *rig) {
	r.open(Options{Caps: bus.Caps{Inbound: 2, Outbound: 1}})
	r.publish("k", "a", "b")
	r.wantFull("c")
	r.publish("k", "a")     // a known id is accepted, even by a full mailbox
	r.publish("other", "d") // another mailbox has its own limit
	l := r.claimKey("k")
	r.wantFull("c") // messages that are being answered count
	r.settle(l, bus.End{Done: r.wantMail(l, 0, "a", "b")})
	r.publish("k", "c")
	r.finish("other", "d")
	r.finish("k", "c")
	for i := range 5 { // timers have no limit
		r.noError("publish", r.Publish(r.Context(), bus.TimersTopic, bus.Message{ID: fmt.Sprint(i), Key: "k"}))
	}
}

func testCapAtOnce(r *rig) {
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

func (r *rig) publishUrgent(key, id string) {
	r.Helper()
	r.noError("publish "+id, r.Publish(r.Context(), inbound, bus.Message{ID: id, Key: key, Urgent: true, Body: []byte("body of " + id)}))
}

func testUrgentBeyondCap(r *rig) {
	r.open(Options{Caps: bus.Caps{Inbound: 1}})
	r.publish("k", "a")
	r.wantFull("b")
	r.publishUrgent("k", "stop")
	r.wantFull("b")
	r.finish("k", "a", "stop")
}

func testBoundedUrgent(r *rig) {
	r.open(Options{Caps: bus.Caps{Inbound: 2}})
	m := bus.Message{Key: "k", Urgent: true, Bounded: true}
	for i := range 2 + bus.UrgentBeyond {
		m.ID = fmt.Sprint(i)
		r.noError("publish "+m.ID, r.Publish(r.Context(), inbound, m))
	}
	m.ID = "beyond"
	r.wantError("publish beyond the bound", r.Publish(r.Context(), inbound, m), bus.ErrFull)
	r.wantFull("b")
	r.publishUrgent("k", "stop")
	r.reopen()
	r.wantError("publish after a restart", r.Publish(r.Context(), inbound, m), bus.ErrFull)
}

// heavyBytes is the length of the messages with which bounds in bytes are tested.
const heavyBytes = 300 << 10

// publishHeavy publishes a message of heavyBytes bytes.
func publishHeavy(r *rig, id string) error {
	return r.Publish(r.Context(), inbound, bus.Message{ID: id, Key: "k", Body: bytes.Repeat([]byte{'x'}, heavyBytes)})
}

func testBoundInBytes(r *rig) {
	r.open(Options{Caps: bus.Caps{Bytes: 1 << 20}})
	r.wantError("larger than the bound, while nothing waits",
		r.Publish(r.Context(), inbound, bus.Message{ID: "large", Key: "alone", Body: make([]byte, 2<<20)}), nil)
	r.wantError("behind it", r.Publish(r.Context(), inbound, bus.Message{ID: "small", Key: "alone", Body: make([]byte, 5000)}), bus.ErrTooMuch)
	for _, id := range []string{"a", "b", "c"} {
		r.noError("publish "+id, publishHeavy(r, id))
	}
	for range 2 { // a refused message leaves nothing behind
		err := publishHeavy(r, "d")
		r.wantError("publish d", err, bus.ErrTooMuch)
		r.wantError("publish d", err, bus.ErrFull)
	}
	r.noError("publish a again", publishHeavy(r, "a"))
	r.noError("publish urgent", r.Publish(r.Context(), inbound, bus.Message{ID: "u", Key: "k", Urgent: true, Body: make([]byte, heavyBytes)}))
	r.wantError("publish bounded", r.Publish(r.Context(), inbound, bus.Message{ID: "v", Key: "k", Urgent: true, Bounded: true, Body: make([]byte, heavyBytes)}), bus.ErrTooMuch)
	for i := range 3 { // timers have no limit
		r.noError("publish", r.Publish(r.Context(), bus.TimersTopic, bus.Message{ID: fmt.Sprint(i), Key: "k", Body: make([]byte, heavyBytes*2)}))
	}
}

func testBytesMeasuredAgain(r *rig) {
	r.open(Options{Caps: bus.Caps{Bytes: 1 << 20}})
	for round := range 4 {
		for i := range 3 {
			r.noError("publish", publishHeavy(r, fmt.Sprint(round, "/", i)))
		}
		again := fmt.Sprint(round+1, "/0")
		r.wantError("publish "+again, publishHeavy(r, again), bus.ErrTooMuch)
		r.settle(r.claimKey("k"), bus.End{})
		if round%2 == 1 {
			r.reopen() // after this, bodies are only on disk
		}
		r.wantError("given back, publish "+again, publishHeavy(r, again), bus.ErrTooMuch)
		l := r.claimKey("k")
		mail, err := l.Mail(r.Context(), 0)
		r.noError("mail", err)
		end := bus.End{Done: mail[0].Seq}
		if round == 2 {
			end = bus.End{Dead: mail[0].Seq, Reason: "no"}
		}
		r.settle(l, end)
		r.noError("one settled, publish", publishHeavy(r, fmt.Sprint(round, "/3")))
		r.wantError("one came, publish "+again, publishHeavy(r, again), bus.ErrTooMuch)
		l = r.claimKey("k")
		last := int64(0)
		for n := 0; n < 3; {
			mail, err := l.Mail(r.Context(), last)
			r.noError("mail", err)
			n, last = n+len(mail), mail[len(mail)-1].Seq
		}
		r.settle(l, bus.End{Done: last})
	}
}

func testManySmallMessages(r *rig) {
	const size, bound = 2000, 200 << 10
	r.open(Options{Caps: bus.Caps{Bytes: bound}})
	for i := range 2 * bound / size {
		err := r.Publish(r.Context(), inbound, bus.Message{ID: fmt.Sprint(i), Key: "k", Body: make([]byte, size)})
		if err == nil {
			continue
		}
		r.wantError("publish", err, bus.ErrTooMuch)
		if waits := i * size; waits < bound*8/10 || waits > bound*12/10 {
			r.Errorf("refused once %d bytes wait, want about %d", waits, bound)
		}
		return
	}
	r.Error("twice the bound was taken")
}

func testKeepsFields(r *rig) {
	r.open(Options{})
	due := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	in := bus.Message{ID: strings.Repeat("ü", bus.MaxID/2), Key: "{main}:a b%\n", NotBefore: due, Urgent: true, Body: []byte{0, 255, '\n'}}
	empty := bus.Message{ID: "empty", Key: in.Key}
	for range 2 {
		r.noError("publish", r.Publish(r.Context(), inbound, in))
		r.noError("publish", r.Publish(r.Context(), inbound, empty))
		for range 2 {
			l := r.claimKey(in.Key)
			got, err := l.Mail(r.Context(), 0)
			r.noError("mail", err)
			if len(got) != 2 || got[0].ID != in.ID || got[0].Key != in.Key || !got[0].NotBefore.Equal(due) || !got[0].Urgent || !bytes.Equal(got[0].Body, in.Body) {
				r.Fatalf("got %+v, want %+v and another", got, in)
			}
			if m := got[1]; m.ID != "empty" || !m.NotBefore.IsZero() || m.Urgent || len(m.Body) != 0 {
				r.Fatalf("got %+v, want %+v", m, empty)
			}
			r.settle(l, bus.End{})
			r.reopen() // the same for bodies that were read from disk
		}
	}
}

func testInvalid(r *rig) {
	r.open(Options{})
	long := strings.Repeat("x", 257)
	for name, m := range map[string]bus.Message{
		"no id": {Key: "k"}, "no key": {ID: "a"}, "long id": {ID: long, Key: "k"}, "long key": {ID: "a", Key: long},
		"NUL in id": {ID: "a\x00", Key: "k"}, "NUL in key": {ID: "a", Key: "k\x00"},
		"not UTF-8 in id": {ID: "\xff", Key: "k"}, "not UTF-8 in key": {ID: "a", Key: "\xff"},
		"large body": {ID: "a", Key: "k", Body: make([]byte, bus.MaxBody+1)},
	} {
		r.wantError(name, r.Publish(r.Context(), inbound, m), bus.ErrInvalid)
	}
	largest := bus.Message{ID: long[1:], Key: long[1:], Body: make([]byte, bus.MaxBody)}
	r.await("the largest message to be published", func() bool {
		err := r.Publish(r.Context(), inbound, largest)
		if errors.Is(err, bus.ErrInvalid) || errors.Is(err, bus.ErrTooMuch) {
			r.Fatalf("the largest message is refused: %v", err)
		}
		return err == nil // on a busy machine, a call may end before the server has taken so much
	})
	r.reopen()
	got, err := r.claimKey(largest.Key).Mail(r.Context(), 0)
	r.noError("mail", err)
	if len(got) != 1 || !bytes.Equal(got[0].Body, largest.Body) {
		r.Error("the largest message came back changed")
	}
}

func testCopiesBuffer(r *rig) {
	r.open(Options{})
	m := bus.Message{ID: "a", Key: "k", Body: []byte("body of a")}
	r.noError("publish", r.Publish(r.Context(), inbound, m))
	m.Body[0] = 'X'
	l := r.claimKey("k")
	got, err := l.Mail(r.Context(), 0)
	r.noError("mail", err)
	got[0].Body[0] = 'Y'
	r.wantMail(l, 0, "a")
}

func testHasMail(r *rig) {
	r.open(Options{})
	has := func(when string, want bool) {
		r.Helper()
		got, err := r.HasMail(r.Context(), inbound, "k")
		r.noError("has mail", err)
		if got != want {
			r.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	has("before anything is said", false)
	r.publish("k", "1")
	has("while it waits", true)
	r.reopen()
	has("after a restart", true)
	l := r.claimKey("k")
	has("while it is held", true)
	r.settle(l, bus.End{After: time.Hour})
	has("while it is not due", true)
	r.publishUrgent("k", "3")
	r.finish("k", "1", "3")
	has("when all is done", false)
}

func testIdleLeavesNothing(r *rig) {
	r.open(Options{Caps: bus.Caps{Inbound: 5}})
	for i := range 50 {
		r.publish(fmt.Sprint("key", i), fmt.Sprint("id", i))
	}
	if len(r.harness.Residue(r, r.place, r.Bus)) == 0 {
		r.Fatal("the harness sees no mailbox while there are 50")
	}
	for i := range 50 {
		r.finish(fmt.Sprint("key", i), fmt.Sprint("id", i))
	}
	r.wantNothingLeft()
	r.reopen()
	r.wantNothingLeft()
	d, err := r.Depth(r.Context(), inbound)
	r.noError("depth", err)
	if !isNothing(d) {
		r.Errorf("depth is %+v", d)
	}
}

func testNumbersGrow(r *rig) {
	r.open(Options{})
	var last int64
	for i := range 6 {
		id := fmt.Sprint("id", i)
		r.publish("k", id)
		l := r.claimKey("k")
		seq := r.wantMail(l, 0, id)
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
