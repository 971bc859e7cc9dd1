package recall

import (
	"context"
	"sync"
	"time"

	"parley/bus"
	"parley/channels/console"
	"parley/channels/web"
	"parley/sessions/search/sight"
)

// Chat implements sight.Facts. The book knows the chats on platforms; each program and terminal has its chats to
// itself.
func (f *Finder) Chat(ctx context.Context, at sight.Place) (sight.Chat, error) {
	switch at.Channel {
	case web.Name:
		return sight.Chat{Known: true, Person: web.Person(at.Chat)}, nil
	case console.Name:
		return sight.Chat{Known: true, Person: console.Owner}, nil
	}
	chat, known, err := f.cfg.Book.ChatAt(ctx, bus.Address{Channel: at.Channel, Chat: at.Chat})
	return sight.Chat{Known: known, Group: chat.Group, Person: chat.Person}, err
}

// IsIn implements sight.Facts.
func (f *Finder) IsIn(ctx context.Context, at sight.Place, person string) (bool, error) {
	return f.cfg.Members.isIn(ctx, at, person)
}

// IsClosed implements sight.Facts.
func (f *Finder) IsClosed(ctx context.Context, at sight.Place, thread string) (bool, error) {
	return f.cfg.Members.isClosed(ctx, bus.Address{Channel: at.Channel, Chat: at.Chat, Thread: thread})
}

// groupFacts answers for everybody who reads a chat: they all see what was said in it and nothing else.
type groupFacts struct {
	*Finder
	at sight.Place
}

// Chat implements sight.Facts.
func (h groupFacts) Chat(ctx context.Context, at sight.Place) (sight.Chat, error) {
	if at != h.at {
		return sight.Chat{}, nil
	}
	return h.Finder.Chat(ctx, at)
}

// askAllTimeout is the maximum time in which one search asks platforms who reads their chats and threads.
const askAllTimeout = 8 * time.Second

// factsWithDeadline answers from Facts, but stops asking platforms at a certain time.
type factsWithDeadline struct {
	sight.Facts
	deadline time.Time
}

// IsIn implements sight.Facts.
func (f factsWithDeadline) IsIn(ctx context.Context, at sight.Place, person string) (bool, error) {
	ctx, cancel := context.WithDeadline(ctx, f.deadline)
	defer cancel()
	return f.Facts.IsIn(ctx, at, person)
}

// IsClosed implements sight.Facts.
func (f factsWithDeadline) IsClosed(ctx context.Context, at sight.Place, thread string) (bool, error) {
	ctx, cancel := context.WithDeadline(ctx, f.deadline)
	defer cancel()
	return f.Facts.IsClosed(ctx, at, thread)
}

// MembershipLifetime is the minimum time between two requests to a platform whether a person is in a chat.
const MembershipLifetime = 10 * time.Minute

// maxMembers is the maximum number of platforms' answers that are kept.
const maxMembers = 10_000

// ChatAccess says who may read chats, according to the platforms.
type ChatAccess interface {
	// MayRead reports whether a person may read a group because the platform currently lists them as a member. An
	// error means that this is not known now.
	MayRead(ctx context.Context, at bus.Address, person string) (bool, error)
	// IsClosed reports whether only some of a chat's members read the thread of an address.
	IsClosed(ctx context.Context, at bus.Address) (bool, error)
}

// Members knows who is in which group, according to what the platforms have said within the last ten minutes.
type Members struct {
	Access ChatAccess

	mu    sync.Mutex
	known map[membership]*membershipAnswer
}

// A membership is what a platform is asked about: whether a person is in a group.
type membership struct {
	at     sight.Place
	person string
}

// A membershipAnswer is a platform's answer, or the error that it gave instead.
type membershipAnswer struct {
	ready    chan struct{} // closed once the answer is there
	askedAt  time.Time     // when the platform was asked
	isMember bool
	err      error
}

// isIn reports whether a platform lists a person as a member of a group. If several callers want to know at the
// same time, only one asks. A failed answer is kept too, unless the caller that asked gave up waiting.
func (m *Members) isIn(ctx context.Context, at sight.Place, person string) (bool, error) {
	of := membership{at, person}
	for {
		a, mine := m.takeOrBegin(of)
		if mine {
			return m.fill(ctx, of, a)
		}
		select {
		case <-a.ready:
		case <-ctx.Done():
			return false, ctx.Err()
		}
		if m.mayKeep(of, a) {
			return a.isMember, a.err
		}
	}
}

// fill asks the platform whether the person is in the group, and gives the answer to everybody who waits for it. If ctx
// ends, it forgets the answer, so that somebody else asks.
func (m *Members) fill(ctx context.Context, of membership, a *membershipAnswer) (bool, error) {
	defer close(a.ready)
	a.isMember, a.err = m.ask(ctx, of)
	if ctx.Err() != nil {
		m.drop(of, a)
		a.err = ctx.Err()
	}
	return a.isMember, a.err
}

// takeOrBegin returns the answer that is known or being fetched; mine is true if the caller must fetch it.
func (m *Members) takeOrBegin(of membership) (a *membershipAnswer, mine bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if a := m.known[of]; a != nil && now.Sub(a.askedAt) < MembershipLifetime {
		return a, false
	}
	if len(m.known) >= maxMembers || m.known == nil {
		m.known = map[membership]*membershipAnswer{}
	}
	a = &membershipAnswer{ready: make(chan struct{}), askedAt: now}
	m.known[of] = a
	return a, true
}

func (m *Members) drop(of membership, a *membershipAnswer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[of] == a {
		delete(m.known, of)
	}
}

func (m *Members) mayKeep(of membership, a *membershipAnswer) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[of] == a
}

// askTimeout is how long a platform may take to answer.
const askTimeout = 4 * time.Second

// ask asks a platform whether a person is in a group, for at most askTimeout.
func (m *Members) ask(ctx context.Context, of membership) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return m.Access.MayRead(ctx, bus.Address{Channel: of.at.Channel, Chat: of.at.Chat}, of.person)
}

// isClosed reports whether only some of a chat's members read a thread.
func (m *Members) isClosed(ctx context.Context, at bus.Address) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return m.Access.IsClosed(ctx, at)
}
