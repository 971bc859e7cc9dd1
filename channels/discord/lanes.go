package discord

import (
	"context"
	"sync"
	"time"
)

// A lane is the queue of one channel. It has a goroutine as long as there is something
// to do.
type lane struct {
	id    string // the channel's
	items []*news
	now   *news // what is worked on
	// behind says that what was said after from must be read from history first, not
	// before again.
	behind bool
	from   uint64
	more   bool // it has fallen behind while history was read
	again  time.Time
	wake   chan struct{} // something was added
}

// lanes holds the lanes of a Receive: what belongs to one is worked on one after
// another, different lanes side by side.
type lanes struct {
	room    int // how much may wait; what is more is read from history later
	work    func(context.Context, *lane, *news)
	catchUp func(ctx context.Context, l *lane) (done bool)

	mu      sync.Mutex
	byID    map[string]*lane // those that have something to do
	waiting int
	running sync.WaitGroup // the lanes' goroutines
}

func newLanes(room int) *lanes { return &lanes{room: room, byID: map[string]*lane{}} }

// add puts news into a channel's lane. Where there is no room, what is missing is
// read from history once the lane is empty.
func (s *lanes) add(ctx context.Context, n *news) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lane(ctx, n.channel)
	if s.waiting >= s.room {
		if n.isMessage() {
			l.fallBehind(l.first(n) - 1)
		}
		return
	}
	s.waiting++
	l.items = append(l.items, n)
	l.nudge()
}

// readHistoryFirst has a lane read history first, from readHistoryFirst that id on.
func (s *lanes) readHistoryFirst(ctx context.Context, channel string, from uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lane(ctx, channel)
	l.fallBehind(from)
	l.nudge()
}

func (l *lane) fallBehind(from uint64) {
	l.more = true
	if !l.behind || from < l.from {
		l.behind, l.from = true, from
	}
}

// first is the lowest id of what waits, up to that of the news. History is read before
// what waits, so it is read from there on.
func (l *lane) first(n *news) uint64 {
	first := n.id
	for _, waits := range l.items {
		if waits.id != 0 {
			first = min(first, waits.id)
		}
	}
	return first
}

func (l *lane) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// lane finds or starts the lane of a channel. s.mu is held.
func (s *lanes) lane(ctx context.Context, id string) *lane {
	l := s.byID[id]
	if l == nil {
		l = &lane{id: id, wake: make(chan struct{}, 1)}
		s.byID[id] = l
		s.running.Go(func() { s.run(ctx, l) })
	}
	return l
}

// run works on a lane until there is nothing to do or ctx is done.
func (s *lanes) run(ctx context.Context, l *lane) {
	for {
		n, wait, more := s.next(ctx, l)
		switch {
		case !more:
			return
		case n != nil:
			s.work(ctx, l, n)
		case wait > 0:
			l.waitToRetry(ctx, wait)
		default:
			s.readHistory(ctx, l)
		}
	}
}

// waitToRetry waits until it is time to try history again, or something was added.
func (l *lane) waitToRetry(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.wake:
	case <-ctx.Done():
	}
}

// next says what a lane has to do: news to work on, time to wait, or, with neither,
// history to read. It is false where the lane has ended.
func (s *lanes) next(ctx context.Context, l *lane) (*news, time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return nil, 0, false // what was not published holds the cursor back
	}
	if l.now != nil {
		l.now = nil
		s.waiting--
	}
	wait := time.Until(l.again)
	if l.behind && wait <= 0 {
		return nil, 0, true
	}
	if len(l.items) > 0 {
		n := l.items[0]
		l.items = l.items[1:]
		l.now = n
		return n, 0, true
	}
	if l.behind {
		return nil, wait, true
	}
	delete(s.byID, l.id)
	return nil, 0, false
}

// historyAgain is after how long a channel whose history cannot be read is tried again.
// Meanwhile it goes on.
const historyAgain = time.Minute

// readHistory reads history for a lane.
func (s *lanes) readHistory(ctx context.Context, l *lane) {
	if !s.catchUp(ctx, l) && ctx.Err() == nil {
		s.mu.Lock()
		l.again = time.Now().Add(historyAgain)
		s.mu.Unlock()
	}
}

// missingFrom is from behind which id on history is to be read for a lane, which begins to.
func (s *lanes) missingFrom(l *lane) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.more = false
	return l.from
}

// caughtUp notes that history is read from an id up to another, or, with done, to its
// end. A lane that fell behind meanwhile is not done.
func (s *lanes) caughtUp(l *lane, read, upTo uint64, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.from != read {
		return
	}
	l.from, l.behind = upTo, !done || l.more
}

// oldest is the lowest id that is not published yet; 0 if all is. The cursor may not
// move to it.
func (s *lanes) oldest() uint64 {
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
		if l.now != nil {
			note(l.now.id)
		}
		if l.behind {
			note(l.from + 1)
		}
	}
	return first
}
