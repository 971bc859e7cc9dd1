package redisbus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus"
)

const keysUnderLoad = 40

// traffic publishes to several mailboxes and settles their messages, as a gateway and a worker do, whatever happens
// to the server.
type traffic struct {
	r        *rig
	bus      bus.Bus
	mu       sync.Mutex
	accepted map[string]int // by key: how many messages were accepted
	seen     map[string]int // by key: how many messages a worker has seen
	next     map[string]int // by key: how many messages are known to be settled

	stopped atomic.Bool
	lossy   bool // whether the server may lose data, so gaps are allowed
}

func newTraffic(r *rig) *traffic {
	return &traffic{r: r, bus: r.Bus, accepted: map[string]int{}, seen: map[string]int{}, next: map[string]int{}}
}

// publish publishes in order to its own keys, and repeats each message until it is accepted.
func (x *traffic) publish(ctx context.Context, publisher, publishers int) {
	for i := 0; !x.stopped.Load() && ctx.Err() == nil; i++ {
		for k := publisher; k < keysUnderLoad; k += publishers {
			key := fmt.Sprint("k", k)
			m := bus.Message{ID: fmt.Sprintf("%s/%d", key, i), Key: key, Body: []byte("x")}
			for x.bus.Publish(ctx, inbound, m) != nil && ctx.Err() == nil {
				continue
			}
			x.mu.Lock()
			x.accepted[key] = i + 1
			x.mu.Unlock()
		}
	}
}

// work settles what it claims. A settled message must not return.
func (x *traffic) work(ctx context.Context) {
	for {
		l, err := x.bus.Claim(ctx, inbound)
		if err != nil {
			return
		}
		mail, err := l.Mail(ctx, 0)
		if err != nil {
			continue // lost before it was read
		}
		x.see(l.Claim().Key, mail)
		if err := l.Settle(ctx, bus.End{Done: mail[len(mail)-1].Seq}); err == nil {
			x.settled(l.Claim().Key, mail)
		} else if !errors.Is(err, bus.ErrFenced) && ctx.Err() == nil {
			x.r.Errorf("settle: %v", err)
		}
	}
}

func number(m bus.Message) (n int) {
	_, digits, _ := strings.Cut(m.ID, "/")
	_, _ = fmt.Sscan(digits, &n)
	return n
}

// see checks that messages continue after the settled ones and without a gap. A holder that settles may learn of that
// later than the next holder.
func (x *traffic) see(key string, mail []bus.Message) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, m := range mail {
		switch n := number(m); {
		case n < x.next[key]:
			x.r.Errorf("%s came again after %d was settled", m.ID, x.next[key]-1)
		case n > x.seen[key] && !x.lossy:
			x.r.Errorf("%s came before %d: some are lost", m.ID, x.seen[key])
		default:
			x.seen[key] = max(x.seen[key], n+1)
		}
	}
}

func (x *traffic) settled(key string, mail []bus.Message) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.next[key] = max(x.next[key], number(mail[len(mail)-1])+1)
}

// done reports whether all accepted messages are settled.
func (x *traffic) done() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, n := range x.accepted {
		if x.next[key] < n {
			return false
		}
	}
	return true
}

func (x *traffic) count() (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, i := range x.next {
		n += i
	}
	return n
}

// during runs traffic while disturb does something to the server.
func (x *traffic) during(disturb func()) {
	r := x.r
	ctx, cancel := context.WithTimeout(r.Context(), 2*patience)
	defer cancel()
	var publishers, workers sync.WaitGroup
	for p := range 4 {
		publishers.Go(func() { x.publish(ctx, p, 4) })
	}
	for range 8 {
		workers.Go(func() { x.work(ctx) })
	}
	disturb()
	x.stopped.Store(true)
	publishers.Wait()
	r.await("all that was accepted to be settled", x.done)
	cancel()
	workers.Wait()
}

// more waits until n more messages are settled.
func (x *traffic) more(n int) {
	x.r.Helper()
	want := x.count() + n
	x.r.await(fmt.Sprint(n, " more messages"), func() bool { return x.count() >= want })
}

