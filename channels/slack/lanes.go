package slack

import (
	"context"
	"slices"
	"sync"
	"time"

	"parley/channels/backoff"
)

// reorderTime is how long a message waits for an earlier one of its chat, which
// the other socket may bring a moment later.
const reorderTime = 25 * time.Millisecond

// An item is one thing that a lane has to do: publish a message, or run a task.
type item struct {
	m    *message
	ack  func()                // tells Slack that the message has arrived
	task func(context.Context) // run instead, if m is nil
	ts   string                // Slack's time of it, by which it has its place; "" keeps the one that it came to
	at   time.Time             // when the item came
}

// A lane is the queue of one chat, or of one person in it whom Slack tells
// nothing about at the moment. It has a goroutine as long as it has items.
type lane struct {
	key   string // the chat, or the chat and the person
	chat  string
	aside bool // the lane is a person's
	items []item
	now   *item // the one that is worked on
}

// lanes holds the lanes of a Receive: the items of one lane are worked on one
// after another, those of different lanes side by side.
type lanes struct {
	room int // how many items may wait before further messages are dropped
	work func(context.Context, *lane, *item)

	mu      sync.Mutex
	byKey   map[string]*lane // those that have items
	waiting int
	dropped time.Time      // when the oldest dropped message was said
	running sync.WaitGroup // the lanes' goroutines
}

func newLanes(room int, work func(context.Context, *lane, *item)) *lanes {
	return &lanes{room: room, work: work, byKey: map[string]*lane{}}
}

// add puts an item into its chat's lane. The two sockets may bring two messages, or two
// changes of one, in the wrong order, so each is put before the later ones that still wait.
// A message for which there is no room is dropped without its ack, so that Slack
// keeps it; only the moment at which it was said is remembered.
func (s *lanes) add(ctx context.Context, chat string, it item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it.m != nil && s.waiting >= s.room {
		if at := moment(it.m.TS); s.dropped.IsZero() || at.Before(s.dropped) {
			s.dropped = at
		}
		return
	}
	s.waiting++
	it.at = time.Now()
	l := s.lane(ctx, chat, "")
	if it.m != nil {
		it.ts = it.m.TS
	}
	i := len(l.items)
	for it.ts != "" && i > 0 && l.items[i-1].ts > it.ts {
		i--
	}
	l.items = slices.Insert(l.items, i, it)
}

// lane finds or starts the lane of a chat, or of a user in it. s.mu is held.
func (s *lanes) lane(ctx context.Context, chat, user string) *lane {
	key := chat
	if user != "" {
		key = asideKey(chat, user)
	}
	l := s.byKey[key]
	if l == nil {
		l = &lane{key: key, chat: chat, aside: user != ""}
		s.byKey[key] = l
		s.running.Go(func() { s.run(ctx, l) })
	}
	return l
}

func asideKey(chat, user string) string { return chat + " " + user }

// setAside moves a message into a lane of its sender's own. The lane keeps the
// order of what they say, and the rest of the chat does not wait until Slack
// reports whether they may talk.
func (s *lanes) setAside(ctx context.Context, m *message, ack func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting++
	l := s.lane(ctx, m.Channel, m.User)
	l.items = append(l.items, item{m: m, ack: ack})
}

// isAside reports whether messages of the sender of m wait in a lane of their own.
func (s *lanes) isAside(m *message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKey[asideKey(m.Channel, m.User)] != nil
}

// run works on a lane until it is empty or ctx is done.
func (s *lanes) run(ctx context.Context, l *lane) {
	for {
		it, wait := s.next(ctx, l)
		switch {
		case it == nil && wait == 0:
			return
		case it == nil:
			backoff.Sleep(ctx, wait)
		default:
			s.work(ctx, l, it)
		}
	}
}

// next takes the first item out of a lane. Without one it returns how long to
// wait for it, or 0 where the lane has ended.
func (s *lanes) next(ctx context.Context, l *lane) (*item, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return nil, 0 // l.now stays: a message that was not published holds the cursor back
	}
	if l.now != nil {
		l.now = nil
		s.waiting--
	}
	if len(l.items) == 0 {
		delete(s.byKey, l.key)
		return nil, 0
	}
	it := l.items[0]
	if wait := reorderTime - time.Since(it.at); (it.m != nil || it.ts != "") && wait > 0 {
		return nil, wait
	}
	l.items = l.items[1:]
	l.now = &it
	return &it, 0
}

// oldest is when the oldest message was said that is not published yet, dropped
// ones included; zero if there is none. The cursor may not move beyond it.
func (s *lanes) oldest() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.dropped
	note := func(it item) {
		if it.m == nil {
			return
		}
		if at := moment(it.m.TS); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	for _, l := range s.byKey {
		for _, it := range l.items {
			note(it)
		}
		if l.now != nil {
			note(*l.now)
		}
	}
	return first
}

// takeDropped is when the oldest dropped message was said, and forgets it; zero
// if none was dropped. It waits until half of the room is free, as the messages
// that are read again from history need it.
func (s *lanes) takeDropped() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting > s.room/2 {
		return time.Time{}
	}
	since := s.dropped
	s.dropped = time.Time{}
	return since
}
