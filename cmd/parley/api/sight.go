package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"parley/bus"
	"parley/channels"
	"parley/channels/web"
	"parley/cmd/parley/api/exchange"
)

// Links knows which accounts are those of one human, and which chats have one person and the bot alone; see
// [channels.Links] and [channels.Chats].
type Links interface {
	Linked(ctx context.Context, person string) ([]channels.Link, error)
	AloneAt(ctx context.Context, at bus.Address) (person string, alone bool, err error)
}

// mostLinked is how many linked accounts a caller sees at most, the earliest linked first.
const mostLinked = 20

// A sight says which sessions a caller may read.
type sight struct {
	all bool // every one, and places and people do not count
	// places are the chats of which the caller may read the sessions: that of its token, and then the
	// private ones of linked accounts.
	places []place
	people []string // whose chats these are
}

// A place is a chat of a channel.
type place struct{ channel, chat string }

// has reports whether a session may be read.
func (s sight) has(key sessionKey) bool {
	return s.all || key.user == "" && slices.Contains(s.places, place{key.at.Channel, key.at.Chat})
}

// hasKey reports whether the session with that key may be read.
func (s sight) hasKey(text string) bool {
	key, err := parseKey(text)
	return err == nil && s.has(key)
}

// isAs reports whether another sight is the same.
func (s sight) isAs(other sight) bool {
	return s.all == other.all && slices.Equal(s.places, other.places)
}

// sights finds out what callers may read. Links are read for each request, so one that has ended shows
// nothing any more.
type sights struct {
	links   Links
	parents *parents
}

// parents knows for which sessions those of sub-agents work. What it has found it keeps: a sub-agent's key has a hash
// of its parent's, so that this never changes.
type parents struct {
	// find returns the session for which a sub-agent's session works; "" if none is known.
	find func(ctx context.Context, session string) (string, error)

	mu    sync.Mutex
	known map[string]string
}

// mostParents is how many parents are kept at most.
const mostParents = 10_000

// of returns the session for which a sub-agent's session works; "" if none is known, which is not kept.
func (p *parents) of(ctx context.Context, session string) (string, error) {
	p.mu.Lock()
	parent := p.known[session]
	p.mu.Unlock()
	if parent != "" {
		return parent, nil
	}
	parent, err := p.find(ctx, session)
	if err != nil || parent == "" {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= mostParents || p.known == nil {
		p.known = map[string]string{}
	}
	p.known[session] = parent
	return parent, nil
}

// of returns which sessions a caller may read.
func (s sights) of(ctx context.Context, c exchange.Caller) (sight, error) {
	if c.MayReadAll() {
		return sight{all: true}, nil
	}
	return s.own(ctx, c)
}

// own returns which sessions a caller may read because they are its own, or those of linked accounts.
func (s sights) own(ctx context.Context, c exchange.Caller) (sight, error) {
	var found sight
	if !c.MayWatch() {
		return found, nil
	}
	self := web.Person(c.Name)
	found.places, found.people = []place{{web.Name, c.Name}}, []string{self}
	if !c.MayReadOwn() || s.links == nil {
		return found, nil
	}
	linked, err := s.links.Linked(ctx, self)
	linked = slices.DeleteFunc(linked, func(l channels.Link) bool { return l.Person == self })
	for _, l := range linked[:min(len(linked), mostLinked)] {
		at, alone, err := s.privateChat(ctx, l)
		if err != nil {
			return sight{}, err
		}
		if alone && !slices.Contains(found.places, at) {
			found.places, found.people = append(found.places, at), append(found.people, l.Person)
		}
	}
	return found, err
}

// privateChat returns the chat in which a linked account talks to the bot; alone is false unless it is sure
// that nobody else speaks there.
func (s sights) privateChat(ctx context.Context, l channels.Link) (p place, alone bool, err error) {
	at, err := bus.ParseAddress(l.Chat)
	if err != nil || !strings.HasPrefix(l.Person, at.Channel+":") {
		return p, false, nil //nolint:nilerr // nobody knows where
	}
	p = place{at.Channel, at.Chat}
	if at.Channel == web.Name {
		return p, l.Person == web.Person(at.Chat), nil
	}
	person, alone, err := s.links.AloneAt(ctx, at)
	return p, alone && (person == "" || person == l.Person), err
}

// sees reports whether a session is one of those that a caller sees. A sub-agent's session is seen by those who
// see the one for which it works.
func (s sights) sees(ctx context.Context, seen sight, key sessionKey) (bool, error) {
	if seen.has(key) || key.at.Channel != bus.SubAgents || len(seen.places) == 0 {
		return seen.has(key), nil
	}
	parent, err := s.parents.of(ctx, key.text)
	return err == nil && parent != "" && seen.hasKey(parent), err
}

// check returns nil if a caller may read the session with that key, or else a refusal. "" is every session.
func (s sights) check(ctx context.Context, c exchange.Caller, session string) error {
	seen, err := s.of(ctx, c)
	if err != nil || seen.all {
		return err
	}
	key, err := parseKey(session)
	if err != nil {
		return notReadable(c)
	}
	sees, err := s.sees(ctx, seen, key)
	if err == nil && !sees {
		return notReadable(c)
	}
	return err
}

// readable returns the session's key in a request's path if the caller may read that session. It decides
// that before anybody looks whether the session exists, so a refusal does not tell.
func (s sights) readable(w *exchange.Answer, r *http.Request) (sessionKey, error) {
	if err := s.check(r.Context(), w.Caller, r.PathValue("key")); err != nil {
		return sessionKey{}, err
	}
	key, err := parseKey(r.PathValue("key"))
	if err != nil {
		return sessionKey{}, exchange.NotFound("this isn't a session's key: parley sessions, or GET /v1/sessions, lists them; in a path a key is percent-encoded once more")
	}
	w.ID = key.text
	return key, nil
}

// notReadable refuses what a caller may not read.
func notReadable(c exchange.Caller) *exchange.Refusal {
	if c.MayReadOwn() {
		return exchange.Forbidden("this token may only read the sessions that it began and the private ones of linked accounts")
	}
	return exchange.Forbidden("this token may only read the sessions that it began")
}
