package redisbus

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus"
)

const (
	watcherEvents = 4096
	// feedLingers is for how long a feed is listened to after its last watcher has left.
	feedLingers = 5 * time.Second
)

// events carries events. All watchers of this process share one connection, and
// those of a feed one subscription.
type events struct {
	ring   *ring
	missed atomic.Uint64 // events that some watcher was too slow for
	purges atomic.Uint64 // how often events were forgotten
	pubsub *redis.PubSub

	wire sync.Mutex // held while subscriptions are written, so that they are in order
	mu   sync.Mutex // taken after wire
	// By the name of the channel.
	feeds      map[string]*feed
	forgetAcks map[string]chan struct{} // that this process waits to hear of, by their ids
}

// A feed is what this process listens to.
type feed struct {
	confirmed  chan struct{} // closed once the server has confirmed it
	subscribed bool
	watchers   map[*watcher]bool
	left       time.Time // when the last watcher did
}

func newEvents(pubsub *redis.PubSub) *events {
	return &events{ring: newRing(), pubsub: pubsub, feeds: map[string]*feed{}, forgetAcks: map[string]chan struct{}{}}
}

// A watcher is a subscription. What it does not fetch in time it loses.
type watcher struct {
	mu    sync.Mutex
	past  []bus.Event   // what comes before queue
	queue []bus.Event   // from the oldest on; one without an id says that some are missing
	news  chan struct{} // has a value when there is something in it
}

// push adds events; it returns how many are lost to it.
func (w *watcher) push(e bus.Event) (lost uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == watcherEvents {
		// The second one's place is taken by the news that some are missing.
		if w.queue[0].ID != 0 {
			lost++
		}
		w.queue = w.queue[1:]
		if w.queue[0].ID != 0 {
			lost++
		}
		w.queue[0] = bus.Event{}
	}
	w.queue = append(w.queue, e)
	select {
	case w.news <- struct{}{}:
	default: // it is known
	}
	return lost
}

func (w *watcher) pop() (bus.Event, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from := &w.queue
	if len(w.past) > 0 {
		from = &w.past
	}
	if len(*from) == 0 {
		*from = nil
		return bus.Event{}, false
	}
	e := (*from)[0]
	(*from)[0] = bus.Event{}
	*from = (*from)[1:]
	return e, true
}

// Subscribe implements bus.Events. Of sessions the last few thousand events can
// be read again, for an hour after the last; of channels none.
func (b *Bus) Subscribe(ctx context.Context, name bus.Feed, after uint64) (iter.Seq2[bus.Event, error], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if b.isClosed() {
		return nil, bus.ErrClosed
	}
	w := &watcher{news: make(chan struct{}, 1)}
	channel := b.keys.channel(name)
	f, fresh := b.events.enter(channel, w)
	if fresh {
		b.spawn(func() { b.events.subscribe(channel) }) // which may have to wait for a connection
	}
	leave := context.AfterFunc(ctx, func() { b.events.leave(f, w) })
	abandon := func(err error) (iter.Seq2[bus.Event, error], error) {
		if leave() {
			b.events.leave(f, w)
		}
		return nil, err
	}
	select {
	case <-b.events.confirmed(f):
	case <-ctx.Done():
		return abandon(ctx.Err())
	case <-b.closed:
		return abandon(bus.ErrClosed)
	}
	if after != 0 {
		purges := b.events.purges.Load()
		past, err := b.past(ctx, name, after)
		if err == nil && !b.events.remember(w, past, purges) {
			err = bus.ErrGone
		}
		if err != nil {
			return abandon(err)
		}
	}
	return b.follow(ctx, w, after), nil
}

// past reads the events after an id. All are still held if that one is.
func (b *Bus) past(ctx context.Context, name bus.Feed, after uint64) ([]bus.Event, error) {
	var list []redis.XMessage
	var err error
	for retry := backoff(0); ; {
		list, err = b.client.XRange(ctx, b.keys.stream(name), strconv.FormatUint(after, 10), "+").Result()
		if err == nil {
			break
		}
		select {
		case <-time.After(retry.next()):
		case <-ctx.Done():
			return nil, fmt.Errorf("read events: %w", ctx.Err())
		case <-b.closed:
			return nil, bus.ErrClosed
		}
	}
	past := make([]bus.Event, 0, len(list))
	for _, x := range list {
		text, _ := x.Values["e"].(string)
		number, _, _ := strings.Cut(x.ID, "-")
		id, err := strconv.ParseUint(number, 10, 64)
		if err != nil || text == "" {
			return nil, bus.ErrGone
		}
		e, err := decodeEvent(id, text)
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		past = append(past, e)
	}
	if len(past) == 0 || past[0].ID != after {
		return nil, bus.ErrGone
	}
	return past[1:], nil
}

// follow yields what is past, then what comes. What is in both is yielded once.
func (b *Bus) follow(ctx context.Context, w *watcher, last uint64) iter.Seq2[bus.Event, error] {
	return func(yield func(bus.Event, error) bool) {
		for ctx.Err() == nil {
			e, ok := w.pop()
			switch {
			case !ok:
				select {
				case <-w.news:
				case <-ctx.Done():
				case <-b.closed:
					yield(bus.Event{}, bus.ErrClosed)
					return
				}
			case e.ID == 0:
				if !yield(bus.Event{}, bus.ErrGone) {
					return
				}
			case e.ID > last:
				last = e.ID
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// enter adds a watcher to a feed; one that is fresh has to be subscribed to.
func (s *events) enter(channel string, w *watcher) (f *feed, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f = s.feeds[channel]
	if fresh = f == nil; fresh {
		f = &feed{confirmed: make(chan struct{}), watchers: map[*watcher]bool{}}
		s.feeds[channel] = f
	}
	f.watchers[w] = true
	return f, fresh
}

// subscribe comes after an earlier subscription to the same channel was ended.
func (s *events) subscribe(channel string) {
	s.wire.Lock()
	defer s.wire.Unlock()
	// If it fails, the next connection begins with it.
	_ = s.pubsub.Subscribe(context.Background(), channel)
}

func (s *events) leave(f *feed, w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(f.watchers, w)
	f.left = time.Now()
}

func (s *events) confirmed(f *feed) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f.confirmed
}

// tidy ends subscriptions that nobody has used for a while. Only one that stands
// is ended, so that a later confirmation is never that of an earlier request.
func (s *events) tidy() {
	s.wire.Lock()
	defer s.wire.Unlock()
	var idle []string
	s.mu.Lock()
	for channel, f := range s.feeds {
		if f.subscribed && len(f.watchers) == 0 && time.Since(f.left) > feedLingers {
			idle = append(idle, channel)
			delete(s.feeds, channel)
		}
	}
	s.mu.Unlock()
	if len(idle) > 0 {
		_ = s.pubsub.Unsubscribe(context.Background(), idle...) // as above
	}
}

func (s *events) close() { _ = s.pubsub.Close() } // there is nothing to be lost any more
