package server

import (
	"context"
	"errors"
	"time"

	"parley/bus"
)

// retryUntilDone does what may be repeated until it is done, until the bus refuses it,
// or until ctx ends: an outage of the bus or the store is waited for. Its error
// is the last one, so after ctx has ended it may have been done all the same.
func retryUntilDone(ctx context.Context, do func() error) error {
	const longest = time.Second
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, longest) {
		err := do()
		if err == nil || refusal(err) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

// refusal tells whether the bus has decided: what it will not take now it will
// not take a moment later.
func refusal(err error) bool {
	return errors.Is(err, bus.ErrFull) || errors.Is(err, bus.ErrInvalid) || errors.Is(err, bus.ErrClosed)
}
