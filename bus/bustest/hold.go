package bustest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"parley/bus"
)

var holdPromises = []promise{
	{"gives a name to one at a time, and hands it on", testHoldExclusive},
	{"lets a waiter go, and does not lose the name with it", testHoldCancelled},
	{"ends with its context, is free when released, and is lost with the bus", testHoldEnds},
}

// checkFree checks whether a name can be held at once.
func (r *rig) checkFree(name string, want bool) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
	defer cancel()
	_, release, err := r.Hold(ctx, name)
	if (err == nil) != want {
		r.Fatalf("hold of %s: %v, want it free: %v", name, err, want)
	}
	if err == nil {
		release()
	}
}

func testHoldExclusive(r *rig) {
	r.open(Options{})
	var wg sync.WaitGroup
	var holders, turns atomic.Int64
	for range 8 {
		wg.Go(func() {
			for range 5 {
				held, release, err := r.Hold(r.Context(), "name")
				if err != nil {
					r.Error(err)
					return
				}
				if holders.Add(1) != 1 {
					r.Error("two hold one name")
				}
				if held.Err() != nil {
					r.Errorf("a fresh hold is over: %v", context.Cause(held))
				}
				turns.Add(1)
				holders.Add(-1)
				release()
				release()
				if held.Err() == nil {
					r.Error("a released hold goes on")
				}
			}
		})
	}
	wg.Wait()
	if turns.Load() != 40 {
		r.Errorf("%d turns, want 40", turns.Load())
	}
	_, release, err := r.Hold(r.Context(), "name")
	r.noError("hold", err)
	r.checkFree("name", false)
	r.checkFree("another", true)
	release()
	r.checkFree("name", true)
}

func testHoldCancelled(r *rig) {
	r.open(Options{})
	for range 50 {
		_, release, err := r.Hold(r.Context(), "name")
		r.noError("hold", err)
		ctx, cancel := context.WithCancel(r.Context())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, release, err := r.Hold(ctx, "name"); err == nil {
					release()
				} else if !errors.Is(err, context.Canceled) {
					r.Errorf("hold: %v", err)
				}
			})
		}
		r.waitIdle()
		cancel()
		release()
		wg.Wait()
	}
	r.checkFree("name", true)
}

func testHoldEnds(r *rig) {
	r.open(Options{})
	ctx, cancel := context.WithCancel(r.Context())
	held, release, err := r.Hold(ctx, "name")
	r.noError("hold", err)
	cancel()
	<-held.Done()
	r.checkFree("name", false) // the holder may still be finishing its work
	release()
	r.checkFree("name", true)

	held, release, err = r.Hold(r.Context(), "name")
	r.noError("hold", err)
	b := r.Bus
	r.reopen()
	<-held.Done()
	r.wantError("cause", context.Cause(held), bus.ErrFenced)
	release()
	r.noError("close again", b.Close())
	r.checkFree("name", true)
}
