package redisbus

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus"
)

const (
	maxWatcherEvents = 4096 // how many events may wait for one watcher
	// feedLingers is how long a subscription is kept after its last watcher has left.
	feedLingers = 5 * time.Second
)

// events receives events. All watchers of this process share one
// connection, and the watchers of one feed share one subscription.
type events struct {
	*connection
	emitter *emitter
	lost    atomic.Uint64 // events for which some watcher was too slow
	forgets atomic.Uint64 // how many requests to forget events this process has handled
	pubsub  *redis.PubSub

	// subscribing is held while SUBSCRIBE or UNSUBSCRIBE is written, so that the server
	// gets them in the order in which feeds were changed. It is taken before mu.
	subscribing sync.Mutex

	mu    sync.Mutex
	feeds map[string]*feed // by the names of their Redis channels
	// forgetAcks are channels that are closed when this process receives its own request to
	// forget; the key is the request's id.
	forgetAcks map[string]chan struct{}
}

// A feed is a subscription of this process, shared by the feed's watchers.
type feed struct {
	confirmed  chan struct{} // closed when the server has confirmed the subscription
	subscribed bool          // whether the server has confirmed the subscription
	watchers   map[*watcher]bool
	lastLeft   time.Time // when a watcher last left
}

func newEvents(c *connection, m *emitter) *events {
	pubsub := c.client.Subscribe(context.Background(), c.keys.notes(c.self), c.keys.forgotten())
	return &events{connection: c, emitter: m, pubsub: pubsub, feeds: map[string]*feed{}, forgetAcks: map[string]chan struct{}{}}
}

// A watcher is one caller of Subscribe. If it reads too slowly, the oldest events in
// its queue are dropped.
type watcher struct {
	joined bool // whether it watches the feeds of several shards, whose ids are not in one order

	mu     sync.Mutex
	past   []bus.Event   // events that Subscribe read from the stream; they come before queue
	queue  []bus.Event   // the oldest first; an event without an id marks a gap
	filled chan struct{} // has a value when something was added
}

// push adds an event to the watcher's queue, and returns how many others it dropped to make room.
func (w *watcher) push(e bus.Event) (lost uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == maxWatcherEvents {
		// The first event goes, and the second is replaced by the sign that some are missing.
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
	case w.filled <- struct{}{}:
	default: // the reader is signalled already
	}
	return lost
}

// pop removes the next event from past or queue and returns it; false if there is none.
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

// Subscribe implements bus.Events: it yields the past events after that id, then new ones. The last
// few thousand events of a session, and of the server, can be read again until an hour after the last
// of them; those of a chat channel cannot.
func (s *events) Subscribe(ctx context.Context, name bus.Feed, after uint64) (iter.Seq2[bus.Event, error], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.isClosed() {
		return nil, bus.ErrClosed
	}
	w := &watcher{filled: make(chan struct{}, 1)}
	abandon, err := s.watch(ctx, name, w)
	if err != nil {
		return nil, err
	}
	if after != 0 {
		purges := s.forgets.Load()
		past, err := s.pastEvents(ctx, name, after)
		if err == nil && !s.setPast(w, past, purges) {
			err = bus.ErrGone
		}
		if err != nil {
			abandon()
			return nil, err
		}
	}
	return s.follow(ctx, w, after), nil
}

// watch adds a watcher to a feed until ctx is done, and waits until the feed is subscribed. abandon removes it earlier.
func (s *events) watch(ctx context.Context, name bus.Feed, w *watcher) (abandon func(), err error) {
	channel := s.keys.channel(name)
	f, fresh := s.addWatcher(channel, w)
	if fresh {
		s.spawn(func() { s.subscribe(channel) }) // the call may have to wait for a connection
	}
	leave := context.AfterFunc(ctx, func() { s.removeWatcher(f, w) })
	abandon = func() {
		if leave() {
			s.removeWatcher(f, w)
		}
	}
	select {
	case <-s.confirmation(f):
		return abandon, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.closed:
		err = bus.ErrClosed
	}
	abandon()
	return nil, err
}

// pastEvents reads the events after an id from the feed's stream. Streams are trimmed at the beginning,
// so a stream that still has the event with that id has all later ones.
func (s *events) pastEvents(ctx context.Context, name bus.Feed, after uint64) ([]bus.Event, error) {
	past, gap, err := s.readStream(ctx, name, strconv.FormatUint(after, 10))
	if err != nil {
		return nil, err
	}
	if gap || len(past) == 0 || past[0].ID != after {
		return nil, bus.ErrGone
	}
	return past[1:], nil
}

// HeldEvents implements bus.History.
func (s *events) HeldEvents(ctx context.Context, name bus.Feed) ([]bus.Event, error) {
	held, _, err := s.readStream(ctx, name, "-")
	return held, err
}

