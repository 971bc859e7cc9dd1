// Package subscriptions posts what happens on the server to programs that want to know.
//
// Each subscription has a queue in the database; see the package of the same name in sessions. One process of a fleet
// posts a subscription's events, one after the other: the next one is posted once the subscriber has accepted the one
// before. What a process has posted but not yet removed from the queue when it dies is posted again, under the same
// id.
//
// This file says who posts and starts it, courier.go posts, request.go makes and signs the requests, letters.go finds
// new dead letters, moves.go records those that are replayed or dropped, and problems.go tells owners of a subscriber
// that accepts nothing.
package subscriptions

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/backoff"
	"parley/sessions/subscriptions"
)

// Config holds what a Poster needs.
type Config struct {
	Table *subscriptions.Table
	// Current returns the subscriptions that Load sets.
	Current func() []subscriptions.Subscription
	Bus     Bus
	Ask     func(ctx context.Context, id string) (bus.Ask, error)
	Redact  func(text string) string // removes secrets
	Agent   string                   // the User-Agent of the requests
	Notes   channels.Notes
	// Posted is called after an event was posted, and says whether it was accepted.
	Posted func(subscription string, accepted bool)
	Point  func(name string) // called where a test may kill the process
	Log    *slog.Logger
}

// A Bus says which process posts, rings when there is something to post, and has the dead letters.
type Bus interface {
	bus.Holder
	bus.Events
	bus.Inspector
	bus.DeadLetters
}

// A Poster posts the events of all subscriptions.
type Poster struct {
	Config
	client *http.Client
	bell   *bell

	mu      sync.Mutex
	current map[string]subscriptions.Subscription
	changed chan struct{} // has a value once current was changed
}

// New makes a Poster. It posts nothing before Run.
func New(c Config) *Poster {
	if c.Posted == nil {
		c.Posted = func(string, bool) {}
	}
	if c.Point == nil {
		c.Point = func(string) {}
	}
	p := &Poster{Config: c, client: newClient(), bell: newBell(c.Bus), changed: make(chan struct{}, 1)}
	c.Table.OnAdded(p.bell.ring)
	return p
}

// Load sets the current subscriptions, before anything happens.
func (p *Poster) Load(context.Context) error {
	p.Set(p.Current())
	return nil
}

// Set sets the subscriptions, in place of earlier ones. From now on this process records the events that they want.
func (p *Poster) Set(all []subscriptions.Subscription) {
	p.Table.Want(all...)
	next := map[string]subscriptions.Subscription{}
	for _, s := range all {
		next[s.Name] = s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = next
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// subscriptions returns those that there are now.
func (p *Poster) subscriptions() map[string]subscriptions.Subscription {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// sweepInterval is how often what waits for subscriptions that are gone is deleted.
const sweepInterval = time.Hour

// Run posts until ctx is done, and finishes the requests that have begun. While there are no subscriptions, it only
// waits.
func (p *Poster) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	couriers := map[string]*runningCourier{}
	sweep := time.NewTicker(sweepInterval)
	defer sweep.Stop()
	for {
		select {
		case <-p.changed:
			p.follow(ctx, &running, couriers, p.subscriptions())
		case <-sweep.C:
			if err := p.Table.Sweep(ctx, time.Now()); err != nil && ctx.Err() == nil {
				p.Log.Warn("old events were not deleted", slog.Any("error", err))
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// A runningCourier is a courier that runs. The zero Subscription stands for what all couriers need.
type runningCourier struct {
	subscription subscriptions.Subscription
	stop         context.CancelFunc
}

// listenerName is the name under which what all couriers need runs. No subscription can have it.
const listenerName = ""

// follow starts and ends couriers, so that there is one for each of the current subscriptions. One that has changed gets
// another courier, which waits until the one before has let go of the subscription.
func (p *Poster) follow(ctx context.Context, running *sync.WaitGroup, couriers map[string]*runningCourier, current map[string]subscriptions.Subscription) {
	start := func(name string, s subscriptions.Subscription, run func(context.Context)) {
		own, end := context.WithCancel(ctx)
		couriers[name] = &runningCourier{s, end}
		running.Go(func() {
			defer end()
			run(own)
		})
	}
	for name, c := range couriers {
		if s, is := current[name]; s != c.subscription || !is && (name != listenerName || len(current) == 0) {
			c.stop()
			delete(couriers, name)
		}
	}
	if couriers[listenerName] == nil && len(current) > 0 {
		start(listenerName, subscriptions.Subscription{}, p.listen)
	}
	for name, s := range current {
		if couriers[name] == nil {
			start(name, s, newCourier(p, s).run)
		}
	}
}

// listen hears of what other processes have recorded, and looks for dead letters, until ctx is done.
func (p *Poster) listen(ctx context.Context) {
	var looking sync.WaitGroup
	looking.Go(func() { p.watchLetters(ctx) })
	p.bell.follow(ctx)
	looking.Wait()
}

// bellFeed is the name under which processes ring for one another. No channel can have it.
const bellFeed = "@subscriptions"

// ringDelay is how long events gather before the other processes hear of them.
const ringDelay = 50 * time.Millisecond

// A bell rings in all processes when one of them has recorded events. If it is not heard, the events are found a little
// later.
type bell struct {
	events bus.Events

	mu          sync.Mutex
	ringPlanned bool                   // whether a ring is about to be sent
	waiters     map[chan struct{}]bool // those who are woken
}

func newBell(events bus.Events) *bell {
	return &bell{events: events, waiters: map[chan struct{}]bool{}}
}

// ring has all processes hear the bell a moment later.
func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ringPlanned {
		return
	}
	b.ringPlanned = true
	time.AfterFunc(ringDelay, func() {
		b.mu.Lock()
		b.ringPlanned = false
		b.mu.Unlock()
		b.events.Emit(bus.Event{Type: "events_recorded", Route: bus.Address{Channel: bellFeed}})
	})
}

// follow wakes those who wait in this process whenever the bell rings, until ctx is done.
func (b *bell) follow(ctx context.Context) { bus.Follow(ctx, b.events, bellFeed, b) }

// Heard implements bus.Listener.
func (b *bell) Heard(bus.Event) { b.Missed() }

// Missed implements bus.Listener.
func (b *bell) Missed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for one := range b.waiters {
		select {
		case one <- struct{}{}:
		default: // it is woken already
		}
	}
}

// listen returns a channel that gets a value when the bell rings, until leave is called.
func (b *bell) listen() (rung chan struct{}, leave func()) {
	rung = make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiters[rung] = true
	return rung, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.waiters, rung)
	}
}

// sleep waits, and returns false if ctx ended first.
func sleep(ctx context.Context, wait time.Duration) bool { return backoff.Sleep(ctx, wait) }
