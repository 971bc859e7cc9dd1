package slack

import (
	"context"
	"slices"
	"sync"
	"time"

	"parley/channels/backoff"
	"parley/channels/slack/interaction"
)

// reorderTime is how long a message waits for an earlier one from its chat, which the other socket may deliver a
// moment later.
const reorderTime = 25 * time.Millisecond

// An item is a unit of work in a lane: a message to publish, or a task to run.
type item struct {
	message    *message
	ack        func()                // tells Slack that the message has arrived
	task       func(context.Context) // what to run instead, if message is nil
	ts         string                // Slack's timestamp of the item, by which the lane is sorted; "" puts the item at the end
	receivedAt time.Time             // when the item was received
}

// A lane is the queue of messages for one chat or, while Slack can't say who a person is, for that person in the
// chat. It has a goroutine only while it has items.
type lane struct {
	key          string // the chat, or the chat and the person
	chat         string
	isSenderLane bool // whether the lane belongs to one person in the chat
	items        []item
	current      *item // the item that the lane's goroutine works on
}

// lanes holds the lanes of one call of Receive. The items in one lane are handled one after another, those in
// different lanes concurrently.
type lanes struct {
	maxWaiting int // how many items may wait before further messages are dropped
	handle     func(context.Context, *lane, *item)

	mu            sync.Mutex
	byKey         map[string]*lane // the lanes that have items
	waiting       int
	oldestDropped time.Time      // when the oldest dropped message was sent; zero if none was dropped
	running       sync.WaitGroup // the lanes' goroutines
}

// newLanes makes an empty set of lanes whose items are handled by work.
func newLanes(room int, work func(context.Context, *lane, *item)) *lanes {
	return &lanes{maxWaiting: room, handle: work, byKey: map[string]*lane{}}
}

// add puts an item into its chat's lane. The two sockets may deliver two messages, or two changes to one message,
// in the wrong order, so add puts each before any later ones that are still waiting. If no more items may wait, it
// drops a message without calling its ack, so that Slack keeps the message; only the time at which the message was
// sent is remembered.
func (s *lanes) add(ctx context.Context, chat string, it item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it.message != nil && s.waiting >= s.maxWaiting {
		if at := interaction.ParseTS(it.message.TS); s.oldestDropped.IsZero() || at.Before(s.oldestDropped) {
			s.oldestDropped = at
		}
		return
	}
	s.waiting++
	it.receivedAt = time.Now()
	l := s.laneFor(ctx, chat, "")
	if it.message != nil {
		it.ts = it.message.TS
	}
	i := len(l.items)
	for it.ts != "" && i > 0 && l.items[i-1].ts > it.ts {
		i--
	}
	l.items = slices.Insert(l.items, i, it)
}

// laneFor finds or starts the lane of a chat or, if user is not "", of that user in the chat. The caller holds
// s.mu.
func (s *lanes) laneFor(ctx context.Context, chat, user string) *lane {
	key := chat
	if user != "" {
		key = senderLaneKey(chat, user)
	}
	l := s.byKey[key]
	if l == nil {
		l = &lane{key: key, chat: chat, isSenderLane: user != ""}
		s.byKey[key] = l
		s.running.Go(func() { s.run(ctx, l) })
	}
	return l
}

// senderLaneKey returns the key of a person's own lane in a chat.
func senderLaneKey(chat, user string) string { return chat + " " + user }

// addToSenderLane moves a message from its chat's lane to its sender's own lane. That lane keeps the sender's
// messages in order, while the rest of the chat doesn't have to wait until Slack says whether the sender is a
// member.
func (s *lanes) addToSenderLane(ctx context.Context, m *message, ack func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting++
	l := s.laneFor(ctx, m.Channel, m.User)
	l.items = append(l.items, item{message: m, ack: ack})
}

// hasSenderLane reports whether messages from m's sender are waiting in a lane of their own.
func (s *lanes) hasSenderLane(m *message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKey[senderLaneKey(m.Channel, m.User)] != nil
}

// run handles a lane's items until the lane is empty or ctx is done.
func (s *lanes) run(ctx context.Context, l *lane) {
	for {
		it, wait := s.next(ctx, l)
		switch {
		case it == nil && wait == 0:
			return
		case it == nil:
			backoff.Sleep(ctx, wait)
		default:
			s.handle(ctx, l, it)
		}
	}
}

// next removes the first item from a lane and returns it. If it's too early to handle the item, it returns nil and
// how long to wait; if the lane has ended, it returns nil and 0.
func (s *lanes) next(ctx context.Context, l *lane) (*item, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return nil, 0 // l.current stays set: while a message is unpublished, the cursor must not pass it
	}
	if l.current != nil {
		l.current = nil
		s.waiting--
	}
	if len(l.items) == 0 {
		delete(s.byKey, l.key)
		return nil, 0
	}
	it := l.items[0]
	if wait := reorderTime - time.Since(it.receivedAt); (it.message != nil || it.ts != "") && wait > 0 {
		return nil, wait
	}
	l.items = l.items[1:]
	l.current = &it
	return &it, 0
}

// oldestUnpublished returns when the oldest unpublished message was sent, counting dropped ones too; the zero time
// if all are published. How far Slack has been read (the cursor) must not be recorded as later than that.
func (s *lanes) oldestUnpublished() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.oldestDropped
	note := func(it item) {
		if it.message == nil {
			return
		}
		if at := interaction.ParseTS(it.message.TS); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	for _, l := range s.byKey {
		for _, it := range l.items {
			note(it)
		}
		if l.current != nil {
			note(*l.current)
		}
	}
	return first
}

// takeOldestDroppedIfRoom returns when the oldest dropped message was sent, and forgets it; the zero time if none
// was dropped. It also returns the zero time while more than half of the places are taken, because the messages
// that will be read again from history need room.
func (s *lanes) takeOldestDroppedIfRoom() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting > s.maxWaiting/2 {
		return time.Time{}
	}
	since := s.oldestDropped
	s.oldestDropped = time.Time{}
	return since
}
