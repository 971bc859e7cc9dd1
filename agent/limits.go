package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"parley/agent/llm"
	"parley/bus"
	"parley/sessions"
)

// A quota counts each person's turns, at once and within the hour, in this process.
type quota struct {
	mu     sync.Mutex
	people map[string]*turnCount
	sweep  int // forget the idle when this many people are known
	now    func() time.Time
}

type turnCount struct {
	running int
	begun   []time.Time // within the last hour
}

func newQuota() *quota { return &quota{people: map[string]*turnCount{}, sweep: 1024, now: time.Now} }

// begin counts a turn in. It gives errLater to a person who has enough turns at
// once, and a refusal to one who has had enough in this hour. The refused turn
// counts as running until it is released, like any other.
func (q *quota) begin(p bus.Person, l Limits) (release func(), refusal *ending, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forgetIdle()
	u := q.count(p.ID)
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
	u := q.count(person)
	u.running++
	return q.releaser(u)
}

func (q *quota) count(person string) *turnCount {
	u := q.people[person]
	if u == nil {
		u = &turnCount{}
		q.people[person] = u
	}
	return u
}

func (q *quota) releaser(u *turnCount) func() {
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		u.running--
	})
}

// forgetIdle drops the people who have been idle for an hour, whenever twice as many
// are known as were left the last time.
func (q *quota) forgetIdle() {
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

func (u *turnCount) prune(now time.Time) {
	n := 0
	for n < len(u.begun) && now.Sub(u.begun[n]) >= time.Hour {
		n++
	}
	u.begun = u.begun[n:]
}

// reservedCalls is for how many model calls tokens are set aside at once: most
// turns then write to the budget once and not before each call.
const reservedCalls = 4

const settleTimeout = 5 * time.Second

// A reservation holds the tokens that a turn has set aside in its person's budget
// and not yet spent. What is set aside and never settled, because the process
// died, stays counted: the calls may have been made.
type reservation struct {
	id       string // "" while nothing is set aside
	reserved int64
	taken    int64 // by calls, as estimated before each
	spent    int64 // by calls, as the model reported
	settled  int   // reservations so far, which names the next
}

// take takes what a call may cost out of the reservation, and makes a new one
// first where it holds too little. An empty budget ends the turn, said aloud.
func (r *reservation) take(ctx context.Context, s *session, t *turn, tokens int64) error {
	if r.id != "" && r.taken+tokens <= r.reserved {
		r.taken += tokens
		return nil
	}
	r.settle(ctx, s)
	want := sessions.Reservation{
		// The fence is in it, so that a turn that is resumed by another holder does
		// not take the reservation of the first for its own.
		ID: fmt.Sprintf("%s#%d.%d.%d", t.id, s.lease.Claim().Fence, t.modelCalls+1, r.settled), Person: t.person,
		Tokens: reservedCalls * tokens, Cap: s.cfg.Limits().TokensDay, At: time.Now(),
	}
	err := s.cfg.Budget.Reserve(ctx, want)
	if errors.Is(err, sessions.ErrOverBudget) { // then just for this call
		want.Tokens = tokens
		err = s.cfg.Budget.Reserve(ctx, want)
	}
	if errors.Is(err, sessions.ErrOverBudget) {
		return failure("over_budget", "You have used up the %d tokens that a person may use in a day. The next day begins at 00:00 UTC.", want.Cap)
	}
	if err != nil {
		return fmt.Errorf("reserve tokens: %w", err)
	}
	r.id, r.reserved, r.taken, r.spent = want.ID, want.Tokens, tokens, 0
	return nil
}

// spend counts what an answer has cost.
func (r *reservation) spend(answer llm.Answer) {
	r.spent += answer.Usage.Input + answer.Usage.Output
}

// settle replaces what was set aside by what was spent.
func (r *reservation) settle(ctx context.Context, s *session) {
	if r.id == "" {
		return
	}
	// Also after the turn was cut off: what was spent is spent.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := s.cfg.Budget.Settle(ctx, r.id, r.spent); err != nil {
		s.slog.Warn("settling a reservation failed; it stays as reserved", slog.Any("error", err))
	}
	r.id = ""
	r.settled++
}
