package redisbus

import (
	"context"
	"crypto/rand"
	"encoding/json"
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

// Forget implements bus.Forgetter: it removes events, then mail, and dead letters last.
func (b *Bus) Forget(ctx context.Context, match func(bus.Topic, bus.Message) bool, sessions ...string) (done bus.Forgotten, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("forget: %w", b.closedOr(err))
		}
	}()
	if len(sessions) > 0 {
		if err := b.forgetEvents(ctx, sessions); err != nil {
			return done, err
		}
	}
	now, err := b.now(ctx)
	if err != nil {
		return done, err
	}
	topics, err := b.Topics(ctx)
	if err != nil {
		return done, err
	}
	for _, topic := range topics {
		k := b.keys.topic(topic)
		for page, err := range b.mailboxPages(ctx, &k) {
			if err != nil {
				return done, err
			}
			for pair := range slices.Chunk(page, 2) {
				if err := b.forgetMail(ctx, &k, pair[0], now, match, &done); err != nil {
					return done, err
				}
			}
		}
	}
	// The dead letters come last: a holder may have turned a letter into one while the
	// mailboxes were searched.
	for _, topic := range topics {
		if err := b.forgetDead(ctx, topic, match, &done); err != nil {
			return done, err
		}
	}
	return done, nil
}

