package fanout_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/fanout"
	"parley/bus/redisbus"
	"parley/bus/sqlitebus"
)

const patience = 2 * time.Minute

// counted counts all subscriptions and the open ones.
type counted struct {
	bus.Events
	made, last atomic.Int64
}

func (c *counted) Subscribe(ctx context.Context, feed bus.Feed, after uint64) (iter.Seq2[bus.Event, error], error) {
	seq, err := c.Events.Subscribe(ctx, feed, after)
	if err == nil {
		c.made.Add(1)
		c.last.Add(1)
		context.AfterFunc(ctx, func() { c.last.Add(-1) })
	}
	return seq, err
}

// A rig is a hub over a bus.
type rig struct {
	*testing.T
	counted
	other bus.Events // another process of the fleet, or the same bus without a fleet
	bus   interface {
		bus.Events
		Close() error
	}
	hub *fanout.Hub
}

// onEach runs a test over the bus of SQLite and, if available, over that of Redis.
func onEach(t *testing.T, test func(r *rig)) {
	t.Run("sqlite", func(t *testing.T) {
		b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(t.TempDir(), "bus.db")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		test(newRig(t, &rig{T: t, bus: b, other: b}))
	})
	t.Run("redis", func(t *testing.T) {
		url := os.Getenv("PARLEY_TEST_REDIS_URL")
		if url == "" {
			t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
		}
		prefix := "fanout-" + rand.Text()
		var both [2]*redisbus.Bus
		for i := range both {
			b, err := redisbus.Open(t.Context(), redisbus.Config{URL: url, Prefix: prefix})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.Close() })
			both[i] = b
		}
		test(newRig(t, &rig{T: t, bus: both[0], other: both[1]}))
	})
}

func newRig(t *testing.T, r *rig) *rig {
	t.Helper()
	r.Events = r.bus
	r.hub = fanout.New(r, func(e bus.Event) []byte { return []byte(e.News.ID) })
	return r
}

// emit emits events with these numbers in another process.
func (r *rig) emit(numbers ...int) {
	for _, n := range numbers {
		r.other.Emit(bus.Event{Type: bus.JobMoved, Session: "s", News: &bus.News{ID: fmt.Sprint(n), State: bus.StateRunning}})
	}
}

func (r *rig) join(after uint64, resumed bool) *fanout.Watcher {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	w, got, err := r.hub.Join(ctx, after)
	if err != nil || got != resumed {
		r.Fatalf("join after %d: resumed %v, %v", after, got, err)
	}
	return w
}

// A reader reads the items that a watcher gets, one by one.
type reader struct {
	r     *rig
	w     *fanout.Watcher
	items []*fanout.Item
}

// next returns the next event, or nil for a gap.
func (v *reader) next() *fanout.Item {
	v.r.Helper()
	ctx, cancel := context.WithTimeout(v.r.Context(), patience)
	defer cancel()
	if len(v.items) == 0 {
		items, lost, err := v.w.Next(ctx)
		if err != nil {
			v.r.Fatal(err)
		}
		if lost {
			return nil
		}
		v.items = items
	}
	i := v.items[0]
	v.items = v.items[1:]
	return i
}

// want checks that the next events have these numbers, and returns the id of the last one.
func (v *reader) want(numbers ...int) (id uint64) {
	v.r.Helper()
	for _, n := range numbers {
		i := v.next()
		if i == nil || string(i.Frame) != fmt.Sprint(n) {
			v.r.Fatalf("got %+v, want %d", i, n)
		}
		id = i.ID
	}
	return id
}

func (r *rig) reader(w *fanout.Watcher) *reader { return &reader{r: r, w: w} }

func TestWatchersShareOneSubscription(t *testing.T) {
	onEach(t, func(r *rig) {
		var all []*reader
		for range 100 {
			all = append(all, r.reader(r.join(0, false)))
		}
		r.emit(1, 2, 3)
		var reading sync.WaitGroup
		for _, v := range all {
			reading.Go(func() {
				for n := 1; n <= 3; n++ {
					if i := v.next(); i == nil || string(i.Frame) != fmt.Sprint(n) {
						r.Errorf("got %+v, want %d", i, n)
					}
				}
			})
		}
		reading.Wait()
		if made, last := r.made.Load(), r.last.Load(); made != 1 || last != 1 {
			r.Errorf("%d subscriptions were made, and %d last", made, last)
		}
		for _, v := range all {
			v.w.Leave()
		}
		r.await("the subscription to end", func() bool { return r.last.Load() == 0 })
	})
}

func (r *rig) await(what string, holds func() bool) {
	r.Helper()
	tick, over := time.NewTicker(time.Millisecond), time.After(patience)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-over:
			r.Fatal("waited in vain for ", what)
		}
	}
}

