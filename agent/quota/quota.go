// Package quota counts each person's turns, both running and begun within the last hour: on the bus if several
// processes share it, otherwise in this process.
package quota

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"parley/bus"
)

// ErrBusy is returned for a person who has as many turns running as they may have.
var ErrBusy = errors.New("as many turns at once as one person may have")

// Limits says how many turns a person may have.
type Limits struct {
	// AtOnce is how many may be running.
	AtOnce int
	Hour   int // how many may begin within any hour
}

// A Quota counts the turns of all people. It is safe for concurrent use. If the lease of a turn's session can
// count turns ([bus.CountedLease]), the bus counts the turn as running until the lease ends or counts for somebody
// else. So a turn of a process that died no longer counts as running.
type Quota struct {
	mu     sync.Mutex
	people map[string]*turnsOfPerson
	sweep  int // the number of people at which forgetIdle does something
	now    func() time.Time
}

// turnsOfPerson counts the turns of one person.
type turnsOfPerson struct {
	running int
	begun   []begunTurn // within the last hour, oldest first
}

// A begunTurn is a turn that has begun.
type begunTurn struct {
	id string
	at time.Time
}

// New makes a Quota with no turns.
func New() *Quota { return &Quota{people: map[string]*turnsOfPerson{}, sweep: 1024, now: time.Now} }

// Begin counts a new turn of a person, by its id: a turn that tries to begin again is counted only once in the
// hour. It returns ErrBusy, and no release, if the person has enough turns running. If the person has begun enough
// turns in the last hour, the turn is refused, and again is the time from which another may begin; otherwise again is
// zero. If this process counts, the turn counts as running until release is called, even if it is refused.
func (q *Quota) Begin(ctx context.Context, lease bus.Lease, person, turn string, most Limits) (release func(), again time.Time, err error) {
	if shared, ok := lease.(bus.CountedLease); ok {
		return beginShared(ctx, shared, bus.Quota{Group: person, ID: turn, AtOnce: most.AtOnce, Hour: most.Hour})
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forgetIdle()
	u := q.turnsOf(person)
	now := q.now()
	u.prune(now)
	if u.running >= most.AtOnce {
		return nil, time.Time{}, ErrBusy
	}
	known := slices.ContainsFunc(u.begun, func(b begunTurn) bool { return b.id == turn })
	switch begun := len(u.begun); {
	case known:
	case begun >= most.Hour:
		again = u.begun[begun-most.Hour].at.Add(time.Hour)
	default:
		u.begun = append(u.begun, begunTurn{turn, now})
	}
	u.running++
	return q.releaser(u), again, nil
}

// beginShared does what Begin does, with the bus counting the turn.
func beginShared(ctx context.Context, lease bus.CountedLease, quota bus.Quota) (release func(), again time.Time, err error) {
	err = lease.Begin(ctx, quota)
	if errors.Is(err, bus.ErrBusy) {
		return nil, time.Time{}, ErrBusy
	}
	if over, ok := errors.AsType[*bus.QuotaError](err); ok {
		return func() {}, time.Now().Add(over.Opens), nil
	}
	return func() {}, time.Time{}, err
}

// Resume counts a turn as running, as Begin does. It may run regardless of limits, because it began under an earlier
// holder of its session.
func (q *Quota) Resume(ctx context.Context, lease bus.Lease, person string) (release func(), err error) {
	if shared, ok := lease.(bus.CountedLease); ok {
		return func() {}, shared.Resume(ctx, person)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.turnsOf(person)
	u.running++
	return q.releaser(u), nil
}

// Leave stops counting the last turn that ran under a lease as running. It is called before a turn that isn't counted,
// such as an owner's. It does nothing if this process counts: then release was called.
func (q *Quota) Leave(ctx context.Context, lease bus.Lease) error {
	if shared, ok := lease.(bus.CountedLease); ok {
		return shared.Leave(ctx)
	}
	return nil // release has done it
}

// turnsOf returns the counts of a person. The caller holds mu.
func (q *Quota) turnsOf(person string) *turnsOfPerson {
	u := q.people[person]
	if u == nil {
		u = &turnsOfPerson{}
		q.people[person] = u
	}
	return u
}

// releaser returns a function that subtracts one running turn, once.
func (q *Quota) releaser(u *turnsOfPerson) func() {
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		u.running--
	})
}

// forgetIdle forgets the people without a running turn and without one that began in the last hour. It does so once
// there are 1,024 people, and then each time there are twice as many as it has left, and at least 1,024. The caller
// holds mu.
func (q *Quota) forgetIdle() {
	if len(q.people) < q.sweep {
		return
	}
	for person, u := range q.people {
		u.prune(q.now())
		if u.running == 0 && len(u.begun) == 0 {
			delete(q.people, person)
		}
	}
	q.sweep = max(1024, 2*len(q.people))
}

// prune drops the turns that began an hour ago or earlier from those that count for the hourly limit.
func (u *turnsOfPerson) prune(now time.Time) {
	n := 0
	for n < len(u.begun) && now.Sub(u.begun[n].at) >= time.Hour {
		n++
	}
	u.begun = u.begun[n:]
}
