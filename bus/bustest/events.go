package bustest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"
	"time"

	"parley/bus"
)

var eventPromises = []promise{
	{"reach the watchers of their session and of their channel, in order", testEventFeeds},
	{"keep what they say", testEventFields},
	{"are numbered upward, over a restart too", testEventIDsGrow},
	{"can be read again from an id", testEventsFromID},
	{"can be read that are held", testEventsHeld},
	{"are gone when too many have followed, and after a restart", testEventsGone},
	{"do not wait for a slow watcher, who is told once", testSlowWatcher},
	{"end with the watcher's context", testEventsEndWithContext},
	{"are cheap for a thousand who watch nothing", testIdleWatchers},
}

// newEvent returns an event with that number in its Block, by which wantBlocks recognizes it.
func newEvent(session string, block int) bus.Event {
	return bus.Event{Type: bus.BlockDelta, Session: session, Route: bus.Address{Channel: "telegram", Chat: session}, Turn: "t", Block: block}
}

// A subscription reads events one at a time.
type subscription struct {
	r    *rig
	next func() (bus.Event, error, bool)
	stop func()
}

// subscribe subscribes to a feed, from after an id on, until the test ends.
func (r *rig) subscribe(feed bus.Feed, after uint64) *subscription {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 2*patience)
	seq, err := r.Subscribe(ctx, feed, after)
	if err != nil {
		cancel()
		r.Fatalf("subscribe to %s after %d: %v", feed, after, err)
	}
	next, stop := iter.Pull2(seq)
	v := &subscription{r: r, next: next, stop: func() { stop(); cancel() }}
	r.Cleanup(v.stop)
	return v
}

// wantBlocks checks that the next events have these blocks, and returns the last.
func (v *subscription) wantBlocks(blocks ...int) (e bus.Event) {
	v.r.Helper()
	var last uint64
	for _, want := range blocks {
		got, err, ok := v.next()
		if err != nil || !ok || got.Block != want {
			v.r.Fatalf("next event is %+v, %v, %v; want block %d", got, err, ok, want)
		}
		if got.ID <= last {
			v.r.Fatalf("event %d after %d", got.ID, last)
		}
		e, last = got, got.ID
	}
	return e
}

// wantInAnyOrder checks that the next events are these, of several sessions.
func (v *subscription) wantInAnyOrder(blocks ...int) {
	v.r.Helper()
	for left := slices.Clone(blocks); len(left) > 0; {
		got, err, ok := v.next()
		at := slices.Index(left, got.Block)
		if err != nil || !ok || at < 0 {
			v.r.Fatalf("next event is %+v, %v, %v; want one of the blocks %v", got, err, ok, left)
		}
		left = slices.Delete(left, at, at+1)
	}
}

func testEventFeeds(r *rig) {
	r.open(Options{})
	one := r.subscribe(bus.SessionFeed("s1"), 0)
	two := r.subscribe(bus.SessionFeed("s2"), 0)
	all := r.subscribe(bus.ChannelFeed("telegram"), 0)
	other := r.subscribe(bus.ChannelFeed("slack"), 0)
	r.Emit(newEvent("s1", 1))
	r.Emit(newEvent("s2", 2))
	r.Emit(bus.Event{Type: bus.TurnStart, Session: "s1", Block: 3}) // no route
	r.Emit(bus.Event{Type: bus.TurnStart, Session: "s3", Route: bus.Address{Channel: "slack"}, Block: 4})
	r.Emit(bus.Event{Type: bus.Limited, Route: bus.Address{Channel: "slack"}, Block: 5}) // no session
	one.wantBlocks(1, 3)
	two.wantBlocks(2)
	if r.harness.Divided {
		all.wantInAnyOrder(1, 2)
		other.wantInAnyOrder(4, 5)
		return
	}
	all.wantBlocks(1, 2)
	other.wantBlocks(4, 5)
}

func testEventFields(r *rig) {
	r.open(Options{})
	v := r.subscribe(bus.SessionFeed("s"), 0)
	e := bus.Event{
		Type: bus.ToolEnd, Session: "s", Route: bus.Address{Channel: "c", Chat: "1", Thread: "2"}, Turn: "t", Causes: []string{"a", "b"},
		Block: 7, Kind: "text", Delta: "añ\x00\n", Tool: "exec", Call: "c1", Error: &bus.Failure{Code: "timeout", Message: "late"},
		Detail: &bus.Detail{Input: json.RawMessage(`{"a":"<b>"}`), Failed: true, Cut: true, Cause: "m1", Name: "Ann"},
	}
	r.Emit(e)
	got := v.wantBlocks(7)
	e.ID = got.ID
	if !reflect.DeepEqual(got, e) {
		r.Errorf("got %+v, want %+v", got, e)
	}
}

func testEventIDsGrow(r *rig) {
	r.open(Options{})
	var last uint64
	for i := range 4 {
		v := r.subscribe(bus.SessionFeed("s"), 0)
		r.Emit(newEvent("s", i))
		e := v.wantBlocks(i)
		if e.ID <= last {
			r.Fatalf("event %d after %d", e.ID, last)
		}
		last = e.ID
		v.stop()
		if i%2 == 1 {
			r.reopen()
		}
	}
}