func TestAWatcherGoesOnWhereItWas(t *testing.T) {
	onEach(t, func(r *rig) {
		first := r.reader(r.join(0, false))
		r.emit(1, 2, 3)
		one := first.want(1)
		three := first.want(2, 3)

		again := r.reader(r.join(one, true)) // from what the hub holds
		again.want(2, 3)
		again.w.Leave()
		first.w.Leave()

		r.emit(4, 5) // nobody watches
		late := r.reader(r.join(three, true))
		five := late.want(4, 5)
		if at := late.w.Position(); at != five {
			r.Errorf("it is at %d, want %d", at, five)
		}

		// A watcher that was away for longer makes the hub read more of the past, and other watchers go on.
		older := r.reader(r.join(one, true))
		older.want(2, 3, 4, 5)
		r.emit(6)
		older.want(6)
		late.want(6)
		r.await("the former subscriptions to end", func() bool { return r.last.Load() == 1 })
	})
}

// A watcher may come with the id of an event that another gateway has already passed on and this one hasn't seen.
func TestAWatcherKnowsMoreThanTheRoom(t *testing.T) {
	onEach(t, func(r *rig) {
		elsewhere := fanout.New(r, func(e bus.Event) []byte { return []byte(e.News.ID) })
		w, _, err := elsewhere.Join(r.Context(), 0)
		if err != nil {
			r.Fatal(err)
		}
		defer w.Leave()
		there := r.reader(w)
		r.emit(1)
		one := there.want(1)
		early := r.reader(r.join(0, false)) // its hub has seen nothing yet
		moved := r.reader(r.join(one, true))
		r.emit(2)
		early.want(2)
		moved.want(2)
	})
}

func TestAWatcherWhoWasAwayForTooLongIsTold(t *testing.T) {
	onEach(t, func(r *rig) {
		v := r.reader(r.join(0, false))
		r.emit(1)
		one := v.want(1)
		r.join(one+uint64(24*time.Hour.Microseconds()), false) // an id of another bus
		v.w.Leave()
		for range 5 {
			r.emit(make([]int, 4000)...)
		}
		r.await("the event to be gone", func() bool {
			w, resumed, err := r.hub.Join(r.Context(), one)
			if err != nil {
				r.Fatal(err)
			}
			w.Leave()
			return !resumed
		})
	})
}

func TestWhatIsForgottenLeavesTheRoom(t *testing.T) {
	onEach(t, func(r *rig) {
		v := r.reader(r.join(0, false))
		r.emit(1, 2)
		one := v.want(1)
		v.want(2)
		if _, err := r.other.(bus.Forgetter).Forget(r.Context(), func(bus.Topic, bus.Message) bool { return false }, "s"); err != nil {
			r.Fatal(err)
		}
		if i := v.next(); i != nil {
			r.Fatalf("got %s", i.Frame)
		}
		r.join(one, false)
		r.emit(3)
		v.want(3)
	})
}

func TestASlowWatcherIsToldAndDelaysNobody(t *testing.T) {
	onEach(t, func(r *rig) {
		slow, fast := r.reader(r.join(0, false)), r.reader(r.join(0, false))
		r.emit(1)
		slow.want(1)
		fast.want(1)
		const many = 6000 // more than the hub holds
		for n := 2; n <= many; n += 500 {
			for i := range 500 {
				r.emit(n + i)
			}
			for got := ""; got != fmt.Sprint(n+499); { // without a gap
				i := fast.next()
				if i == nil {
					r.Fatal("the fast one was told of a loss")
				}
				got = string(i.Frame)
			}
		}
		if i := slow.next(); i != nil {
			r.Fatalf("the slow one got %s, and was told of no loss", i.Frame)
		}
		r.emit(many + 1000)
		slow.want(many + 1000)
	})
}

func TestTheEndOfTheBusEndsTheWatch(t *testing.T) {
	onEach(t, func(r *rig) {
		w := r.join(0, false)
		if err := r.bus.Close(); err != nil {
			r.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		if _, _, err := w.Next(ctx); !errors.Is(err, bus.ErrClosed) {
			r.Errorf("got %v", err)
		}
		if _, _, err := r.hub.Join(ctx, 0); !errors.Is(err, bus.ErrClosed) {
			r.Errorf("another joins: %v", err)
		}
		w.Leave()
	})
}

func TestAWatcherLeavesWhileItWaits(t *testing.T) {
	onEach(t, func(r *rig) {
		w := r.join(0, false)
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		if _, _, err := w.Next(ctx); !errors.Is(err, context.Canceled) {
			r.Errorf("got %v", err)
		}
		if _, _, err := r.hub.Join(ctx, 0); err != nil && !errors.Is(err, context.Canceled) {
			r.Errorf("another joins: %v", err)
		}
	})
}
