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

// Links knows which accounts belong to the same human, and which chats are between the bot and one person alone;
// see [channels.Links] and [channels.Chats].
type Links interface {
	LinkedWith(ctx context.Context, person string) ([]channels.Link, error)
	PrivateChatAt(ctx context.Context, at bus.Address) (person string, alone bool, err error)
}

// maxLinked is how many linked accounts a caller sees at most, the earliest linked first.
const maxLinked = 20

// A readScope says which sessions a caller may read.
type readScope struct {
	all bool // whether it has every session; then places and people don't matter
	// places are the chats whose sessions the caller may read: that of its token, followed by the private ones of
	// linked accounts.
	places []place
	people []string // the people whose chats these are
}

// A place is a chat of a channel.
type place struct{ channel, chat string }

// has reports whether a session is in the scope.
func (s readScope) has(key sessionKey) bool {
	return s.all || key.user == "" && slices.Contains(s.places, place{key.at.Channel, key.at.Chat})
}

// hasKey reports whether the session with that key is in the scope.
func (s readScope) hasKey(text string) bool {
	key, err := parseKey(text)
	return err == nil && s.has(key)
}

// equals reports whether both scopes are the same.
func (s readScope) equals(other readScope) bool {
	return s.all == other.all && slices.Equal(s.places, other.places)
}

// readScopes finds out what callers may read. It reads links for each request, so a link that has ended shows
// nothing any longer.
type readScopes struct {
	links   Links
	parents *parents
}

// parents knows which session each sub-agent's session works for. It caches what it has found: a sub-agent's key
// contains a hash of its parent's key, so the parent never changes.
type parents struct {
	// find returns the session that a sub-agent's session works for; "" if none is known.
	find func(ctx context.Context, session string) (string, error)

	mu    sync.Mutex
	known map[string]string
}

// maxCachedParents is how many parents are cached at most.
const maxCachedParents = 10_000

// parentOf returns the session that a sub-agent's session works for; "" if none is known, which is not cached.
func (p *parents) parentOf(ctx context.Context, session string) (string, error) {
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
	if len(p.known) >= maxCachedParents || p.known == nil {
		p.known = map[string]string{}
	}
	p.known[session] = parent
	return parent, nil
}

// scopeOf returns which sessions a caller may read.
func (s readScopes) scopeOf(ctx context.Context, c exchange.Caller) (readScope, error) {
	if c.MayReadAll() {
		return readScope{all: true}, nil
	}
	return s.ownScope(ctx, c)
}

// ownScope returns which sessions a caller may read because they are its own, or belong to linked accounts. It
// considers at most maxLinked of these.
func (s readScopes) ownScope(ctx context.Context, c exchange.Caller) (readScope, error) {
	var found readScope
	if !c.MayWatch() {
		return found, nil
	}
	self := web.Person(c.Name)
	found.places, found.people = []place{{web.Name, c.Name}}, []string{self}
	if !c.MayReadOwn() || s.links == nil {
		return found, nil
	}
	linked, err := s.links.LinkedWith(ctx, self)
	linked = slices.DeleteFunc(linked, func(l channels.Link) bool { return l.Person == self })
	for _, l := range linked[:min(len(linked), maxLinked)] {
		at, alone, err := s.privateChat(ctx, l)
		if err != nil {
			return readScope{}, err
		}
		if alone && !slices.Contains(found.places, at) {
			found.places, found.people = append(found.places, at), append(found.people, l.Person)
		}
	}
	return found, err
}

// privateChat returns the chat in which a linked account talks to the bot; alone is false unless it is certain that
// nobody else speaks there.
func (s readScopes) privateChat(ctx context.Context, l channels.Link) (p place, alone bool, err error) {
	at, err := bus.ParseAddress(l.Chat)
	if err != nil || !strings.HasPrefix(l.Person, at.Channel+":") {
		return p, false, nil //nolint:nilerr // an address that can't be parsed is no known chat
	}
	p = place{at.Channel, at.Chat}
	if at.Channel == web.Name {
		return p, l.Person == web.Person(at.Chat), nil
	}
	person, alone, err := s.links.PrivateChatAt(ctx, at)
	return p, alone && (person == "" || person == l.Person), err
}

// includes reports whether a session is in a caller's scope. A sub-agent's session is if the session that it works for
// is.
func (s readScopes) includes(ctx context.Context, seen readScope, key sessionKey) (bool, error) {
	if seen.has(key) || key.at.Channel != bus.SubAgents || len(seen.places) == 0 {
		return seen.has(key), nil
	}
	parent, err := s.parents.parentOf(ctx, key.text)
	return err == nil && parent != "" && seen.hasKey(parent), err
}

// check returns nil if a caller may read the session with that key, or else a refusal. "" means all sessions.
func (s readScopes) check(ctx context.Context, c exchange.Caller, session string) error {
	seen, err := s.scopeOf(ctx, c)
	if err != nil || seen.all {
		return err
	}
	key, err := parseKey(session)
	if err != nil {
		return notReadable(c)
	}
	sees, err := s.includes(ctx, seen, key)
	if err == nil && !sees {
		return notReadable(c)
	}
	return err
}

// readable returns the key of the session in a request's path if the caller may read that session. It decides that
// before anybody checks whether the session exists, so a refusal doesn't reveal that.
func (s readScopes) readable(w *exchange.Answer, r *http.Request) (sessionKey, error) {
	if err := s.check(r.Context(), w.Caller, r.PathValue("key")); err != nil {
		return sessionKey{}, err
	}
	key, err := parseKey(r.PathValue("key"))
	if err != nil {
		return sessionKey{}, exchange.NotFound("this isn't a session's key: parley sessions, or GET /v1/sessions, lists them; in a path, percent-encode the key once more")
	}
	w.ID = key.text
	return key, nil
}

// notReadable refuses a request for something that the caller may not read.
func notReadable(c exchange.Caller) *exchange.Refusal {
	if c.MayReadOwn() {
		return exchange.Forbidden("this token may only read the sessions that it began, and the private ones of linked accounts")
	}
	return exchange.Forbidden("this token may only read the sessions that it began")
}
