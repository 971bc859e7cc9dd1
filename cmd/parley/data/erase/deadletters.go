package erase

import (
	"context"
	"errors"
	"strings"

	"parley/bus"
)

// dropDeadLetters deletes the dead letters for which match returns true, and returns how many there
// were.
func (e *Eraser) dropDeadLetters(ctx context.Context, match func(bus.DeadLetter) bool) (n int, err error) {
	topics, err := e.cfg.Bus.Topics(ctx)
	if err != nil {
		return 0, err
	}
	for _, topic := range topics {
		for after, more := "", true; more; {
			page, err := e.cfg.Bus.DeadLetters(ctx, topic, after, pageSize)
			if err != nil {
				return n, err
			}
			kept := ""
			for _, d := range page {
				if !match(d) {
					kept = d.Message.ID
					continue
				}
				if err := e.releaseFiles(d); err != nil {
					return n, err
				}
				if err := e.cfg.Bus.Drop(ctx, topic, d.Message.ID); err != nil && !errors.Is(err, bus.ErrNotFound) {
					return n, err
				}
				n++
			}
			// The next page begins after the last letter that was kept, because the bus cannot
			// locate one that was dropped.
			if kept != "" {
				after = kept
			}
			more = len(page) == pageSize
		}
	}
	return n, nil
}

// pageSize is how many dead letters, sessions or chats this package reads at a time.
const pageSize = 100

// releaseFiles releases the files that a dead letter would have sent, before the letter is dropped.
func (e *Eraser) releaseFiles(d bus.DeadLetter) error {
	if !strings.HasPrefix(string(d.Topic), string(bus.OutboundTopic(""))) {
		return nil
	}
	out, err := bus.DecodeOutbound(d.Message.Body)
	if err != nil || len(out.Files) == 0 {
		return nil //nolint:nilerr // a letter that cannot be decoded names no files
	}
	return e.cfg.Files.Release(d.Message.ID, out.Files)
}
