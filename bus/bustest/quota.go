package bustest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/bus"
)

// quotaPromises is for buses whose leases count the work of several processes for a group.
var quotaPromises = []promise{
	{"bounds how many leases work for a group", countsWorking},
	{"bounds what begins within an hour, each id once, and says when the next may", countsBegun},
	{"counts what is resumed, whatever the bounds say", countsResumed},
	{"counts a lease for one group at a time", countsOneGroup},
	{"counts over all processes, and a lease that its process has lost no more", countsInFleet},
}

// begin calls Begin of a lease with the id, for the group "g", with these limits.
func (r *rig) begin(l bus.CountedLease, id string, atOnce, hour int) error {
	return l.Begin(r.Context(), bus.Quota{Group: "g", ID: id, AtOnce: atOnce, Hour: hour})
}

// quotaLeases opens a bus, and claims mailboxes with those keys.
func (r *rig) quotaLeases(o Options, keys ...string) (all []bus.CountedLease) {
	r.Helper()
	r.open(o)
	for _, key := range keys {
		r.publish(key, key)
		all = append(all, r.quotaLease(r.Bus))
	}
	return all
}

func (r *rig) quotaLease(b Bus) bus.CountedLease {
	r.Helper()
	l, ok := r.claimOf(b, inbound).(bus.CountedLease)
	if !ok {
		r.Skip("one process has this bus, and counts by itself")
	}
	return l
}

func countsWorking(r *rig) {
	all := r.quotaLeases(Options{}, "a", "b", "c")
	for i, l := range all[:2] {
		r.noError("begin", r.begin(l, fmt.Sprint(i), 2, 9))
	}
	r.wantError("a third", r.begin(all[2], "2", 2, 9), bus.ErrBusy)
	r.noError("one of the two, again", r.begin(all[0], "0", 2, 9))
	r.noError("for another group", all[2].Begin(r.Context(), bus.Quota{Group: "h", ID: "2", AtOnce: 1, Hour: 1}))
	r.settle(all[1], bus.End{Done: r.wantMail(all[1], 0, "b")})
	r.noError("once one has ended", r.begin(all[2], "2", 2, 9))
	r.settle(all[0], bus.End{})
	r.wantError("one that has ended", r.begin(all[0], "3", 9, 9), bus.ErrFenced)
}

func countsBegun(r *rig) {
	all := r.quotaLeases(Options{}, "a", "b", "c")
	r.noError("begin", r.begin(all[0], "1", 9, 2))
	r.noError("the same again", r.begin(all[0], "1", 9, 2))
	r.noError("elsewhere", r.begin(all[1], "1", 9, 2))
	r.noError("another", r.begin(all[1], "2", 9, 2))
	r.noError("one that is known", r.begin(all[2], "2", 9, 2))
	over, ok := errors.AsType[*bus.QuotaError](r.begin(all[2], "3", 9, 2))
	if !ok || over.Opens <= 30*time.Minute || over.Opens > time.Hour {
		r.Errorf("a third within the hour: %v", over)
	}
	r.noError("a third of more", r.begin(all[2], "3", 9, 3))
	r.noError("a fourth of more", r.begin(all[2], "4", 9, 4))
	after, ok := errors.AsType[*bus.QuotaError](r.begin(all[2], "5", 9, 2))
	if !ok || after.Opens < over.Opens-time.Minute {
		r.Errorf("where the bound has become less, it opens after %v", after)
	}
}

func countsResumed(r *rig) {
	all := r.quotaLeases(Options{}, "a", "b", "c")
	r.noError("begin", r.begin(all[0], "1", 1, 1))
	r.noError("resume", all[1].Resume(r.Context(), "g"))
	r.wantError("beside the resumed", r.begin(all[2], "2", 2, 9), bus.ErrBusy)
	r.noError("one id has begun", r.begin(all[2], "2", 9, 2))
	r.settle(all[1], bus.End{})
	r.wantError("resume what has ended", all[1].Resume(r.Context(), "g"), bus.ErrFenced)
}

func countsOneGroup(r *rig) {
	all := r.quotaLeases(Options{}, "a", "b")
	r.noError("begin", r.begin(all[0], "1", 1, 9))
	r.wantError("beside it", r.begin(all[1], "2", 1, 9), bus.ErrBusy)
	r.noError("the same lease, for another", all[0].Begin(r.Context(), bus.Quota{Group: "h", ID: "3", AtOnce: 1, Hour: 1}))
	r.noError("once it is for another", r.begin(all[1], "2", 1, 9))
	r.noError("leave", all[1].Leave(r.Context()))
	r.noError("leave again", all[1].Leave(r.Context()))
	r.noError("once nobody is left", r.begin(all[0], "4", 1, 9))
}

func countsInFleet(r *rig) {
	all := r.quotaLeases(Options{Lease: 2 * time.Second}, "a")
	r.skipUnless(r.harness.Shared && r.harness.CutOff != nil, "cutting off")
	other := r.openAnother()
	r.publish("b", "b")
	theirs := r.quotaLease(other)
	r.noError("begin", r.begin(theirs, "1", 1, 2))
	r.wantError("beside it", r.begin(all[0], "2", 1, 2), bus.ErrBusy)
	defer r.harness.CutOff(r, other)()
	// The process that claims takes over the mailboxes that the other has lost.
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	l, err := r.Claim(ctx, inbound)
	r.noError("claim", err)
	r.noError("once it is lost", r.begin(all[0], "2", 1, 2))
	if _, over := errors.AsType[*bus.QuotaError](r.begin(l.(bus.CountedLease), "3", 9, 2)); !over {
		r.Error("what has begun in another process is not counted")
	}
	r.noError("what it had begun", r.begin(l.(bus.CountedLease), "1", 9, 2))
}

