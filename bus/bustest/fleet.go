package bustest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"syscall"
	"time"

	"parley/bus"
)

var fleetPromises = []promise{
	{"two buses share the work, one holder to a mailbox", testFleetSharesWork},
	{"steering reaches the holder in the other bus", testFleetSteers},
	{"a bus that is cut off loses its leases to the others, and is fenced", testFleetCutOff},
	{"a name is held once in the fleet, and goes to another with its holder's loss", testFleetHolds},
	{"after an outage for all, what is being worked on is not claimed a second time", testFleetOutage},
	{"after a loss of all data, nothing wedges", testFleetWiped},
	{"a process that was stopped is fenced when it wakes", testFleetStopped},
	{"a roster has every process that has the bus open, and no other", testFleetRoster},
	{"says which process has leased what", testFleetHolders},
	{"events of one bus reach the watchers of the other", testFleetEvents},
}

// openFleet opens two buses over the same data: one for r, and the one that it returns.
func openFleet(r *rig) (other Bus) {
	r.Helper()
	r.open(Options{Lease: 2 * time.Second})
	return r.openAnother()
}

func testFleetSharesWork(r *rig) {
	other := openFleet(r)
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
				if !w.isHolder(l) { // one lease may come with several messages
					w.recordClaim(l)
				}
				w.checkOrder(m)
				w.recordRelease(l)
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

// testFleetHolders checks that Mailboxes names, for each leased mailbox, the process that has claimed it.
func testFleetHolders(r *rig) {
	other := openFleet(r)
	us, them := r.processes(r.Bus)[0], r.processes(other)[0]
	want := map[string]string{}
	for i := range 6 {
		r.publish(fmt.Sprint("k", i), fmt.Sprint("a", i))
		from, name := r.Bus, us
		if i > 3 {
			from, name = other, them
		}
		want[r.claimOf(from, inbound).Claim().Key] = name
	}
	for _, b := range []Bus{r.Bus, other} {
		r.await("what nobody has claimed to be given back", func() bool {
			d, err := b.Depth(r.Context(), inbound)
			r.noError("depth", err)
			return maps.Equal(d.LeasedBy, map[string]int{us: 4, them: 2})
		})
		list, err := b.Mailboxes(r.Context(), inbound, 10)
		r.noError("list mailboxes", err)
		got := map[string]string{}
		for _, m := range list.Leased {
			got[m.Key] = m.Holder
		}
		if !maps.Equal(got, want) {
			r.Errorf("the holders are %v, want %v", got, want)
		}
	}
}

func testFleetSteers(r *rig) {
	other := openFleet(r)
	r.publish("k", "a")
	l := r.claimOf(other, inbound)
	last := r.wantMail(l, 0, "a")
	r.publish("k", "b")
	r.settle(l, bus.End{Done: r.wantMail(l, last, "b")})
	r.wantNothingLeft()
}

func testFleetCutOff(r *rig) {
	other := openFleet(r)
	r.skipUnless(r.harness.CutOff != nil, "cutting off")
	r.publish("k", "a")
	zombie := r.claimOf(other, inbound)
	r.wantMail(zombie, 0, "a")
	cut := time.Now()
	restore := r.harness.CutOff(r, other)
	l := r.claimKey("k")
	if took := time.Since(cut); took > r.options.Lease+time.Second {
		r.Errorf("taken over after %v", took)
	}
	r.wantAttempts(l, 2)
	ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
	defer cancel()
	if zombie.Held(ctx) == nil {
		r.Error("a holder that is cut off believes itself held")
	}
	restore()
	r.wantFenced(zombie)
	<-zombie.Lost()
	r.settle(l, bus.End{Done: r.wantMail(l, 0, "a")})
	r.wantNothingLeft()
}

func testFleetHolds(r *rig) {
	other := openFleet(r)
	_, release, err := other.Hold(r.Context(), "name")
	r.noError("hold", err)
	r.checkFree("name", false)
	release()
	r.checkFree("name", true)
	if r.harness.CutOff == nil {
		return
	}
	held, release, err := other.Hold(r.Context(), "name")
	r.noError("hold", err)
	restore := r.harness.CutOff(r, other)
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	_, releaseMine, err := r.Hold(ctx, "name")
	r.noError("hold", err)
	select { // the former holder learned of it before
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

func testFleetEvents(r *rig) {
	other := openFleet(r)
	v := r.subscribe(bus.SessionFeed("s"), 0)
	for i := range 100 {
		other.Emit(newEvent("s", i))
	}
	for i := range 100 {
		v.wantBlocks(i)
	}
	server := r.subscribe(bus.ServerFeed(), 0)
	other.Emit(newJobEvent("s", 1))
	first := server.wantJobs("s", 1)
	other.Emit(newJobEvent("s", 2))
	server.wantJobs("s", 2)
	r.subscribe(bus.ServerFeed(), first.ID).wantJobs("s", 2)
}

// skipUnless skips a test unless has is true, because otherwise the harness lacks a function for the feature that the
// test is about.
func (r *rig) skipUnless(has bool, feature string) {
	r.Helper()
	if !has {
		r.Skip("the harness has no hook for " + feature)
	}
}

func testFleetOutage(r *rig) {
	other := openFleet(r)
	r.skipUnless(r.harness.CutOff != nil, "cutting off")
	r.publish("k", "a")
	l := r.claimOf(other, inbound)
	last := r.wantMail(l, 0, "a")
	mine, others := r.harness.CutOff(r, r.Bus), r.harness.CutOff(r, other)
	<-time.After(2 * r.options.Lease)
	mine()
	r.wantNothingDue(inbound, r.options.Lease/2) // the first process that reconnects doesn't take mailboxes that are worked on
	others()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	r.noError("held", l.Held(ctx))
	r.wantNothingDue(inbound, 2*r.options.Lease)
	r.settle(l, bus.End{Done: last})
	r.wantNothingLeft()
}

func testFleetWiped(r *rig) {
	other := openFleet(r)
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
	r.wantFenced(l)
	r.publish("held", "c")
	next := r.claimKey("held")
	if next.Claim().Fence <= fence {
		r.Errorf("fence %d after %d", next.Claim().Fence, fence)
	}
	r.settle(next, bus.End{Done: r.wantMail(next, 0, "c")})
	r.wantNothingLeft()
}

func testFleetStopped(r *rig) {
	openFleet(r)
	r.options = Options{}
	r.reopen()
	r.publish("k", "a")
	p := r.startChild("sleep")
	defer p.kill()
	if line := p.nextLine(); line != "k" {
		r.Fatalf("the child process claimed %q", line)
	}
	r.noError("stop", p.cmd.Process.Signal(syscall.SIGSTOP))
	stopped := time.Now()
	l := r.claimKey("k")
	if took := time.Since(stopped); took > r.harness.LeaseTime+time.Second {
		r.Errorf("taken over after %v", took)
	}
	r.noError("continue", p.cmd.Process.Signal(syscall.SIGCONT))
	for _, what := range []string{"lost", "held", "mail", "settle"} {
		if line := p.nextLine(); line != what+" true" {
			r.Errorf("the process that was stopped says %q of being fenced", line)
		}
	}
	r.settle(l, bus.End{Done: r.wantMail(l, 0, "a")})
}

// childHold claims a mailbox and keeps the lease until it learns that the lease was lost.
func childHold(ctx context.Context, b Bus) error {
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