func testEventsFromID(r *rig) {
	r.open(Options{})
	v := r.subscribe(bus.SessionFeed("s"), 0)
	for i := range 10 {
		r.Emit(newEvent("s", i))
		r.Emit(newEvent("noise", i))
	}
	first := v.wantBlocks(0)
	fourth := v.wantBlocks(1, 2, 3)
	last := v.wantBlocks(4, 5, 6, 7, 8, 9)
	v.stop()
	r.subscribe(bus.SessionFeed("s"), fourth.ID).wantBlocks(4, 5, 6, 7, 8, 9)
	r.subscribe(bus.SessionFeed("s"), first.ID).wantBlocks(1, 2, 3)
	now, end := r.subscribe(bus.SessionFeed("s"), 0), r.subscribe(bus.SessionFeed("s"), last.ID)
	r.Emit(newEvent("s", 10))
	now.wantBlocks(10)
	end.wantBlocks(10)
}

func testEventsHeld(r *rig) {
	r.open(Options{})
	v := r.subscribe(bus.SessionFeed("s"), 0)
	for i := range 10 {
		r.Emit(newEvent("s", i))
		r.Emit(newEvent("noise", i))
	}
	last := v.wantBlocks(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	held, err := r.HeldEvents(r.Context(), bus.SessionFeed("s"))
	if err != nil || len(held) != 10 || held[0].Block != 0 || held[9].ID != last.ID || held[9].Session != "s" {
		r.Errorf("held are %+v, %v", held, err)
	}
	if none, err := r.HeldEvents(r.Context(), bus.SessionFeed("of nobody")); err != nil || len(none) > 0 {
		r.Errorf("of nobody are held %+v, %v", none, err)
	}
}

func testEventsGone(r *rig) {
	r.open(Options{})
	feed := bus.SessionFeed("s")
	gone := func(after uint64) {
		r.Helper()
		_, err := r.Subscribe(r.Context(), feed, after)
		r.wantError(fmt.Sprint("subscribe after ", after), err, bus.ErrGone)
	}
	v := r.subscribe(feed, 0)
	r.Emit(newEvent("s", 0))
	first := v.wantBlocks(0)
	v.stop()
	for i := range 1000 { // the last few thousand are held
		r.Emit(newEvent("s", i+1))
	}
	r.subscribe(feed, first.ID).wantBlocks(1, 2)
	for i := range 20000 {
		r.Emit(newEvent("s", i))
	}
	awaitGone(r, feed, first.ID)
	gone(1)
	gone(first.ID + uint64(24*time.Hour.Microseconds())) // an id that was not given yet, as of another bus or another clock
	r.reopen()
	r.Emit(newEvent("s", 0))
	if !r.harness.Shared { // a bus whose events live in the process
		gone(first.ID)
	}
}

// awaitGone waits until a subscription from after that id on yields ErrGone. A bus may send events
// in the background, so it may take some time until it does.
func awaitGone(r *rig, feed bus.Feed, after uint64) {
	r.Helper()
	r.await("the event to be gone", func() bool {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		_, err := r.Subscribe(ctx, feed, after)
		return errors.Is(err, bus.ErrGone)
	})
}

// testSlowWatcher emits more events than a bus keeps for a watcher, before the watcher reads.
// The watcher must get ErrGone exactly where events are missing.
func testSlowWatcher(r *rig) {
	r.open(Options{})
	v := r.subscribe(bus.SessionFeed("s"), 0)
	const n = 20000
	for i := range n {
		r.Emit(newEvent("s", i))
	}
	got, gaps, last, told := 0, 0, -1, false
	for last < n-1 {
		e, err, ok := v.next()
		switch {
		case !ok:
			r.Fatalf("the subscription ended after %d events, with block %d", got, last)
		case errors.Is(err, bus.ErrGone):
			gaps++
			told = true
			continue
		case err != nil:
			r.Fatal(err)
		case (e.Block != last+1) != told:
			r.Fatalf("block %d after %d; told that some are gone: %v", e.Block, last, told)
		}
		got, last, told = got+1, e.Block, false
	}
	if got < 500 || got == n || gaps == 0 {
		r.Errorf("got %d of %d events and was told of %d gaps", got, n, gaps)
	}
	if r.harness.Simulated && gaps != 1 {
		r.Errorf("told %d times of one gap", gaps)
	}
}

func testEventsEndWithContext(r *rig) {
	r.open(Options{})
	ctx, cancel := context.WithCancel(r.Context())
	seq, err := r.Subscribe(ctx, bus.SessionFeed("s"), 0)
	r.noError("subscribe", err)
	var wg sync.WaitGroup
	var got int
	wg.Go(func() {
		for _, err := range seq {
			if err == nil {
				got++
				cancel()
			}
		}
	})
	r.Emit(newEvent("s", 1))
	wg.Wait()
	if got != 1 {
		r.Errorf("got %d events, want 1", got)
	}
	_, err = r.Subscribe(ctx, bus.SessionFeed("s"), 0)
	r.wantError("subscribe", err, context.Canceled)
}

func testIdleWatchers(r *rig) {
	r.open(Options{})
	ctx, cancel := context.WithCancel(r.Context())
	var wg sync.WaitGroup
	for i := range 1000 {
		seq, err := r.Subscribe(ctx, bus.SessionFeed(fmt.Sprint("idle", i)), 0)
		r.noError("subscribe", err)
		wg.Go(func() {
			for e, err := range seq {
				r.Errorf("an idle feed has %+v, %v", e, err)
			}
		})
	}
	v := r.subscribe(bus.SessionFeed("s"), 0)
	for i := range 1000 {
		r.Emit(newEvent("s", i))
	}
	for i := range 1000 {
		v.wantBlocks(i)
	}
	cancel()
	wg.Wait()
}