func TestServerKilled(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	x := newTraffic(r)
	x.during(func() {
		for range 3 {
			x.more(400)
			r.ok("kill", r.server.Kill())
			r.ok("start", r.server.Restart())
		}
		x.more(400)
	})
	r.idle()
	r.oneOutage("redis does not answer")
}

// After a failover to a replica that was behind, the server may have lost messages that a lease has announced.
// Reading them returns nothing, and then the messages that come next.
func TestServerLosesTheNewestMail(t *testing.T) {
	t.Parallel()
	r := newRig(t, patience)
	r.publish("k", "a")
	l := r.claim("k")
	first := r.mailAfter(l, 0)[0].Seq
	behind := r.dump()
	r.publish("k", "lost")
	r.mailAfter(l, first)
	r.restore(behind)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if mail, err := l.Mail(ctx, first); err != nil || len(mail) > 0 {
		t.Errorf("after the loss there is %v, %v; want no mail", mail, err)
	}
	r.publish("k", "b")
	r.finish(l, "a", "b")
	r.idle()
}

// dump returns all data of the server, by key.
func (r *rig) dump() map[string]string {
	r.Helper()
	keys, err := r.redis.Keys(r.Context(), "*").Result()
	r.ok("keys", err)
	all := map[string]string{}
	for _, key := range keys {
		all[key], err = r.redis.Dump(r.Context(), key).Result()
		r.ok("dump", err)
	}
	return all
}

// restore resets the server to dumped data, in one transaction.
func (r *rig) restore(all map[string]string) {
	r.Helper()
	_, err := r.redis.TxPipelined(r.Context(), func(p redis.Pipeliner) error {
		p.FlushDB(r.Context())
		for key, value := range all {
			p.Restore(r.Context(), key, 0, value)
		}
		return nil
	})
	r.ok("restore", err)
}

// oneOutage checks that the log has one line about the beginning of an outage, and one about its end.
func (r *rig) oneOutage(begins string) {
	r.Helper()
	r.await("the end to be logged", func() bool { return strings.Contains(r.log.String(), "redis answers again") })
	if said := r.log.String(); strings.Count(said, "\n") != 2 || !strings.Contains(said, begins) {
		r.Errorf("logged %s, want %q and one line more", said, begins)
	}
}

func TestServerLosesAllData(t *testing.T) {
	t.Parallel()
	r := newRig(t, 500*time.Millisecond)
	x := newTraffic(r)
	x.lossy = true
	x.during(func() {
		for range 3 {
			x.more(400)
			r.ok("flush", r.redis.FlushAll(t.Context()).Err())
		}
		x.more(400)
		// Messages accepted before are lost, but none of the new ones.
		for k := range keysUnderLoad {
			r.await("a message of each key", func() bool {
				x.mu.Lock()
				defer x.mu.Unlock()
				return x.next[fmt.Sprint("k", k)] > 0
			})
		}
	})
	r.idle()
}

func TestScriptsForgotten(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	x := newTraffic(r)
	x.during(func() {
		for range 10 {
			x.more(100)
			r.ok("flush scripts", r.redis.ScriptFlush(t.Context()).Err())
		}
	})
	r.idle()
	if strings.Contains(r.log.String(), "does not answer") {
		t.Errorf("logged %s", r.log)
	}
}

// idle checks that nothing is left of any mailbox.
func (r *rig) idle() {
	r.Helper()
	for _, key := range under(r, r.redis, "parley") {
		if !mayRemain(key) {
			r.Errorf("%s is left", key)
		}
	}
	if n := r.LeasesInMemory(); n > 0 {
		r.Errorf("%d leases are left", n)
	}
}

