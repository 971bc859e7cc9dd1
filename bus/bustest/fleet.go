package bustest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"parley/bus"
)

var sharing = []promise{
	{"two buses share the work, one holder to a mailbox", fleetShares},
	{"steering reaches the holder in the other bus", fleetSteers},
	{"a bus that is cut off loses its leases to the others, and is fenced", fleetCutOff},
	{"a name is held once in the fleet, and goes to another with its holder's loss", fleetHolds},
	{"after an outage for all, what is being worked on is not claimed a second time", fleetOutage},
	{"after a loss of all data, nothing wedges", fleetWiped},
	{"a process that was stopped is fenced when it wakes", fleetStopped},
	{"a roster has every process that has the bus open, and no other", fleetRoster},
	{"events of one bus reach the watchers of the other", fleetEvents},
}

// fleet opens two buses over the same data.
func fleet(r *rig) (other Bus) {
	r.Helper()
	r.open(Options{Lease: 2 * time.Second})
	return r.another()
}

func fleetShares(r *rig) {
	other := fleet(r)
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	const keys, n = 20, 1000
	w := &witness{r: r, next: map[string]int{}, held: map[string]bool{}, fences: map[string]int64{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			key := fmt.Sprint("k", i%keys)
			m := bus.Message{ID: fmt.Sprintf("%s/%d", key, i/keys), Key: key}
			if err := []Bus{r.Bus, other}[i%2].Publish(ctx, inbound, m); err != nil {
				r.Error(err)
			}
		}
	})
	var mu sync.Mutex
	seen := 0
	for _, b := range []Bus{r.Bus, other, r.Bus, other} {
		wg.Go(func() {
			err := workUntil(ctx, b, func(l bus.Lease, m bus.Message) {
				if !w.holds(l) { // one lease may bring several
					w.claimed(l)
				}
				w.see(m)
				w.released(l)
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
	r.publish("k", "a")
	l := r.claimOf(other, inbound)
	last := r.mail(l, 0, "a")
	r.publish("k", "b")
	r.settle(l, bus.End{Done: r.mail(l, last, "b")})
	r.nothingLeft()
}

func fleetCutOff(r *rig) {
	other := fleet(r)
	r.skipUnless(r.harness.CutOff != nil, "cutting off")
	r.publish("k", "a")
	zombie := r.claimOf(other, inbound)
	r.mail(zombie, 0, "a")
	cut := time.Now()
	restore := r.harness.CutOff(r, other)
	l := r.claimKey("k")
	if took := time.Since(cut); took > r.options.Lease+time.Second {
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
	r.nothingLeft()
}

func fleetHolds(r *rig) {
	other := fleet(r)
	_, release, err := other.Hold(r.Context(), "name")
	r.ok("hold", err)
	r.checkFree("name", false)
	release()
	r.checkFree("name", true)
	if r.harness.CutOff == nil {
		return
	}
	held, release, err := other.Hold(r.Context(), "name")
	r.ok("hold", err)
	restore := r.harness.CutOff(r, other)
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	_, releaseMine, err := r.Hold(ctx, "name")
	r.ok("hold", err)
	select { // the former holder knew before
	case <-held.Done():
		r.wantError("cause", context.Cause(held), bus.ErrFenced)
	default:
		r.Error("two hold one name")
	}
	restore()
	release()
	r.checkFree("name", false)
	releaseMine()
}

func fleetEvents(r *rig) {
	other := fleet(r)
	v := r.subscribe(bus.SessionFeed("s"), 0)
	for i := range 100 {
		other.Emit(event("s", i))
	}
	for i := range 100 {
		v.see(i)
	}
}

// skipUnless skips a test if the harness lacks its hook.
func (r *rig) skipUnless(has bool, what string) {
	r.Helper()
	if !has {
		r.Skip("the harness has no hook for " + what)
	}
}

func fleetOutage(r *rig) {
	other := fleet(r)
	r.skipUnless(r.harness.CutOff != nil, "cutting off")
	r.publish("k", "a")
	l := r.claimOf(other, inbound)
	last := r.mail(l, 0, "a")
	mine, others := r.harness.CutOff(r, r.Bus), r.harness.CutOff(r, other)
	<-time.After(2 * r.options.Lease)
	mine()
	r.nothingDue(inbound, r.options.Lease/2) // the first one back does not take what is worked on
	others()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	r.ok("held", l.Held(ctx))
	r.nothingDue(inbound, 2*r.options.Lease)
	r.settle(l, bus.End{Done: last})
	r.nothingLeft()
}

func fleetWiped(r *rig) {
	other := fleet(r)
	r.skipUnless(r.harness.Wipe != nil, "losing all data")
	r.publish("held", "a")
	r.publish("waiting", "b")
	l := r.claimOf(other, inbound)
	fence := l.Claim().Fence
	r.harness.Wipe(r, r.place)
	select {
	case <-l.Lost():
	case <-time.After(patience):
		r.Fatal("a lease outlives the loss of all data")
	}
	r.isFenced(l)
	r.publish("held", "c")
	next := r.claimKey("held")
	if next.Claim().Fence <= fence {
		r.Errorf("fence %d after %d", next.Claim().Fence, fence)
	}
	r.settle(next, bus.End{Done: r.mail(next, 0, "c")})
	r.nothingLeft()
}

func fleetStopped(r *rig) {
	fleet(r)
	r.options = Options{}
	r.reopen()
	r.publish("k", "a")
	p := r.start("sleep")
	defer p.kill()
	if line := p.line(); line != "k" {
		r.Fatalf("the child process claimed %q", line)
	}
	r.ok("stop", p.cmd.Process.Signal(syscall.SIGSTOP))
	stopped := time.Now()
	l := r.claimKey("k")
	if took := time.Since(stopped); took > r.harness.LeaseTime+time.Second {
		r.Errorf("taken over after %v", took)
	}
	r.ok("continue", p.cmd.Process.Signal(syscall.SIGCONT))
	for _, what := range []string{"lost", "held", "mail", "settle"} {
		if line := p.line(); line != what+" true" {
			r.Errorf("the process that was stopped says %q of being fenced", line)
		}
	}
	r.settle(l, bus.End{Done: r.mail(l, 0, "a")})
}

// childSleep holds a mailbox until it learns that it was lost meanwhile.
func childSleep(ctx context.Context, b Bus) error {
	l, err := b.Claim(ctx, inbound)
	if err != nil {
		return err
	}
	fmt.Println(l.Claim().Key)
	<-l.Lost()
	fmt.Println("lost true")
	fmt.Println("held", errors.Is(l.Held(ctx), bus.ErrFenced))
	_, err = l.Mail(ctx, 0)
	fmt.Println("mail", errors.Is(err, bus.ErrFenced))
	fmt.Println("settle", errors.Is(l.Settle(ctx, bus.End{Done: 1 << 60}), bus.ErrFenced))
	select {}
}
