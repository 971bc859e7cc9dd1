// Package quota counts each person's turns, at once and within the hour, in this process.
package quota

import (
	"errors"
	"sync"
	"time"
)

// ErrBusy says that a person has as many turns at once as they may have.
var ErrBusy = errors.New("as many turns at once as one person may have")

// Limits is how many turns a person may have.
type Limits struct {
	AtOnce int
	Hour   int // begun within any hour
}

// A Quota counts the turns of everybody. It may be used by many at once.
type Quota struct {
	mu     sync.Mutex
	people map[string]*turnsOfPerson
	sweep  int // forget the idle when this many people are known
	now    func() time.Time
}

type turnsOfPerson struct {
	running int
	begun   []time.Time // within the last hour
}

// New makes a Quota that has counted nothing yet.
func New() *Quota { return &Quota{people: map[string]*turnsOfPerson{}, sweep: 1024, now: time.Now} }

// Begin counts a turn in. It gives ErrBusy to a person who has enough turns at
// once. Whoever has had enough in this hour is refused until again; otherwise again
// is zero. The refused turn counts as running until it is released, like any other.
func (q *Quota) Begin(person string, most Limits) (release func(), again time.Time, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forgetIdle()
	u := q.count(person)
	u.prune(q.now())
	if u.running >= most.AtOnce {
		return nil, time.Time{}, ErrBusy
	}
	if len(u.begun) >= most.Hour {
		again = u.begun[0].Add(time.Hour)
	} else {
		u.begun = append(u.begun, q.now())
	}
	u.running++
	return q.releaser(u), again, nil
}

// Resume counts in a turn that may run whatever the limits are: an earlier holder of
// its session has begun it, or its person has none.
func (q *Quota) Resume(person string) (release func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.count(person)
	u.running++
	return q.releaser(u)
}

func (q *Quota) count(person string) *turnsOfPerson {
	u := q.people[person]
	if u == nil {
		u = &turnsOfPerson{}
		q.people[person] = u
	}
	return u
}

func (q *Quota) releaser(u *turnsOfPerson) func() {
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		u.running--
	})
}

// forgetIdle drops the people who have been idle for an hour, whenever twice as many
// are known as were left the last time.
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

func (u *turnsOfPerson) prune(now time.Time) {
	n := 0
	for n < len(u.begun) && now.Sub(u.begun[n]) >= time.Hour {
		n++
	}
	u.begun = u.begun[n:]
}
