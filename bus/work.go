package bus

import (
	"context"
	"errors"
	"sync"
	"time"
)

// maxIdleWorkers is how many goroutines of ClaimEach at most wait for another lease after their work. New goroutines would
// have to grow their stacks again for each message.
const maxIdleWorkers = 8

// maxClaimBatch is the most mailboxes that ClaimEach leases in one call.
const maxClaimBatch = 16

// A GroupClaimer is a Bus that leases several mailboxes in one call. This is optional, and meant for
// buses whose claims go to a server, where single claims would wait for one another.
type GroupClaimer interface {
	// ClaimUpTo waits as Claim does until a mailbox can be claimed, and leases those that can be,
	// but not more than most. It returns at least one lease, or an error as Claim does.
	ClaimUpTo(ctx context.Context, topic Topic, most int) ([]Lease, error)
}

// ClaimEach claims mailboxes of a topic until ctx is done, and calls work for each lease
// concurrently, at most atOnce at a time. It returns as soon as it stops claiming: nil after ctx
// has ended, otherwise Claim's error. Calls of work may still run then; the returned function wait
// returns once they have ended.
func ClaimEach(ctx context.Context, b Bus, topic Topic, atOnce int, work func(Lease)) (wait func(), err error) {
	var running sync.WaitGroup
	// A place is taken before a lease is. Otherwise a lease could wait here for a place, although another
	// process has one free.
	places := make(places, atOnce)
	resting, handed := make(chan struct{}, maxIdleWorkers), make(chan Lease)
	defer close(handed)
	workAndFree := func(lease Lease) {
		defer places.free(1)
		work(lease)
	}
	workOn := func(lease Lease) {
		for open := true; open; {
			workAndFree(lease)
			select {
			case resting <- struct{}{}:
			default: // enough goroutines are idle already
				return
			}
			lease, open = <-handed
			<-resting
		}
	}
	claim, most := claimFunc(b)
	wanted := 1
	for {
		taken := places.take(ctx, wanted)
		if taken == 0 {
			return running.Wait, nil
		}
		leases, err := claim(ctx, topic, taken)
		places.free(taken - len(leases))
		if err != nil {
			if ctx.Err() != nil {
				err = nil
			}
			return running.Wait, err
		}
		for _, lease := range leases {
			select {
			case handed <- lease:
			default: // no goroutine is idle
				running.Go(func() { workOn(lease) })
			}
		}
		// A process takes several leases at a time only while more mail is due than it asked for: rare
		// mail is shared with the other processes one by one.
		wanted = len(leases)
		if wanted == taken {
			wanted = min(2*taken, most)
		}
	}
}

// claimFunc returns the function with which ClaimEach leases mailboxes, and the most that it leases at a
// time.
func claimFunc(b Bus) (claim func(context.Context, Topic, int) ([]Lease, error), most int) {
	if many, ok := b.(GroupClaimer); ok {
		return many.ClaimUpTo, maxClaimBatch
	}
	return func(ctx context.Context, topic Topic, _ int) ([]Lease, error) {
		lease, err := b.Claim(ctx, topic)
		if err != nil {
			return nil, err
		}
		return []Lease{lease}, nil
	}, 1
}

// places limits the concurrent calls of work: it holds a value for each.
type places chan struct{}

// take waits until a place is free, and takes up to most places. It takes none once ctx has ended.
func (p places) take(ctx context.Context, most int) (taken int) {
	select {
	case p <- struct{}{}:
		taken++
	case <-ctx.Done():
		return 0
	}
	for ; taken < most; taken++ {
		select {
		case p <- struct{}{}:
		default:
			return taken
		}
	}
	return taken
}

// free returns places.
func (p places) free(n int) {
	for range n {
		<-p
	}
}

// RetrySettle settles a lease as end says, and tries again until it is certain that the lease is over
// or ctx ends: the bus extends an unsettled lease, so no other process would get the mailbox. Each
// attempt takes at most tryFor. It calls failed with the error of each attempt after which this is not
// certain.
func RetrySettle(ctx context.Context, lease Lease, end End, tryFor time.Duration, failed func(error)) {
	const most = 5 * time.Second
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, most) {
		// An attempt does not end with ctx: what was done is settled once more.
		try, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryFor)
		err := lease.Settle(try, end)
		cancel()
		if err == nil || errors.Is(err, ErrFenced) || errors.Is(err, ErrClosed) {
			return
		}
		failed(err)
		select {
		case <-time.After(wait):
		case <-lease.Lost():
			return
		case <-ctx.Done():
			return
		}
	}
}

// WhileHeld calls work while this process holds a name (see Holder). The context that work gets ends
// when the name is lost. Whenever work returns nil, WhileHeld waits until it has the name again and
// calls work again. It returns nil after ctx has ended, otherwise the error of Hold or work.
func WhileHeld(ctx context.Context, h Holder, name string, work func(held context.Context) error) error {
	for {
		held, release, err := h.Hold(ctx, name)
		if err == nil {
			err = work(held)
			release()
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
