package bustest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/bus"
)

var orderPromises = []promise{
	{"is first in first out, and one holder at a time, over 1 key", func(r *rig) { testLoad(r, 1, 400) }},
	{"is first in first out, and one holder at a time, over 100 keys", func(r *rig) { testLoad(r, 100, 2500) }},
	{"is first in first out, and one holder at a time, over 10000 keys", func(r *rig) { testLoad(r, 10000, 11000) }},
	{"shows mail in the order of its numbers, whoever publishes", testManyPublishers},
	{"sends a mailbox that still has mail to the back of the queue", testHotKey},
	{"serves mailboxes in the order in which they became due", testDueOrder},
	{"gives back what is claimed as its claimer goes", testCancelledClaims},
	{"hands out a long backlog whole, in order", testLongBacklog},
}

// A witness checks that each key's messages come once, in order, to one holder at a time.
type witness struct {
	r      *rig
	mu     sync.Mutex
	next   map[string]int   // by key: the number of the next message
	held   map[string]bool  // by key: whether a process holds it
	fences map[string]int64 // by key: the fence of the last claim
}

// recordClaim fails the test if the claimed mailbox has another holder, or its fence has not
// grown.
func (w *witness) recordClaim(l bus.Lease) {
	c := l.Claim()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[c.Key] {
		w.r.Errorf("%s has two holders", c.Key)
	}
	w.held[c.Key] = true
	if c.Fence <= w.fences[c.Key] {
		w.r.Errorf("fence %d after %d", c.Fence, w.fences[c.Key])
	}
	w.fences[c.Key] = c.Fence
}

// isHolder reports whether nobody has claimed the lease's mailbox after it.
func (w *witness) isHolder(l bus.Lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fences[l.Claim().Key] == l.Claim().Fence
}

// checkOrder fails the test unless m is the next message of its mailbox.
func (w *witness) checkOrder(m bus.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if want := fmt.Sprintf("%s/%d", m.Key, w.next[m.Key]); m.ID != want {
		w.r.Errorf("got %s, want %s", m.ID, want)
	}
	w.next[m.Key]++
}

// recordRelease records that nobody holds the lease's mailbox anymore.
func (w *witness) recordRelease(l bus.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[l.Claim().Key] = false
}

// testLoad has 8 publishers, each with its own keys, and 16 workers, some of which settle fewer
// messages than they have read.
func testLoad(r *rig, keys, messages int) {
	r.open(Options{})
	w := &witness{r: r, next: map[string]int{}, held: map[string]bool{}, fences: map[string]int64{}}
	ctx, cancel := context.WithTimeout(r.Context(), 2*patience)
	defer cancel()
	var left atomic.Int64
	left.Store(int64(messages))
	var wg sync.WaitGroup
	publishers := min(8, keys)
	for p := range publishers {
		wg.Go(func() {
			for i := range messages {
				if i%keys%publishers != p {
					continue // the key of another publisher
				}
				key := fmt.Sprint("k", i%keys)
				id := fmt.Sprintf("%s/%d", key, i/keys)
				if err := r.Publish(ctx, inbound, bus.Message{ID: id, Key: key}); err != nil {
					r.Error(err)
				}
			}
		})
	}
	for n := range 16 {
		wg.Go(func() {
			for i := n; ; i++ {
				l, err := r.Claim(ctx, inbound)
				if err != nil {
					return
				}
				w.recordClaim(l)
				mail, err := l.Mail(ctx, 0)
				if err != nil {
					r.Error(err)
					return
				}
				if i%4 == 0 {
					mail = mail[:1]
				}
				for _, m := range mail {
					w.checkOrder(m)
				}
				w.recordRelease(l)
				if err := l.Settle(ctx, bus.End{Done: mail[len(mail)-1].Seq}); err != nil {
					r.Error(err)
				}
				if left.Add(int64(-len(mail))) == 0 {
					cancel()
				}
			}
		})
	}
	wg.Wait()
	if n := left.Load(); n != 0 {
		r.Errorf("%d messages were not delivered", n)
	}
	r.wantNothingLeft()
}

