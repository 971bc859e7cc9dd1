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

// A scheduler decides who gets which mailbox, and when. It is all in memory, and is rebuilt when the bus
// is opened. It has one timer, for the earliest of all deadlines and pauses.
type scheduler struct {
	maxHold time.Duration
	clock   *clock

	mu        sync.Mutex // guards all fields below, and every box and lease
	topics    map[bus.Topic]*topic
	deadlines deadlines // boxes that are delayed or leased, the one with the earliest deadline first
	timer     *time.Timer
	wakesAt   time.Time // when timer will call wake; zero if it will not
	budget    int       // bytes that messages may still take in memory
	closed    bool
}

// A topic is what the scheduler knows about one topic.
type topic struct {
	name    bus.Topic
	boxes   map[string]*box // the mailboxes that hold mail or are about to
	ready   readyQueue
	waiters list.List // a list of chan *lease, each with room for one
	paused  time.Time // until when nothing may be claimed
	used    bool      // whether the topic has, or had, mail, dead letters or a pause
}

func newScheduler(c *clock, maxHold time.Duration) *scheduler {
	return &scheduler{maxHold: maxHold, clock: c, topics: map[bus.Topic]*topic{}, budget: cacheBudget}
}

// topic returns the topic of that name, and makes it if needed. The caller of topic and of all methods
// below that do not lock s.mu themselves holds it.
func (s *scheduler) topic(name bus.Topic) *topic {
	t := s.topics[name]
	if t == nil {
		t = &topic{name: name, boxes: map[string]*box{}}
		s.topics[name] = t
	}
	return t
}

// restoreTopic adds a topic that was found on disk.
func (s *scheduler) restoreTopic(name bus.Topic, paused time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topic(name)
	t.used, t.paused = true, paused
}

// restoreMailbox adds a mailbox that was found on disk.
func (s *scheduler) restoreMailbox(name bus.Topic, x *box, due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.topic = s.topic(name)
	x.topic.used = true
	x.topic.boxes[x.key] = x
	s.schedule(x, due, 0)
}

// schedule makes the mailbox x claimable, once both the time due and its first message's NotBefore have come. Urgent
// mail whose number is above seen ends any wait, because the holder that asked for the wait did not know of it.
func (s *scheduler) schedule(x *box, due time.Time, seen int64) {
	if x.mail.notBefore.After(due) {
		due = x.mail.notBefore
	}
	if x.mail.lastUrgent > seen || !due.After(time.Now()) {
		s.makeReady(x)
		return
	}
	x.state = delayed
	s.setDeadline(x, due)
}

// makeReady puts a mailbox into its topic's queue.
func (s *scheduler) makeReady(x *box) {
	s.removeDeadline(x)
	x.state = ready
	x.topic.ready.pushBack(x)
	s.grantReady(x.topic)
}

// grantReady leases ready mailboxes to waiting callers of Claim.
func (s *scheduler) grantReady(t *topic) {
	if s.closed || !t.paused.IsZero() && t.paused.After(time.Now()) {
		return
	}
	for t.ready.first != nil && t.waiters.Len() > 0 {
		w := t.waiters.Remove(t.waiters.Front()).(chan *lease)
		w <- s.grant(t.ready.popFront())
	}
}

// grant leases x to a caller of Claim.
func (s *scheduler) grant(x *box) *lease {
	x.attempts++
	l := &lease{
		box:         x,
		claim:       bus.Claim{Topic: x.topic.name, Key: x.key, Fence: s.clock.next(), Attempts: x.attempts},
		recordFirst: x.recordFirst,
		firstSeq:    x.mail.first(),
		lost:        make(chan struct{}),
	}
	x.state, x.lease = leased, l
	s.setDeadline(x, time.Now().Add(s.maxHold))
	return l
}

// waitForLease waits until a mailbox is leased to the caller. If ctx ends at that moment,
// the mailbox goes back to the front, as if it had not been claimed.
func (s *scheduler) waitForLease(ctx context.Context, name bus.Topic) (*lease, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, bus.ErrClosed
	}
	grant := make(chan *lease, 1)
	t := s.topic(name)
	place := t.waiters.PushBack(grant)
	s.grantReady(t)
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

// giveBack undoes a grant that the caller of Claim never learned about.
func (s *scheduler) giveBack(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.endReason != nil {
		return
	}
	x := l.box
	s.endLease(l, bus.ErrFenced)
	x.attempts--
	x.state = ready
	x.topic.ready.pushFront(x)
	s.grantReady(x.topic)
}

// endLease takes the mailbox from its holder. It leaves the mailbox in the state idle; the caller
// has to give it another state, or remove it.
func (s *scheduler) endLease(l *lease, why error) {
	l.endReason = why
	l.box.lease = nil
	l.box.state = idle
	s.removeDeadline(l.box)
	l.bell.Ring()
}

// lose ends a lease that its holder has not settled, and tells the holder.
func (s *scheduler) lose(l *lease, why error) {
	s.endLease(l, why)
	close(l.lost)
}

// removeIfEmpty removes x if it has no message and none is being committed to it.
func (s *scheduler) removeIfEmpty(x *box) {
	if x.state == idle && x.mail.count == 0 && len(x.arriving) == 0 {
		delete(x.topic.boxes, x.key)
	}
}

// close ends all leases and all waiting claims. It returns false if the scheduler was closed before.
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

func (s *scheduler) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// pause keeps the mailboxes of a topic from being claimed until that time.
func (s *scheduler) pause(name bus.Topic, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topic(name)
	t.used, t.paused = true, until
	s.wakeAt(until)
	s.grantReady(t)
}

// setDeadline makes wake look at x at that time.
func (s *scheduler) setDeadline(x *box, at time.Time) {
	x.deadline = at
	if x.heapIndex >= 0 {
		heap.Fix(&s.deadlines, x.heapIndex)
	} else {
		heap.Push(&s.deadlines, x)
	}
	s.wakeAt(at)
}

// removeDeadline removes the deadline of x, if it has one.
func (s *scheduler) removeDeadline(x *box) {
	if x.heapIndex >= 0 {
		heap.Remove(&s.deadlines, x.heapIndex)
	}
}

// maxSleep bounds how long the timer sleeps while something waits for a time: a timer
// stands still while the machine is suspended, and does not notice that the clock is set
// forward.
const maxSleep = time.Minute

// wakeAt makes the timer call wake at that time or earlier. When a deadline is removed the
// timer stays as it is, and calls wake once for nothing.
func (s *scheduler) wakeAt(at time.Time) {
	if latest := time.Now().Add(maxSleep); !at.IsZero() && at.After(latest) {
		at = latest
	}
	if s.closed || at.IsZero() || !s.wakesAt.IsZero() && !at.Before(s.wakesAt) {
		return
	}
	s.wakesAt = at
	if s.timer == nil {
		s.timer = time.AfterFunc(time.Until(at), s.wake)
	} else {
		s.timer.Reset(time.Until(at))
	}
}

// wake ends the delays, the leases held too long and the pauses whose time has come.
func (s *scheduler) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.wakesAt = time.Time{}
	now := time.Now()
	for len(s.deadlines) > 0 && !s.deadlines[0].deadline.After(now) {
		x := s.deadlines[0]
		if x.state == leased {
			x.recordFirst = true
			s.lose(x.lease, bus.ErrFenced)
		}
		s.makeReady(x)
	}
	if len(s.deadlines) > 0 {
		s.wakeAt(s.deadlines[0].deadline)
	}
	for _, t := range s.topics {
		if t.paused.After(now) {
			s.wakeAt(t.paused)
		} else {
			s.grantReady(t)
		}
	}
}