// forgetMail removes from one mailbox the messages that were published up to the time upto and for
// which match returns true, and counts them in done. The script finds a message by its text,
// because an earlier run of the script may have given it another number.
func (b *Bus) forgetMail(
	ctx context.Context, k *topicKeys, key string, upto int64, match func(bus.Topic, bus.Message) bool, done *bus.Forgotten,
) error {
	var picked []any
	for after := int64(0); ; {
		r, err := b.batcher.run(ctx, readScript, []string{k.state, k.heads, k.mail(key)}, key, "", after)
		if err != nil {
			return err
		}
		first, texts := r.at(0).number(), r.at(2).list()
		after = first + int64(len(texts)) - 1
		newer := false
		for i, text := range texts {
			m, _, err := readLetter(reply{text}.text(), key, first+int64(i))
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
	keys := []string{b.keys.clock(), k.state, k.due, k.leased, k.wake, k.heads, k.mail(key)}
	for some := range slices.Chunk(picked, forgetAtOnce) {
		args := append([]any{key, b.keys.notes(""), windDown.Microseconds(), taken}, some...)
		r, err := b.batcher.run(ctx, forgetScript, keys, args...)
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
func (b *Bus) forgetDead(ctx context.Context, topic bus.Topic, match func(bus.Topic, bus.Message) bool, done *bus.Forgotten) error {
	var picked []string
	for after := ""; ; {
		list, err := b.DeadLetters(ctx, topic, after, deadAtOnce)
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
	k := b.keys.topic(topic)
	for _, id := range picked {
		r, err := b.batcher.run(ctx, dropScript, []string{k.dead, k.graves}, id)
		if err != nil {
			return err
		}
		done.DeadLetters += int(r.number())
	}
	return nil
}

// A forgetRequest asks all processes to forget the events of sessions.
type forgetRequest struct {
	ID       string   `json:"id"`
	By       string   `json:"by"` // the process that asks
	Sessions []string `json:"sessions"`
}

// forgetEvents makes every process forget the events of sessions, and waits until
// this process has received its own request. Redis delivers messages in order, so by
// then this process has received, and now forgets, all that was emitted before.
func (b *Bus) forgetEvents(ctx context.Context, sessions []string) error {
	o := forgetRequest{ID: rand.Text(), By: b.self, Sessions: sessions}
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	heard := b.events.expectForget(o.ID)
	defer b.events.dropExpectation(o.ID)
	if err := b.removeEvents(ctx, sessions); err != nil {
		return err
	}
	for {
		if err := b.client.Publish(ctx, b.keys.forgotten(), text).Err(); err != nil {
			return err
		}
		select {
		case <-heard:
			return nil
		case <-time.After(pollMost): // the connection broke and lost the request: send it again
		case <-ctx.Done():
			return ctx.Err()
		case <-b.closed:
			return bus.ErrClosed
		}
	}
}

// removeEvents removes the sessions' events from this process's buffer and from their
// streams in Redis. It waits for the batch that is being sent, which would otherwise
// add to the streams after they were deleted.
func (b *Bus) removeEvents(ctx context.Context, sessions []string) error {
	r := b.events.unsent
	r.sending.Lock()
	defer r.sending.Unlock()
	r.forget(sessions)
	streams := make([]string, len(sessions))
	for i, key := range sessions {
		streams[i] = b.keys.stream(bus.SessionFeed(key))
	}
	return b.client.Del(ctx, streams...).Err()
}

// handleForgetRequest forgets the events that a process of the fleet, perhaps this one, has
// asked all processes to forget.
func (b *Bus) handleForgetRequest(text string) {
	var o forgetRequest
	if json.Unmarshal([]byte(text), &o) != nil {
		return // no bus has sent this
	}
	b.events.forget(o, o.By == b.self)
	if o.By == b.self {
		return // this process has forgotten before it asked; what it has to send now is newer
	}
	b.spawn(func() {
		// This process may have added to the streams after the other one deleted them. If
		// this fails, the streams expire.
		_ = b.removeEvents(context.Background(), o.Sessions)
	})
}

// dropEvents removes the events of sessions from the buffer, and remembers that their feeds lack
// them.
func (r *eventBuffer) forget(sessions []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.events[:0]
	for i := range r.events {
		e := r.events[i]
		if !slices.Contains(sessions, e.Session) {
			kept = append(kept, e)
			continue
		}
		r.bytes -= eventBytes(&e)
		r.markGap(&e)
	}
	clear(r.events[len(kept):])
	r.events = kept
	r.wakeSender()
}

// expectForget returns a channel that is closed when this process has received its own
// request with that id.
func (s *events) expectForget(id string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	heard := make(chan struct{})
	s.forgetAcks[id] = heard
	return heard
}

// dropExpectation removes the channel that expectForget has made for an id.
func (s *events) dropExpectation(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.forgetAcks, id)
}

// dropEvents removes the events of sessions from the queues of this process's watchers. If this
// process had to send its own request twice, it receives it twice; it ignores the second,
// because newer events may have come in between.
func (s *events) forget(o forgetRequest, own bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	heard := s.forgetAcks[o.ID]
	if own && heard == nil {
		return
	}
	s.forgets.Add(1)
	for _, f := range s.feeds {
		for w := range f.watchers {
			w.dropEvents(o.Sessions)
		}
	}
	if heard != nil {
		close(heard)
		delete(s.forgetAcks, o.ID)
	}
}

// dropEvents removes the events of sessions from the watcher's queues.
func (w *watcher) dropEvents(sessions []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.past, w.queue = replaceByGaps(w.past, sessions), replaceByGaps(w.queue, sessions)
}

// replaceByGaps replaces the events of sessions by the sign that events are missing, one
// sign for several events in a row.
func replaceByGaps(list []bus.Event, sessions []string) []bus.Event {
	kept := list[:0]
	for _, e := range list {
		if slices.Contains(sessions, e.Session) {
			e = bus.Event{}
		}
		if e.ID != 0 || len(kept) == 0 || kept[len(kept)-1].ID != 0 {
			kept = append(kept, e)
		}
	}
	clear(list[len(kept):])
	return kept
}

// setPast gives a watcher the past events, which it should see first. forgets is the value
// that s.forgets had before they were read. If it has changed, setPast returns false: this
// process was asked to forget events meanwhile, and they may be among the past ones.
func (s *events) setPast(w *watcher, past []bus.Event, forgets uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.past = past
	return s.forgets.Load() == forgets
}
