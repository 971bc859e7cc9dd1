package discord

import (
	"context"
	"sync"
	"time"
)

// A lane is the queue of one Discord channel: its items (see laneItem) are handled one after another. It has a
// goroutine only while there is something to do.
type lane struct {
	id      string // the Discord channel's id
	items   []*laneItem
	current *laneItem // the item that the lane's goroutine works on
	// mustReadHistory says that the messages after the id from must be read from history before the queued items are
	// handled. If reading fails, it is tried again at retryAt.
	mustReadHistory bool
	historyFrom     uint64
	fellBehindAgain bool // whether the lane fell behind once more while history was being read
	retryAt         time.Time
	wake            chan struct{} // receives a value when something was added
}

// lanes holds the lanes of one call of Receive. The items in one lane are handled one after another, those in
// different lanes concurrently.
type lanes struct {
	maxWaiting int // how many items may wait; messages beyond it are read from history later
	handle     func(context.Context, *lane, *laneItem)
	catchUp    func(ctx context.Context, l *lane) (done bool)

	mu      sync.Mutex
	byID    map[string]*lane // the lanes that have something to do, by channel
	waiting int
	running sync.WaitGroup // the lanes' goroutines
}

// newLanes makes an empty set of lanes in which up to room items may wait.
func newLanes(room int) *lanes { return &lanes{maxWaiting: room, byID: map[string]*lane{}} }

// add puts an item into its channel's lane. If no more items may wait, it drops the item: a message is read from
// history later, anything else is lost.
func (s *lanes) add(ctx context.Context, n *laneItem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.laneFor(ctx, n.channel)
	if s.waiting >= s.maxWaiting {
		if n.isMessage() {
			l.markBehind(l.oldestWaiting(n) - 1)
		}
		return
	}
	s.waiting++
	l.items = append(l.items, n)
	l.wakeUp()
}

// readHistoryFirst makes a channel's lane read history after the id from before it handles its queued items.
func (s *lanes) readHistoryFirst(ctx context.Context, channel string, from uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.laneFor(ctx, channel)
	l.markBehind(from)
	l.wakeUp()
}

// markBehind records that the messages after the id from must be read from history.
func (l *lane) markBehind(from uint64) {
	l.fellBehindAgain = true
	if !l.mustReadHistory || from < l.historyFrom {
		l.mustReadHistory, l.historyFrom = true, from
	}
}

// oldestWaiting returns the lowest id among n and the waiting items. Because history is read before these are
// handled, it must be read from that id on.
func (l *lane) oldestWaiting(n *laneItem) uint64 {
	first := n.id
	for _, waits := range l.items {
		if waits.id != 0 {
			first = min(first, waits.id)
		}
	}
	return first
}

// wakeUp makes the lane stop waiting before its next attempt to read history.
func (l *lane) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// laneFor finds or starts the lane of a channel. The caller holds s.mu.
func (s *lanes) laneFor(ctx context.Context, id string) *lane {
	l := s.byID[id]
	if l == nil {
		l = &lane{id: id, wake: make(chan struct{}, 1)}
		s.byID[id] = l
		s.running.Go(func() { s.run(ctx, l) })
	}
	return l
}

// run works on a lane until there is nothing left to do or ctx is done.
func (s *lanes) run(ctx context.Context, l *lane) {
	for {
		n, wait, more := s.next(ctx, l)
		switch {
		case !more:
			return
		case n != nil:
			s.handle(ctx, l, n)
		case wait > 0:
			l.waitToRetry(ctx, wait)
		default:
			s.readHistory(ctx, l)
		}
	}
}

// waitToRetry waits until it is time to read history again, something has been added, or ctx is done.
func (l *lane) waitToRetry(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.wake:
	case <-ctx.Done():
	}
}

// next returns what a lane's goroutine must do: handle an item, wait for a duration or, if neither is set, read
// history. The bool is false if the lane has ended.
func (s *lanes) next(ctx context.Context, l *lane) (*laneItem, time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return nil, 0, false // current stays set: while an item is unpublished, the cursor must not pass it
	}
	if l.current != nil {
		l.current = nil
		s.waiting--
	}
	wait := time.Until(l.retryAt)
	if l.mustReadHistory && wait <= 0 {
		return nil, 0, true
	}
	if len(l.items) > 0 {
		n := l.items[0]
		l.items = l.items[1:]
		l.current = n
		return n, 0, true
	}
	if l.mustReadHistory {
		return nil, wait, true
	}
	delete(s.byID, l.id)
	return nil, 0, false
}

// retryHistoryAfter is the time between two attempts to read a channel's history. In between, the channel's new
// messages are published.
const retryHistoryAfter = time.Minute

// readHistory reads history for a lane. If that fails, it is tried again after retryHistoryAfter.
func (s *lanes) readHistory(ctx context.Context, l *lane) {
	if !s.catchUp(ctx, l) && ctx.Err() == nil {
		s.mu.Lock()
		l.retryAt = time.Now().Add(retryHistoryAfter)
		s.mu.Unlock()
	}
}

// missingFrom returns the message id after which history must be read for a lane. The caller is about to start
// reading there, so missingFrom also clears fellBehindAgain.
func (s *lanes) missingFrom(l *lane) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.fellBehindAgain = false
	return l.historyFrom
}

// recordRead records that history was read from the message id read up to upTo or, if done is true, to its end. If
// the lane fell behind again in the meantime, it stays behind.
func (s *lanes) recordRead(l *lane, read, upTo uint64, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.historyFrom != read {
		return
	}
	l.historyFrom, l.mustReadHistory = upTo, !done || l.fellBehindAgain
}

// oldestUnpublished returns the lowest id that has not been published yet; 0 if all have. The cursor must stay
// below it.
func (s *lanes) oldestUnpublished() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := uint64(0)
	note := func(id uint64) {
		if id != 0 && (first == 0 || id < first) {
			first = id
		}
	}
	for _, l := range s.byID {
		for _, n := range l.items {
			note(n.id)
		}
		if l.current != nil {
			note(l.current.id)
		}
		if l.mustReadHistory {
			note(l.historyFrom + 1)
		}
	}
	return first
}

// A laneItem is one thing that happened in a channel: a message, a change to one, or a reaction.
type laneItem struct {
	channel string
	id      uint64 // the message's id; 0 for anything that history does not show
	message *message

	edited  bool   // whether the message is an older one whose text has changed
	deleted uint64 // the id of a deleted message, set instead of message

	reaction *reaction // set instead of a message
	removed  bool      // whether the reaction was removed
}

// isMessage reports whether the item is a new message, which history would show too.
func (n *laneItem) isMessage() bool { return n.id != 0 }
