package sqlitebus

import (
	"container/heap"
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"parley/bus"
)

// A scheduler decides who gets which mailbox, and when. Nothing in it outlives
// the process, and nothing in it touches the disk. One timer stands for
// everything that waits for a time.
type scheduler struct {
	maxHold time.Duration
	clock   *clock

	mu     sync.Mutex // guards all below and every box and lease
	topics map[bus.Topic]*topic
	alarms alarms // boxes that are delayed or leased, the earliest first
	timer  *time.Timer
	armed  time.Time // when timer will ring; zero if it will not
	budget int       // bytes that messages may still take in memory
	closed bool
}

type topic struct {
	name    bus.Topic
	boxes   map[string]*box // those that hold mail or are about to
	ready   line
	waiters list.List // of chan *lease, each with room for one
	paused  time.Time
	used    bool // has held mail, or was paused
}

func newScheduler(c *clock, maxHold time.Duration) *scheduler {
	return &scheduler{maxHold: maxHold, clock: c, topics: map[bus.Topic]*topic{}, budget: cacheBudget}
}

// topic is called with s.mu held, as is all below that does not take it.
func (s *scheduler) topic(name bus.Topic) *topic {
	t := s.topics[name]
	if t == nil {
		t = &topic{name: name, boxes: map[string]*box{}}
		s.topics[name] = t
	}
	return t
}

// found is told of a topic that has left something on disk.
func (s *scheduler) found(name bus.Topic, paused time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topic(name)
	t.used, t.paused = true, paused
}

// restore takes in a mailbox that was found on disk.
func (s *scheduler) restore(name bus.Topic, x *box, due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.topic = s.topic(name)
	x.topic.used = true
	x.topic.boxes[x.key] = x
	s.schedule(x, due, 0)
}

// schedule makes x claimable: at once, or when both due and its first message
// say. Urgent mail beyond seen, which whoever put the mailbox back did not know
// of, ends any wait.
func (s *scheduler) schedule(x *box, due time.Time, seen int64) {
	if x.mail.notBefore.After(due) {
		due = x.mail.notBefore
	}
	if x.mail.urgent > seen || !due.After(time.Now()) {
		s.makeReady(x)
		return
	}
	x.state = delayed
	s.setAlarm(x, due)
}

func (s *scheduler) makeReady(x *box) {
	s.stopAlarm(x)
	x.state = ready
	x.topic.ready.pushBack(x)
	s.match(x.topic)
}

// match gives what is ready to those who wait.
func (s *scheduler) match(t *topic) {
	if s.closed || !t.paused.IsZero() && t.paused.After(time.Now()) {
		return
	}
	for t.ready.first != nil && t.waiters.Len() > 0 {
		w := t.waiters.Remove(t.waiters.Front()).(chan *lease)
		w <- s.grant(t.ready.popFront())
	}
}

func (s *scheduler) grant(x *box) *lease {
	x.attempts++
	l := &lease{
		box:   x,
		claim: bus.Claim{Topic: x.topic.name, Key: x.key, Fence: s.clock.next(), Attempts: x.attempts},
		wary:  x.wary,
		lost:  make(chan struct{}),
	}
	x.state, x.lease = leased, l
	s.setAlarm(x, time.Now().Add(s.maxHold))
	return l
}

// take waits for a lease. One that is granted while ctx ends goes back to where
// it was, as if it had not been claimed.
func (s *scheduler) take(ctx context.Context, name bus.Topic) (*lease, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, bus.ErrClosed
	}
	grant := make(chan *lease, 1)
	t := s.topic(name)
	place := t.waiters.PushBack(grant)
	s.match(t)
	s.mu.Unlock()

	select {
	case l := <-grant:
		if l == nil {
			return nil, bus.ErrClosed
		}
		if ctx.Err() == nil {
			return l, nil
		}
		s.giveBack(l)
	case <-ctx.Done():
		s.mu.Lock()
		t.waiters.Remove(place)
		s.mu.Unlock()
		select {
		case l := <-grant:
			if l != nil {
				s.giveBack(l)
			}
		default:
		}
	}
	return nil, ctx.Err()
}

// giveBack undoes a grant that its claimer never learned of.
func (s *scheduler) giveBack(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.end != nil {
		return
	}
	x := l.box
	s.endLease(l, bus.ErrFenced)
	x.attempts--
	x.state = ready
	x.topic.ready.pushFront(x)
	s.match(x.topic)
}

// endLease takes the mailbox from its holder and leaves it in no state.
func (s *scheduler) endLease(l *lease, why error) {
	l.end = why
	l.box.lease = nil
	l.box.state = idle
	s.stopAlarm(l.box)
	l.ring()
}

// lose ends a lease against the will of its holder.
func (s *scheduler) lose(l *lease, why error) {
	s.endLease(l, why)
	close(l.lost)
}

// forget drops x if nothing keeps it.
func (s *scheduler) forget(x *box) {
	if x.state == idle && x.mail.n == 0 && len(x.coming) == 0 {
		delete(x.topic.boxes, x.key)
	}
}

// close ends what is going on; it reports false if that has happened before.
func (s *scheduler) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	for _, t := range s.topics {
		for w := t.waiters.Front(); w != nil; w = w.Next() {
			close(w.Value.(chan *lease))
		}
		t.waiters.Init()
		for _, x := range t.boxes {
			if x.lease != nil {
				s.lose(x.lease, fmt.Errorf("%w: %w", bus.ErrFenced, bus.ErrClosed))
			}
		}
	}
	return true
}

func (s *scheduler) pause(name bus.Topic, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topic(name)
	t.used, t.paused = true, until
	s.arm(until)
	s.match(t)
}

func (s *scheduler) setAlarm(x *box, at time.Time) {
	x.at = at
	if x.slot >= 0 {
		heap.Fix(&s.alarms, x.slot)
	} else {
		heap.Push(&s.alarms, x)
	}
	s.arm(at)
}

func (s *scheduler) stopAlarm(x *box) {
	if x.slot >= 0 {
		heap.Remove(&s.alarms, x.slot)
	}
}

// longestSleep bounds how long the timer sleeps while something waits for a
// time: timers stand still while a machine is suspended, and know nothing of a
// clock that is set forward.
const longestSleep = time.Minute

// arm makes the timer ring at that time at the latest. It is not put off when
// what it was set for has gone: it then rings once for nothing.
func (s *scheduler) arm(at time.Time) {
	if latest := time.Now().Add(longestSleep); !at.IsZero() && at.After(latest) {
		at = latest
	}
	if s.closed || at.IsZero() || !s.armed.IsZero() && !at.Before(s.armed) {
		return
	}
	s.armed = at
	if s.timer == nil {
		s.timer = time.AfterFunc(time.Until(at), s.tick)
	} else {
		s.timer.Reset(time.Until(at))
	}
}

// tick does what has become due: it ends delays, leases held too long, and pauses.
func (s *scheduler) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.armed = time.Time{}
	now := time.Now()
	for len(s.alarms) > 0 && !s.alarms[0].at.After(now) {
		x := s.alarms[0]
		if x.state == leased {
			x.wary = true
			s.lose(x.lease, bus.ErrFenced)
		}
		s.makeReady(x)
	}
	if len(s.alarms) > 0 {
		s.arm(s.alarms[0].at)
	}
	for _, t := range s.topics {
		if t.paused.After(now) {
			s.arm(t.paused)
		} else {
			s.match(t)
		}
	}
}