// groupPromises is for buses that several processes share: these lease several mailboxes in one call.
var groupPromises = []promise{
	{"leases what is due, up to a number, in its order", claimsUpTo},
	{"waits for the first, and for no more", claimsTheFirst},
	{"takes nothing for those who no longer wait", declinesTogether},
	{"takes no more than there are places for the work", claimsForPlaces},
	{"ends with the bus", claimsUntilClosed},
}

// openGroup opens a bus that leases several mailboxes in one call.
func (r *rig) openGroup() bus.GroupClaimer {
	r.Helper()
	r.open(Options{})
	many, ok := r.Bus.(bus.GroupClaimer)
	if !ok {
		r.Fatal("this bus leases one mailbox at a time")
	}
	return many
}

// claimUpTo leases mailboxes and checks that they have these keys.
func (r *rig) claimUpTo(b bus.GroupClaimer, most int, keys ...string) []bus.Lease {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	leases, err := b.ClaimUpTo(ctx, inbound, most)
	r.noError("claim", err)
	var got []string
	for _, l := range leases {
		got = append(got, l.Claim().Key)
	}
	if fmt.Sprint(got) != fmt.Sprint(keys) {
		r.Fatalf("claimed %v, want %v", got, keys)
	}
	return leases
}

func claimsUpTo(r *rig) {
	r.skipUnless(!r.harness.Divided, "one order of all mailboxes")
	b := r.openGroup()
	keys := []string{"a", "b", "c", "d", "e"}
	for _, key := range keys {
		r.publish(key, key+"1")
	}
	r.publish("b", "b2", "b3")
	leases := append(r.claimUpTo(b, 3, "a", "b", "c"), r.claimUpTo(b, 16, "d", "e")...)
	r.wantNothingDue(inbound, 50*time.Millisecond)
	fences := map[int64]bool{}
	for i, l := range leases {
		mail := []string{keys[i] + "1"}
		if keys[i] == "b" {
			mail = append(mail, "b2", "b3")
		}
		r.wantAttempts(l, 1)
		r.noError("held", l.Held(r.Context()))
		r.settle(l, bus.End{Done: r.wantMail(l, 0, mail...)})
		fences[l.Claim().Fence] = true
	}
	if len(fences) != len(keys) {
		r.Errorf("%d leases have %d fences", len(keys), len(fences))
	}
	r.wantNothingLeft()
}

func claimsTheFirst(r *rig) {
	b := r.openGroup()
	var waiting sync.WaitGroup
	waiting.Go(func() {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		leases, err := b.ClaimUpTo(ctx, inbound, 16)
		if err != nil || len(leases) != 1 {
			r.Errorf("got %d leases and %v, want one", len(leases), err)
			return
		}
		r.settle(leases[0], bus.End{Done: r.wantMail(leases[0], 0, "1")})
	})
	r.publish("k", "1")
	waiting.Wait()
	r.wantNothingLeft()
}

func declinesTogether(r *rig) {
	b := r.openGroup()
	for round := range 20 {
		ctx, cancel := context.WithCancel(r.Context())
		var both sync.WaitGroup
		both.Go(func() {
			leases, err := b.ClaimUpTo(ctx, inbound, 16)
			if err == nil { // it got leases first, and gives them back
				for _, l := range leases {
					r.settle(l, bus.End{Uncounted: true})
				}
			}
		})
		both.Go(func() {
			for i := range 3 {
				r.publish(fmt.Sprint("k", i), fmt.Sprintf("%d/%d", round, i))
			}
		})
		cancel()
		both.Wait()
		for range 3 {
			l := r.claim()
			r.wantAttempts(l, 1)
			r.settle(l, bus.End{Done: r.wantMail(l, 0, fmt.Sprintf("%d/%s", round, l.Claim().Key[1:]))})
		}
	}
	r.wantNothingLeft()
}

func claimsForPlaces(r *rig) {
	r.openGroup()
	const mailboxes, places = 40, 12
	ctx, stop := context.WithTimeout(r.Context(), patience)
	defer stop()
	for i := range mailboxes {
		r.publish(fmt.Sprint("k", i), fmt.Sprint(i))
	}
	var mu sync.Mutex
	running, most, done := 0, 0, 0
	full := make(chan struct{})
	wait, err := bus.ClaimEach(ctx, r.Bus, inbound, places, func(l bus.Lease) {
		mu.Lock()
		running++
		most = max(most, running)
		if done++; done == places { // none has ended yet
			close(full)
		}
		mu.Unlock()
		select {
		case <-full: // the first calls wait until the maximum number of them runs
		case <-ctx.Done():
		}
		r.settle(l, bus.End{Done: r.wantMail(l, 0, l.Claim().Key[1:])})
		mu.Lock()
		defer mu.Unlock()
		if running--; done == mailboxes && running == 0 {
			stop()
		}
	})
	r.noError("claim each", err)
	wait()
	if most != places || done != mailboxes {
		r.Errorf("%d mailboxes were worked on, %d at once, want %d and %d", done, most, mailboxes, places)
	}
	r.wantNothingLeft()
}

func claimsUntilClosed(r *rig) {
	b := r.openGroup()
	var waiting sync.WaitGroup
	for range 3 {
		waiting.Go(func() {
			if leases, err := b.ClaimUpTo(r.Context(), inbound, 2); err == nil {
				r.Errorf("claimed %d mailboxes of a closed bus", len(leases))
			}
		})
	}
	r.noError("close", r.Close())
	waiting.Wait()
	_, err := b.ClaimUpTo(r.Context(), inbound, 2)
	r.wantError("claim", err, bus.ErrClosed)
}
