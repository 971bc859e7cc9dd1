package telegram

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parley/channels/backoff"
)

// stuckWait is the longest that a poller waits between two polls while messages cannot be
// stored. Meanwhile it does not have Telegram hold a poll: Telegram would answer at once,
// with the updates that are not stored yet.
const stuckWait = time.Second

// A backlog holds the updates that Telegram has given and that are not handled yet.
// Telegram keeps them as well: it gives at most a hundred from the first of them on, and
// that bounds the backlog too. A chat whose message cannot be stored holds up no other
// chat, unless a hundred updates have come since.
type backlog struct {
	publisher *publisher
	handling  sync.WaitGroup // a goroutine for each chat of waiting
	pause     backoff.Series // between two polls while something is open

	mu      sync.Mutex
	next    int64             // the first update that Telegram has not given yet; 0 is any
	open    map[int64]bool    // by update: given, and not handled
	waiting map[int64][]heard // by chat, in order: what that chat's goroutine has still to handle
	handled chan struct{}     // is closed once nothing is open
}

// newBacklog starts with nothing.
func newBacklog(p *publisher) *backlog {
	handled := make(chan struct{})
	close(handled)
	return &backlog{publisher: p, open: map[int64]bool{}, waiting: map[int64][]heard{}, handled: handled}
}

// add starts to handle the updates that were not given before, chats side by side and each
// chat in its order. What ctx's end leaves unhandled stays open.
func (b *backlog) add(ctx context.Context, batch []update) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range batch {
		if u.ID < b.next {
			continue
		}
		b.next = u.ID + 1
		h, ok, err := u.read()
		if err != nil {
			// Nothing that is tried again later would make it readable.
			b.publisher.channel.log.LogAttrs(ctx, slog.LevelError, "an update cannot be read and is left out", slog.Int64("update", u.ID))
		}
		if !ok {
			continue
		}
		if len(b.open) == 0 {
			b.handled = make(chan struct{})
		}
		b.open[u.ID] = true
		queue, worked := b.waiting[h.chat]
		b.waiting[h.chat] = append(queue, h)
		if !worked {
			b.handling.Go(func() { b.handleChat(ctx, h.chat) })
		}
	}
}

// handleChat publishes what waits in a chat, in order, until nothing waits or ctx is done.
func (b *backlog) handleChat(ctx context.Context, chat int64) {
	for {
		b.mu.Lock()
		queue := b.waiting[chat]
		if len(queue) == 0 {
			delete(b.waiting, chat)
			b.mu.Unlock()
			return
		}
		h := queue[0]
		b.waiting[chat] = queue[1:]
		b.mu.Unlock()

		if !b.publisher.publishHeard(ctx, h) {
			return // ctx has ended: the chat keeps its place in waiting, so that nothing overtakes h
		}
		b.mu.Lock()
		delete(b.open, h.update)
		if len(b.open) == 0 {
			close(b.handled)
		}
		b.mu.Unlock()
	}
}

// offset is the first update that is not handled: Telegram may forget all before it.
func (b *backlog) offset() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := b.next
	for id := range b.open {
		first = min(first, id)
	}
	return first
}

// forgetOffset accepts any update as new. The caller knows that nothing is open.
func (b *backlog) forgetOffset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = 0
}

// wait returns once everything is handled, or when it is time to ask for what else has
// come although something is still open.
func (b *backlog) wait(ctx context.Context) {
	b.mu.Lock()
	handled := b.handled
	b.mu.Unlock()
	pause := time.NewTimer(b.pause.Next(stuckWait))
	defer pause.Stop()
	select {
	case <-handled:
		b.pause.Reset()
	case <-pause.C:
	case <-ctx.Done():
	}
}

// empty reports whether everything is handled.
func (b *backlog) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open) == 0
}