// After an outage that is longer than a lease, no process can claim a mailbox that is still worked on, not even the
// process that works on it.
func TestOutageLongerThanALease(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	for name, outage := range map[string]func(r *rig, d time.Duration){
		"killed": func(r *rig, d time.Duration) {
			r.ok("kill", r.server.Kill())
			<-time.After(d)
			r.ok("start", r.server.Restart())
		},
		"stopped": func(r *rig, d time.Duration) {
			r.server.Signal(r, syscall.SIGSTOP)
			<-time.After(d)
			r.server.Signal(r, syscall.SIGCONT)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, lease)
			other := r.another(lease, newNetwork())
			var held []bus.Lease
			for i := range 20 {
				key := fmt.Sprint("k", i)
				r.publish(key, key)
				held = append(held, r.claim(key))
			}
			ctx, cancel := context.WithCancel(t.Context())
			var waiting sync.WaitGroup
			waiting.Go(func() { // another process waits for messages all the time
				if l, err := other.Claim(ctx, inbound); err == nil {
					t.Errorf("%s was claimed a second time", l.Claim().Key)
				}
			})
			defer waiting.Wait()
			defer cancel()
			r.network.cut() // those who work are the last to reconnect
			outage(r, 2*lease)
			<-time.After(lease / 4)
			r.network.restore()
			for _, l := range held {
				r.checkHeld(l)
				r.ok("settle", l.Settle(ctx, bus.End{Done: 1 << 60}))
			}
			r.nothingDue(2 * lease)
			r.idle()
		})
	}
}

func TestAnswerLost(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	const mark = "the answer to this is lost"
	m := bus.Message{ID: "a", Key: "k", Body: []byte(mark)}
	r.network.loseAnswer(mark)
	if err := r.Publish(t.Context(), inbound, m); err == nil {
		t.Error("a publication whose answer is lost succeeds")
	}
	r.ok("publish again", r.Publish(t.Context(), inbound, m))
	r.publish("k", "b")
	l := r.claim("k")
	mail := r.mailAfter(l, 0)
	r.network.loseAnswer(mark)
	r.ok("settle", l.Settle(t.Context(), bus.End{Done: mail[0].Seq, Reason: mark}))
	select {
	case <-l.Lost():
		t.Error("a lease that was settled is said to be lost")
	default:
	}
	r.finish(r.claim("k"), "b")
	r.idle()
}

// A call whose answer was lost may be repeated, whatever it has done.
func TestManyAnswersLost(t *testing.T) {
	t.Parallel()
	r := newRig(t, 500*time.Millisecond)
	x := newTraffic(r)
	x.during(func() {
		x.more(400)
		r.network.loseEvery(40)
		x.more(4000)
		r.network.loseEvery(0)
		x.more(400)
	})
	r.idle()
}

// The server refuses a holder that was cut off and asks before it knows that it has lost the lease.
func TestZombieIsFenced(t *testing.T) {
	t.Parallel()
	r := newRig(t, time.Second)
	other := r.another(time.Second, newNetwork())
	for name, ask := range map[string]func(ctx context.Context, l bus.Lease) error{
		"settle": func(ctx context.Context, l bus.Lease) error { return l.Settle(ctx, bus.End{Done: 1 << 60}) },
		"mail":   func(ctx context.Context, l bus.Lease) error { _, err := l.Mail(ctx, 0); return err },
		"held":   func(ctx context.Context, l bus.Lease) error { return l.Held(ctx) },
	} {
		r.publish("k", name)
		zombie := r.claim("k")
		r.mailAfter(zombie, 0)
		r.network.cut()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		l, err := other.Claim(ctx, inbound)
		r.ok("claim", err)
		asked := make(chan error, 1)
		go func() { asked <- ask(ctx, zombie) }()
		select {
		case err := <-asked:
			t.Errorf("%s of a former holder who is cut off: %v", name, err)
		case <-time.After(50 * time.Millisecond): // it waits for the server
		}
		r.network.restore()
		if err := <-asked; !errors.Is(err, bus.ErrFenced) {
			t.Errorf("%s of a former holder: %v, want ErrFenced", name, err)
		}
		r.finish(l, name)
	}
	r.idle()
}
