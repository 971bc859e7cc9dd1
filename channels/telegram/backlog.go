package telegram

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parley/channels/backoff"
)

// maxStuckWait is the longest wait between two polls while messages can't be stored. Until they are, Telegram is
// not asked to hold a poll open: it would answer immediately, with the updates that are not stored yet.
const maxStuckWait = time.Second

// A backlog holds the updates that Telegram has delivered and that have not been handled yet. Telegram keeps them
// as well: each poll gets at most a hundred updates, counted from the first one in the backlog, so the backlog
// never holds more than that. A chat whose message can't be stored does not delay other chats until a hundred
// updates have come after that message.
type backlog struct {
	publisher *publisher
	handling  sync.WaitGroup // one goroutine for each chat in waiting
	pause     backoff.Series // the growing wait between two polls while updates are unhandled

	mu         sync.Mutex
	nextUpdate int64                     // the id of the first update that Telegram has not delivered yet; 0 accepts any
	unhandled  map[int64]bool            // by id: updates that were delivered and not handled
	waiting    map[int64][]updateContent // by chat: what its goroutine still has to handle, in order
	allHandled chan struct{}             // closed once no update is unhandled
}

// newBacklog makes an empty backlog that publishes through p.
func newBacklog(p *publisher) *backlog {
	handled := make(chan struct{})
	close(handled)
	return &backlog{publisher: p, unhandled: map[int64]bool{}, waiting: map[int64][]updateContent{}, allHandled: handled}
}

// add starts handling the updates that were not delivered before: chats concurrently, each chat's updates in order.
// Updates that have not been handled when ctx ends stay unhandled.
func (b *backlog) add(ctx context.Context, batch []update) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range batch {
		if u.ID < b.nextUpdate {
			continue
		}
		b.nextUpdate = u.ID + 1
		h, ok, err := u.decode()
		if err != nil {
			// Decoding it again later would fail the same way.
			b.publisher.log.LogAttrs(ctx, slog.LevelError, "an update cannot be read and is left out", slog.Int64("update", u.ID))
		}
		if !ok {
			continue
		}
		if len(b.unhandled) == 0 {
			b.allHandled = make(chan struct{})
		}
		b.unhandled[u.ID] = true
		queue, worked := b.waiting[h.chat]
		b.waiting[h.chat] = append(queue, h)
		if !worked {
			b.handling.Go(func() { b.handleChat(ctx, h.chat) })
		}
	}
}

// handleChat publishes the updates waiting in a chat, in order, until none is left or ctx is done.
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

		if !b.publisher.publishReceived(ctx, h) {
			return // ctx has ended: the chat keeps its place in waiting, so that nothing overtakes h
		}
		b.mu.Lock()
		delete(b.unhandled, h.update)
		if len(b.unhandled) == 0 {
			close(b.allHandled)
		}
		b.mu.Unlock()
	}
}

// offset returns the id of the first unhandled update: Telegram may forget all earlier ones.
func (b *backlog) offset() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := b.nextUpdate
	for id := range b.unhandled {
		first = min(first, id)
	}
	return first
}

// forgetOffset makes the backlog accept any update as new. The caller knows that no update is unhandled.
func (b *backlog) forgetOffset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nextUpdate = 0
}

// waitForNextPoll returns once all updates have been handled, or when it is time to poll for more although some
// have not.
func (b *backlog) waitForNextPoll(ctx context.Context) {
	b.mu.Lock()
	handled := b.allHandled
	b.mu.Unlock()
	pause := time.NewTimer(b.pause.Next(maxStuckWait))
	defer pause.Stop()
	select {
	case <-handled:
		b.pause.Reset()
	case <-pause.C:
	case <-ctx.Done():
	}
}

// isEmpty reports whether all updates that Telegram has delivered have been handled.
func (b *backlog) isEmpty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.unhandled) == 0
}