// testManyPublishers has one holder read while others publish to its mailbox. A holder who
// has read up to a number must have seen every message with a lower number.
func testManyPublishers(r *rig) {
	r.open(Options{})
	r.publish("k", "first")
	l := r.claimKey("k")
	after := r.wantMail(l, 0, "first")
	const publishers, each = 8, 150
	var wg sync.WaitGroup
	for p := range publishers {
		wg.Go(func() {
			for i := range each {
				r.publish("k", fmt.Sprintf("%d/%d", p, i))
			}
		})
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	next := map[string]int{}
	for range publishers * each {
		mail, err := AwaitMail(ctx, l, after)
		r.noError("mail", err)
		m := mail[0]
		p, i, _ := strings.Cut(m.ID, "/")
		if m.Seq <= after || i != fmt.Sprint(next[p]) {
			r.Fatalf("got %s under %d after %d, want %s/%d", m.ID, m.Seq, after, p, next[p])
		}
		after = m.Seq
		next[p]++
	}
	wg.Wait()
	r.settle(l, bus.End{Done: after})
	r.wantNothingLeft()
}

func testHotKey(r *rig) {
	r.skipUnless(!r.harness.Divided, "one order of all mailboxes")
	r.open(Options{})
	for i := range 200 {
		r.publish("hot", fmt.Sprint("hot", i))
	}
	for i := range 20 {
		key := fmt.Sprint("cold", i)
		r.publish(key, key)
	}
	for i := range 20 { // one message of the busy key, and then the others' turn
		l := r.claim()
		if i == 0 {
			if l.Claim().Key != "hot" {
				r.Fatalf("claimed %q", l.Claim().Key)
			}
			mail, err := l.Mail(r.Context(), 0)
			r.noError("mail", err)
			r.settle(l, bus.End{Done: mail[0].Seq})
			l = r.claim()
		}
		key := fmt.Sprint("cold", i)
		if got := l.Claim().Key; got != key {
			r.Fatalf("claimed %q, want %q", got, key)
		}
		r.settle(l, bus.End{Done: r.wantMail(l, 0, key)})
	}
	mail, err := r.claimKey("hot").Mail(r.Context(), 0)
	r.noError("mail", err)
	if mail[0].ID != "hot1" {
		r.Errorf("the hot key goes on with %s", mail[0].ID)
	}
}

func testDueOrder(r *rig) {
	r.open(Options{})
	r.publish("c", "1")
	r.settle(r.claimKey("c"), bus.End{After: 400 * time.Millisecond})
	r.publish("a", "2")
	r.settle(r.claimKey("a"), bus.End{After: 100 * time.Millisecond})
	r.publish("b", "3")
	r.settle(r.claimKey("b"), bus.End{After: 200 * time.Millisecond})
	for _, key := range []string{"a", "b", "c"} {
		r.claimKey(key)
	}
	r.publish("x", "4")
	r.publish("y", "5")
	r.publish("x", "6")
	r.claimKey("x")
	r.claimKey("y")
}

// testCancelledClaims cancels claims at the moment at which mail comes.
func testCancelledClaims(r *rig) {
	r.open(Options{})
	for i := range 200 {
		id := fmt.Sprint("id", i)
		ctx, cancel := context.WithCancel(r.Context())
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				l, err := r.Claim(ctx, inbound)
				if err != nil {
					return
				}
				if err := l.Settle(r.Context(), bus.End{Uncounted: true}); err != nil {
					r.Error(err)
				}
			})
		}
		r.waitIdle()
		if i%2 == 0 {
			wg.Go(cancel)
		}
		r.publish("k", id)
		cancel()
		wg.Wait()
		l := r.claimKey("k")
		r.wantAttempts(l, 1)
		r.settle(l, bus.End{Done: r.wantMail(l, 0, id)})
	}
	ended, cancel := context.WithCancel(r.Context())
	cancel()
	r.publish("k", "last")
	_, err := r.Claim(ended, inbound)
	r.wantError("claim", err, context.Canceled)
	r.finish("k", "last")
	r.wantNothingLeft()
}

func testLongBacklog(r *rig) {
	r.open(Options{})
	var ids []string
	for i := range 500 {
		ids = append(ids, fmt.Sprint("id", i))
	}
	r.publish("k", ids...)
	r.reopen()
	l := r.claimKey("k")
	mail, err := l.Mail(r.Context(), 0)
	r.noError("mail", err)
	r.wantMail(l, mail[0].Seq, ids[1:]...)
	r.settle(l, bus.End{Done: mail[0].Seq})
	l = r.claimKey("k")
	r.settle(l, bus.End{Done: r.wantMail(l, 0, ids[1:]...)})
	r.wantNothingLeft()
}
