package redisbus

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/bus"
	"parley/bus/redisbus/unsent"
	"parley/tools/plainjson"
)

const (
	maxStreamEvents = 4096      // about how many events of each session, and of the server, Redis keeps
	streamExpiry    = time.Hour // how long it keeps them after the newest of them
	// emitEvery is the wait between two calls that send events. The events that many turns emit
	// meanwhile are sent in one call.
	emitEvery = 2 * time.Millisecond
)

// An emitter sends the events of this process.
type emitter struct {
	*connection
	buffer  *unsent.Buffer
	server  *emitter   // sends the events of the server's feed, if its shard is another one; nil otherwise
	sending sync.Mutex // held while a batch is being sent
}

// Emit implements bus.Events: it buffers the event, to be sent soon.
func (m *emitter) Emit(e bus.Event) {
	if m.server == nil {
		m.buffer.Add(e, unsent.AllFeeds)
		return
	}
	if news, ok := e.ForServer(); ok {
		m.server.buffer.Add(news, unsent.ServerFeed)
	}
	if !e.IsServersOnly() {
		m.buffer.Add(e, unsent.OwnFeeds)
	}
}

// sendEvents sends emitted events until ctx is done. It does not send a batch again if its outcome is unknown: a
// watcher that learns of a gap can read what is missing, but cannot recognize an event that comes twice.
func (m *emitter) sendEvents(ctx context.Context) {
	var retry backoff
	for {
		select {
		case <-m.buffer.Filled():
		case <-ctx.Done():
			return
		}
		wait := emitEvery
		if m.sendBatchWhole(ctx) {
			retry = 0
		} else {
			wait = retry.next()
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// sendBatchWhole does what sendBatch does. If the bus is closed meanwhile, the batch still has
// closeTimeout to finish, because one that is cut off is lost: its outcome is unknown, and
// nobody would send it again.
func (m *emitter) sendBatchWhole(ctx context.Context) (sent bool) {
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		late := time.AfterFunc(closeTimeout, cancel)
		context.AfterFunc(whole, func() { late.Stop() })
	})
	defer stop()
	return m.sendBatch(whole)
}

// sendBatch sends a batch, if there is one. It returns false if that failed; then the batch is lost.
func (m *emitter) sendBatch(ctx context.Context) (sent bool) {
	m.sending.Lock()
	defer m.sending.Unlock()
	batch := m.buffer.NextBatch()
	if len(batch) == 0 {
		return true
	}
	keys, args := m.emitCall(batch)
	if _, err := m.batcher.run(ctx, emitScript, keys, args...); err != nil {
		m.buffer.LoseBatch(batch)
		return false
	}
	return true
}

// sendLast sends the last events while the bus is being closed, such as the ends of turns. It waits
// for the batch that sendEvents is sending too, which may still be in the batcher's queue; sendEvents
// must have been told to end, so that this wait is short.
func (m *emitter) sendLast() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for m.sendBatch(ctx) && !m.hasSentAll() {
		continue
	}
}

// hasSentAll reports whether no event waits. It waits for a batch that is being sent.
func (m *emitter) hasSentAll() bool {
	m.sending.Lock()
	defer m.sending.Unlock()
	return m.buffer.Len() == 0
}

// emitCall returns the keys and arguments with which the emit script sends a batch.
func (m *emitter) emitCall(batch []unsent.Item) (keys []string, args []any) {
	keys = []string{m.keys.clock()}
	var channels, events []any
	streams, places := map[bus.Feed]int{}, map[bus.Feed]int{}
	channelOf := func(feed bus.Feed) int {
		if places[feed] == 0 {
			channels = append(channels, m.keys.channel(feed))
			places[feed] = len(channels)
		}
		return places[feed]
	}
	for _, x := range batch {
		stream, stored, channel := 0, 0, 0
		if feed := x.StoredFeed(); feed != "" {
			stored = channelOf(feed)
			if stream = streams[feed]; stream == 0 {
				keys = append(keys, m.keys.stream(feed))
				stream = len(keys) - 1
				streams[feed] = stream
			}
		}
		if x.Channel != "" {
			channel = channelOf(bus.ChannelFeed(x.Channel))
		}
		events = append(events, stream, stored, channel, m.encodeEvent(x.Event))
	}
	return keys, slices.Concat([]any{streamExpiry.Milliseconds(), maxStreamEvents, len(channels)}, channels, events)
}

func (m *emitter) encodeEvent(e *bus.Event) []byte {
	if e == nil {
		return nil
	}
	text, err := plainjson.Marshal(wireEvent{Type: e.Type, Session: e.Session, Route: e.Route, Event: *e})
	if err != nil {
		m.log.Error("event not encoded", slog.String("type", e.Type), slog.Any("error", err))
	}
	return text
}

// removeEvents removes the sessions' events from this process's buffer and from Redis: it deletes the
// sessions' streams, and that of the server, which contains some of them. It waits for the batch that is
// being sent, which would otherwise add to the streams after they were deleted.
func (m *emitter) removeEvents(ctx context.Context, sessions []string) error {
	m.sending.Lock()
	defer m.sending.Unlock()
	m.buffer.Forget(sessions)
	streams := make([]string, len(sessions))
	for i, key := range sessions {
		streams[i] = m.keys.stream(bus.SessionFeed(key))
	}
	streams = append(streams, m.keys.stream(bus.ServerFeed()))
	return m.client.Del(ctx, streams...).Err()
}
