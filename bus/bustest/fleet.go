package bustest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"parley/bus"
)

var sharing = []promise{
	{"two buses share the work, one holder to a mailbox", fleetShares},
	{"steering reaches the holder in the other bus", fleetSteers},
	{"a bus that is cut off loses its leases to the others, and is fenced", fleetCutOff},
	{"a name is held once in the fleet, and goes to another with its holder's loss", fleetHolds},
	{"events of one bus reach the watchers of the other", fleetEvents},
}

// fleet opens two buses over the same data.
func fleet(r *rig) (other Bus) {
	r.Helper()
	if !r.h.Shared {
		r.Skip("one process has this bus")
	}
	r.open(Options{Lease: 2 * time.Second})
	return r.another()
}

func fleetShares(r *rig) {
	other := fleet(r)
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	const keys, n = 20, 1000
	w := &witness{r: r, next: map[string]int{}, held: map[string]bool{}, past: map[string]int64{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			key := fmt.Sprint("k", i%keys)
			r.ok("publish", []Bus{r.Bus, other}[i%2].Publish(ctx, inbound, bus.Message{ID: fmt.Sprintf("%s/%d", key, i/keys), Key: key}))
		}
	})
	var mu sync.Mutex
	seen := 0
	for _, b := range []Bus{r.Bus, other, r.Bus, other} {
		wg.Go(func() {
			err := work(ctx, b, func(l bus.Lease, m bus.Message) {
				w.take(l)
				w.see(m)
				w.give(l)
				mu.Lock()
				defer mu.Unlock()
				if seen++; seen == n {
					cancel()
				}
			})
			if err != nil {
				r.Error(err)
			}
		})
	}
	wg.Wait()
}

func fleetSteers(r *rig) {
	other := fleet(r)
	r.say("k", "a")
	l := r.claimOf(other, inbound)
	last := r.mail(l, 0, "a")
	r.say("k", "b")
	r.settle(l, bus.End{Done: r.mail(l, last, "b")})
	r.clean()
}

func fleetCutOff(r *rig) {
	other := fleet(r)
	if r.h.CutOff == nil {
		r.Skip("this bus cannot be cut off")
	}
	r.say("k", "a")
	zombie := r.claimOf(other, inbound)
	r.mail(zombie, 0, "a")
	cut := time.Now()
	restore := r.h.CutOff(r, other)
	l := r.claimKey("k")
	if took := time.Since(cut); took > r.o.Lease+time.Second {
		r.Errorf("taken over after %v", took)
	}
	r.attempts(l, 2)
	ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
	defer cancel()
	if zombie.Held(ctx) == nil {
		r.Error("a holder that is cut off believes itself held")
	}
	restore()
	r.isFenced(zombie)
	<-zombie.Lost()
	r.settle(l, bus.End{Done: r.mail(l, 0, "a")})
	r.clean()
}

func fleetHolds(r *rig) {
	other := fleet(r)
	held, release, err := other.Hold(r.Context(), "name")
	r.ok("hold", err)
	r.free("name", false)
	release()
	r.free("name", true)
	if r.h.CutOff == nil {
		return
	}
	held, release, err = other.Hold(r.Context(), "name")
	r.ok("hold", err)
	restore := r.h.CutOff(r, other)
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	_, releaseMine, err := r.Hold(ctx, "name")
	r.ok("hold", err)
	select { // the former holder knew before
	case <-held.Done():
		r.is("cause", context.Cause(held), bus.ErrFenced)
	default:
		r.Error("two hold one name")
	}
	restore()
	release()
	r.free("name", false)
	releaseMine()
}

func fleetEvents(r *rig) {
	other := fleet(r)
	v := r.watch(bus.SessionFeed("s"), 0)
	for i := range 100 {
		other.Emit(event("s", i))
	}
	for i := range 100 {
		v.see(i)
	}
}
