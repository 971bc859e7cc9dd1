package bus

import (
	"context"
	"errors"
	"sync"
	"time"
)

// maxResting is how many goroutines wait for another lease after their work: a new one would have to
// grow its stack anew for each message.
const maxResting = 8

// ClaimEach claims mailboxes of a topic until ctx is done, and calls work for each lease beside the
// others, at most atOnce of them at a time. It returns as soon as it stops claiming:
// nil after ctx has ended, else Claim's error. Calls of work may still run then; the returned
// function wait returns once they have ended.
func ClaimEach(ctx context.Context, b Bus, topic Topic, atOnce int, work func(Lease)) (wait func(), err error) {
	var running sync.WaitGroup
	// A place is taken before a lease is: a lease that waited for a place would be kept
	// from another process that has one free.
	places := make(chan struct{}, atOnce)
	resting, handed := make(chan struct{}, maxResting), make(chan Lease)
	defer close(handed)
	workAndFree := func(lease Lease) {
		defer func() { <-places }()
		work(lease)
	}
	workOn := func(lease Lease) {
		for open := true; open; {
			workAndFree(lease)
			select {
			case resting <- struct{}{}:
			default: // enough others rest
				return
			}
			lease, open = <-handed
			<-resting
		}
	}
	for {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return running.Wait, nil
		}
		lease, err := b.Claim(ctx, topic)
		if err != nil {
			if ctx.Err() != nil {
				err = nil
			}
			return running.Wait, err
		}
		select {
		case handed <- lease:
		default: // nobody rests
			running.Go(func() { workOn(lease) })
		}
	}
}

// RetrySettle settles a lease as end says, and tries again until it is certain that the lease is
// over or ctx ends: the bus extends a lease that nobody settles, so nobody else would get the
// mailbox. Each attempt takes at most tryFor. After each failure that is followed by another
// attempt it calls failed with the error.
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

// WhileHeld calls work while this process is the one that holds a name (see Holder). The context
// that work gets ends when the name is lost; then WhileHeld waits until it has the name again and
// calls work again. It returns nil after ctx has ended, else the error of Hold or work.
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
