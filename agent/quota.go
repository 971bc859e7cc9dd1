package agent

import (
	"sync"
	"time"

	"parley/bus"
)

// A quota counts each person's turns, at once and within the hour, in this process.
type quota struct {
	mu     sync.Mutex
	people map[string]*usage
	sweep  int // forget the idle when this many people are known
	now    func() time.Time
}

type usage struct {
	running int
	begun   []time.Time // within the last hour
}

func newQuota() *quota { return &quota{people: map[string]*usage{}, sweep: 1024, now: time.Now} }

// begin counts a turn in. It gives errLater to a person who has enough turns at
// once, and a refusal to one who has had enough in this hour. The refused turn
// counts as running until it is released, like any other.
func (q *quota) begin(p bus.Person, l Limits) (release func(), refusal *ending, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forget()
	u := q.of(p.ID)
	u.prune(q.now())
	if !p.Owner && u.running >= l.Turns {
		return nil, nil, errLater
	}
	if !p.Owner && len(u.begun) >= l.TurnsHour {
		again := u.begun[0].Add(time.Hour).UTC().Format("15:04")
		refusal = failure("too_many_turns", "You have asked me %d times within the hour, which is the most that I may answer. Ask again from %s UTC on.", l.TurnsHour, again)
	} else {
		u.begun = append(u.begun, q.now())
	}
	u.running++
	return q.releaser(u), refusal, nil
}

// resume counts in a turn that an earlier holder has begun.
func (q *quota) resume(person string) (release func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.of(person)
	u.running++
	return q.releaser(u)
}

func (q *quota) of(person string) *usage {
	u := q.people[person]
	if u == nil {
		u = &usage{}
		q.people[person] = u
	}
	return u
}

func (q *quota) releaser(u *usage) func() {
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		u.running--
	})
}

// forget drops the people who have been idle for an hour, whenever twice as many
// are known as were left the last time.
func (q *quota) forget() {
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

func (u *usage) prune(now time.Time) {
	n := 0
	for n < len(u.begun) && now.Sub(u.begun[n]) >= time.Hour {
		n++
	}
	u.begun = u.begun[n:]
}
