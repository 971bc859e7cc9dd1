package redisbus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"parley/bus"
)

const (
	// windDown is how long a mailbox rests after it was taken from its holder. The holder
	// may be in the middle of a request to a platform; in this time the request ends and
	// its outcome is recorded.
	windDown     = 2 * time.Second
	forgetAtOnce = 64 // how many messages one run of the script removes at most
	deadAtOnce   = 16 // how many dead letters one call reads
)

// A forgetter removes the mail, dead letters and events that are to be erased.
type forgetter struct {
	*connection
	inspector *inspector
	dead      *deadLetters
	events    *events
}

// Forget implements bus.Forgetter: it removes events, then mail, and dead letters last.
func (f *forgetter) Forget(ctx context.Context, match func(bus.Topic, bus.Message) bool, sessions ...string) (done bus.Forgotten, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("forget: %w", f.closedOr(err))
		}
	}()
	if len(sessions) > 0 {
		if err := f.events.forgetEvents(ctx, sessions); err != nil {
			return done, err
		}
	}
	now, err := f.now(ctx)
	if err != nil {
		return done, err
	}
	topics, err := f.inspector.Topics(ctx)
	if err != nil {
		return done, err
	}
	for _, topic := range topics {
		k := f.keys.topic(topic)
		for page, err := range f.inspector.mailboxPages(ctx, &k) {
			if err != nil {
				return done, err
			}
			for pair := range slices.Chunk(page, 2) {
				if err := f.forgetMail(ctx, &k, pair[0], now, match, &done); err != nil {
					return done, err
				}
			}
		}
	}
	// The dead letters come last: a holder may have turned a message into one while the
	// mailboxes were searched.
	for _, topic := range topics {
		if err := f.forgetDead(ctx, topic, match, &done); err != nil {
			return done, err
		}
	}
	return done, nil
}

// forgetMail removes from one mailbox the messages that were published up to the time upto and for
// which match returns true, and counts them in done. The script finds a message by its text,
// because an earlier run of the script may have given it another number.
func (f *forgetter) forgetMail(
	ctx context.Context, k *topicKeys, key string, upto int64, match func(bus.Topic, bus.Message) bool, done *bus.Forgotten,
) error {
	var picked []any
	for after := int64(0); ; {
		r, err := f.batcher.run(ctx, readScript, []string{k.state, k.heads, k.mail(key)}, key, "", after)
		if err != nil {
			return err
		}
		first, texts := r.at(0).number(), r.at(2).list()
		after = first + int64(len(texts)) - 1
		newer := false
		for i, text := range texts {
			m, _, err := readMessage(reply{text}.text(), key, first+int64(i))
			if err != nil {
				return err
			}
			n, _, err := readNumbers(reply{text}.text(), 2)
			if err != nil {
				return err
			}
			if newer = n[1] > upto; newer {
				break
			}
			if match(k.name, m) {
				picked = append(picked, text)
			}
		}
		if newer || len(texts) == 0 {
			break
		}
	}
	taken := 0
	keys := []string{f.keys.clock(), k.state, k.due, k.leased, k.wake, k.heads, k.mail(key)}
	for some := range slices.Chunk(picked, forgetAtOnce) {
		args := append([]any{key, f.keys.notes(""), windDown.Microseconds(), taken}, some...)
		r, err := f.batcher.run(ctx, forgetScript, keys, args...)
		if err != nil {
			return err
		}
		done.Messages += int(r.at(0).number())
		if r.at(1).number() > 0 {
			taken = 1
		}
	}
	done.Leases += taken
	return nil
}

// forgetDead removes the dead letters of a topic for which match returns true, and counts them in
// done.
func (f *forgetter) forgetDead(ctx context.Context, topic bus.Topic, match func(bus.Topic, bus.Message) bool, done *bus.Forgotten) error {
	var picked []string
	for after := ""; ; {
		list, err := f.dead.DeadLetters(ctx, topic, after, deadAtOnce)
		if err != nil {
			return err
		}
		for _, d := range list {
			if after = d.Message.ID; match(topic, d.Message) {
				picked = append(picked, after)
			}
		}
		if len(list) < deadAtOnce {
			break
		}
	}
	k := f.keys.topic(topic)
	for _, id := range picked {
		r, err := f.batcher.run(ctx, dropScript, []string{k.dead, k.graves}, id)
		if err != nil {
			return err
		}
		done.DeadLetters += int(r.number())
	}
	if len(picked) > 0 {
		f.dead.emitter.Emit(bus.NewDeadLetterEvent(topic, "", "", bus.StateDropped))
	}
	return nil
}
