// Package quota counts each person's turns, running and begun within the hour, in this
// process.
package quota

import (
	"errors"
	"sync"
	"time"
)

// ErrBusy is the error for a person who has as many turns running as they may have.
var ErrBusy = errors.New("as many turns at once as one person may have")

// Limits says how many turns a person may have.
type Limits struct {
	// running
	AtOnce int
	Hour   int // begun within any hour
}

// A Quota counts the turns of all people. It is safe for concurrent use.
type Quota struct {
	mu     sync.Mutex
	people map[string]*turnsOfPerson
	sweep  int // the number of people at which the idle ones are forgotten
	now    func() time.Time
}

// turnsOfPerson counts the turns of one person.
type turnsOfPerson struct {
	running int
	begun   []time.Time // the times at which turns began within the last hour, oldest first
}

// New makes a Quota with no turns.
func New() *Quota { return &Quota{people: map[string]*turnsOfPerson{}, sweep: 1024, now: time.Now} }

// Begin counts a new turn of a person. It returns ErrBusy if the person has enough turns
// running. If the person has begun enough turns in this hour, the turn is refused and
// again is the time from which another may begin; otherwise again is zero. Even a
// refused turn counts as running until release is called.
func (q *Quota) Begin(person string, most Limits) (release func(), again time.Time, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forgetIdle()
	u := q.turnsOf(person)
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

// Resume counts a turn that may run regardless of limits: an earlier holder of its
// session began it, or it has no person.
func (q *Quota) Resume(person string) (release func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.turnsOf(person)
	u.running++
	return q.releaser(u)
}

// turnsOf returns the counts of a person.
func (q *Quota) turnsOf(person string) *turnsOfPerson {
	u := q.people[person]
	if u == nil {
		u = &turnsOfPerson{}
		q.people[person] = u
	}
	return u
}

// releaser returns a function that counts one running turn less, once.
func (q *Quota) releaser(u *turnsOfPerson) func() {
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		u.running--
	})
}

// forgetIdle forgets the people who have been idle for an hour. It does that each time
// that twice as many people are known as were left the last time.
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

// prune drops the turns that began more than an hour ago.
func (u *turnsOfPerson) prune(now time.Time) {
	n := 0
	for n < len(u.begun) && now.Sub(u.begun[n]) >= time.Hour {
		n++
	}
	u.begun = u.begun[n:]
}
