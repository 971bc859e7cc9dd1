package bustest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/bus"
)

// quotaPromises is for buses whose leases count what several processes do for a group.
var quotaPromises = []promise{
	{"bounds how many leases work for a group", countsWorking},
	{"bounds what begins within an hour, each id once, and says when the next may", countsBegun},
	{"counts what is resumed, whatever the bounds say", countsResumed},
	{"counts a lease for one group at a time", countsOneGroup},
	{"counts over all processes, and a lease that its process has lost no more", countsInFleet},
}

// begin counts the id as begun under a lease, for the group "g", with these bounds.
func (r *rig) begin(l bus.QuotaLease, id string, atOnce, hour int) error {
	return l.Begin(r.Context(), bus.Quota{Group: "g", ID: id, AtOnce: atOnce, Hour: hour})
}

// quotaLeases opens a bus, and claims mailboxes with those keys.
func (r *rig) quotaLeases(o Options, keys ...string) (all []bus.QuotaLease) {
	r.Helper()
	r.open(o)
	for _, key := range keys {
		r.publish(key, key)
		all = append(all, r.quotaLease(r.Bus))
	}
	return all
}

func (r *rig) quotaLease(b Bus) bus.QuotaLease {
	r.Helper()
	l, ok := r.claimOf(b, inbound).(bus.QuotaLease)
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
	// Somebody who claims takes over what the other has lost.
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	l, err := r.Claim(ctx, inbound)
	r.noError("claim", err)
	r.noError("once it is lost", r.begin(all[0], "2", 1, 2))
	if _, over := errors.AsType[*bus.QuotaError](r.begin(l.(bus.QuotaLease), "3", 9, 2)); !over {
		r.Error("what has begun in another process is not counted")
	}
	r.noError("what it had begun", r.begin(l.(bus.QuotaLease), "1", 9, 2))
}
