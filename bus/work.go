package bus

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ClaimEach claims mailboxes of a topic until ctx is done, and gives each lease to
// work in a goroutine of its own, at most atOnce at a time. It returns as soon as
// it claims no more: nil after ctx has ended, else what Claim returned. Work may
// still go on then; wait returns once all of it is over.
func ClaimEach(ctx context.Context, b Bus, topic Topic, atOnce int, work func(Lease)) (wait func(), err error) {
	var running sync.WaitGroup
	// A place is taken before a lease is: a lease that waited for one would be kept
	// from another process that has room.
	places := make(chan struct{}, atOnce)
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
		running.Go(func() {
			defer func() { <-places }()
			work(lease)
		})
	}
}

// RetrySettle settles a lease, again and again while that fails, until it is
// certain that the lease is over or ctx ends: the bus goes on extending a lease that
// nobody settles, and nobody else would get the mailbox. Each try takes at most
// tryFor. A failure that is followed by another try goes to failed first.
func RetrySettle(ctx context.Context, lease Lease, end End, tryFor time.Duration, failed func(error)) {
	const most = 5 * time.Second
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, most) {
		// A try is not cut off with ctx: whatever was done is settled once more.
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

// WhileHeld does work while this process holds a name. Held ends with the hold; if that
// was lost to another process, WhileHeld waits for the name and does the work again. It
// returns nil after ctx has ended, else what Hold or work returned.
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