// readStream reads the events from an id on from a feed's stream. If some are missing there, gap is true,
// and it returns those that follow the last gap.
func (s *events) readStream(ctx context.Context, name bus.Feed, from string) (read []bus.Event, gap bool, err error) {
	var list []redis.XMessage
	for retry := backoff(0); ; {
		list, err = s.client.XRange(ctx, s.keys.stream(name), from, "+").Result()
		if err == nil {
			break
		}
		select {
		case <-time.After(retry.next()):
		case <-ctx.Done():
			return nil, false, fmt.Errorf("read events: %w", ctx.Err())
		case <-s.closed:
			return nil, false, bus.ErrClosed
		}
	}
	read = make([]bus.Event, 0, len(list))
	for _, x := range list {
		text, _ := x.Values["e"].(string)
		number, _, _ := strings.Cut(x.ID, "-")
		id, err := strconv.ParseUint(number, 10, 64)
		if err != nil || text == "" {
			read, gap = read[:0], true
			continue
		}
		e, err := decodeEvent(id, text)
		if err != nil {
			return nil, false, fmt.Errorf("read events: %w", err)
		}
		read = append(read, e)
	}
	return read, gap, nil
}

// follow yields the past events, then new ones. An event that was both read from the stream
// and received by the subscription is yielded once.
func (s *events) follow(ctx context.Context, w *watcher, last uint64) iter.Seq2[bus.Event, error] {
	return func(yield func(bus.Event, error) bool) {
		for ctx.Err() == nil {
			e, ok := w.pop()
			switch {
			case !ok:
				select {
				case <-w.filled:
				case <-ctx.Done():
				case <-s.closed:
					yield(bus.Event{}, bus.ErrClosed)
					return
				}
			case e.ID == 0:
				if !yield(bus.Event{}, bus.ErrGone) {
					return
				}
			case e.ID > last || w.joined:
				last = e.ID
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// addWatcher adds a watcher to a feed and returns the feed. fresh says that the feed is new,
// and the caller has to subscribe to it.
func (s *events) addWatcher(channel string, w *watcher) (f *feed, fresh bool) {
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

// subscribe asks the server to send this process what is published on a Redis channel. It first
// waits until dropIdleFeeds has written its UNSUBSCRIBE, which may be for the same channel.
func (s *events) subscribe(channel string) {
	s.subscribing.Lock()
	defer s.subscribing.Unlock()
	// If it fails, the client subscribes again when it has a new connection.
	_ = s.pubsub.Subscribe(context.Background(), channel)
}

func (s *events) removeWatcher(f *feed, w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(f.watchers, w)
	f.lastLeft = time.Now()
}

// confirmation returns a channel that is closed when the server has confirmed the feed's
// subscription on the present connection.
func (s *events) confirmation(f *feed) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f.confirmed
}

// dropIdleFeeds ends subscriptions that nobody has watched for a while, but only confirmed
// ones: a confirmation that arrived after the end would be taken for that of the channel's
// next subscription.
func (s *events) dropIdleFeeds() {
	s.subscribing.Lock()
	defer s.subscribing.Unlock()
	var idle []string
	s.mu.Lock()
	for channel, f := range s.feeds {
		if f.subscribed && len(f.watchers) == 0 && time.Since(f.lastLeft) > feedLingers {
			idle = append(idle, channel)
			delete(s.feeds, channel)
		}
	}
	s.mu.Unlock()
	if len(idle) > 0 {
		_ = s.pubsub.Unsubscribe(context.Background(), idle...) // a new connection begins without these subscriptions
	}
}

func (s *events) close() { _ = s.pubsub.Close() } // called when nobody watches anymore

// Dropped returns how many events this process has lost: those that it could not send, and
// those that a watcher was too slow to read.
func (s *events) Dropped() uint64 {
	return s.emitter.buffer.Lost() + s.lost.Load()
}

// confirm handles the server's confirmation of a subscription.
func (s *events) confirm(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.feeds[channel]; f != nil && !f.subscribed {
		f.subscribed = true
		close(f.confirmed)
	}
}

// handleBrokenConnection records that the connection for events is broken. What is published from then on
// is lost, so each watcher gets the sign that events are missing. New subscribers have to wait until the
// server confirms the subscription on the next connection.
func (s *events) handleBrokenConnection() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeds {
		if !f.subscribed {
			continue
		}
		f.subscribed = false
		f.confirmed = make(chan struct{})
		for w := range f.watchers {
			s.lost.Add(w.push(bus.Event{}))
		}
	}
}

// deliver passes an event from a Redis channel to the watchers of its feed.
func (s *events) deliver(channel, payload string) {
	number, text, _ := strings.Cut(payload, " ")
	id, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return // no bus has sent this
	}
	e := bus.Event{} // the sign that events are missing
	if text != "" {
		if e, err = decodeEvent(id, text); err != nil {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.feeds[channel]
	if f == nil {
		return
	}
	for w := range f.watchers {
		s.lost.Add(w.push(e))
	}
}

// dropEvents replaces the events of sessions in the watcher's queues by signs that events are missing.
func (w *watcher) dropEvents(sessions []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.past, w.queue = replaceByGaps(w.past, sessions), replaceByGaps(w.queue, sessions)
}

// replaceByGaps replaces the events of sessions by the sign that events are missing. Several events in a
// row are replaced by one sign.
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
