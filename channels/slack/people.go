package slack

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"parley/channels"
	"parley/channels/markup"
)

// A person is what Slack says about a user.
type person struct {
	name     string
	member   bool // a full member of the workspace: not a guest and not a bot
	timeZone string
}

// people looks up users. It remembers them only for a while, because guests become members, and members leave.
type people struct {
	api    *slackgo.Client
	log    *slog.Logger
	team   func(context.Context) (string, error) // returns the workspace's id
	known  *cache[person]
	failed *cache[error] // by user: the error of a lookup that has just failed

	mu           sync.Mutex
	limitedUntil time.Time // until when Slack's rate limit forbids lookups
}

const (
	// lookUpTimeout limits one lookup, because later messages in the chat wait for it.
	lookUpTimeout = 5 * time.Second
	// failedLookupTTL is how long a failed lookup is not repeated.
	failedLookupTTL = 2 * time.Second
	// unknownUserTTL is how long a user that Slack does not know is assumed not to be a member. It is short,
	// because the user may have joined a moment ago.
	unknownUserTTL = time.Minute
)

// newPeople makes an empty people; team returns the id of the app's workspace.
func newPeople(api *slackgo.Client, log *slog.Logger, team func(context.Context) (string, error)) *people {
	return &people{api: api, log: log, team: team, known: newCache[person](10 * time.Minute), failed: newCache[error](failedLookupTTL)}
}

// lookUp returns what Slack says about a user. If Slack refuses to describe a user, lookUp returns the zero person
// and no error. If lookUp fails, a later call may succeed.
func (p *people) lookUp(ctx context.Context, user string) (person, error) {
	if one, ok := p.known.get(user); ok {
		return one, nil
	}
	if err := p.recentFailure(user); err != nil {
		return person{}, err
	}
	call, t, done := startCall(ctx)
	defer done()
	call, cancel := context.WithTimeout(call, lookUpTimeout)
	defer cancel()
	u, err := p.api.GetUserInfoContext(call, user)
	if err != nil {
		return p.rememberFailure(ctx, user, asRepeatable(sendError(err, t)))
	}
	team, err := p.team(ctx)
	if err != nil {
		return person{}, err
	}
	one := person{name: chosenName(u), member: isMember(u, team), timeZone: u.TZ}
	p.known.put(user, one)
	return one, nil
}

// IsMember reports whether a person is a full member of the workspace, and neither a guest nor a bot.
func (p *people) IsMember(ctx context.Context, who string) (bool, error) {
	_, user, found := strings.Cut(who, ":")
	if !found {
		user = who
	}
	one, err := p.lookUp(ctx, user)
	return one.member, err
}

// TimeZone returns the time zone that a person has set in Slack.
func (p *people) TimeZone(ctx context.Context, who string) (string, error) {
	_, user, _ := strings.Cut(who, ":")
	one, err := p.lookUp(ctx, user)
	return one.timeZone, err
}

// recentFailure returns the error of a lookup of that user that has just failed, or the rate limit while it lasts;
// nil if Slack may be asked about the user.
func (p *people) recentFailure(user string) error {
	p.mu.Lock()
	quiet := time.Until(p.limitedUntil)
	p.mu.Unlock()
	if quiet > 0 {
		return &channels.SendError{Fault: channels.Retry, RateLimited: true, RetryAfter: quiet, Code: "ratelimited", Err: errors.New("too many calls")}
	}
	err, _ := p.failed.get(user)
	return err
}

// rememberFailure records a failed lookup, and returns the result of lookUp for it.
func (p *people) rememberFailure(ctx context.Context, user string, e *channels.SendError) (person, error) {
	switch {
	case e.Fault == channels.Rejected && e.Code != "missing_scope": // a scope may be added later
		p.log.LogAttrs(ctx, slog.LevelWarn, "Slack does not tell about a person, who counts as no member",
			slog.String("user", user), slog.String("code", e.Code))
		p.known.putFor(user, person{}, unknownUserTTL)
		return person{}, nil
	case e.RateLimited:
		p.mu.Lock()
		p.limitedUntil = time.Now().Add(max(e.RetryAfter, time.Second))
		p.mu.Unlock()
	case ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded):
		p.failed.put(user, e)
	}
	return person{}, e
}

// nameTimeout is how long a message waits for a person's name. Only the model is shown the name, so the message can
// do without it.
const nameTimeout = 2 * time.Second

// name returns a user's name; "" if Slack does not give it in time.
func (p *people) name(ctx context.Context, user string) string {
	ctx, cancel := context.WithTimeout(ctx, nameTimeout)
	defer cancel()
	one, err := p.lookUp(ctx, user)
	if err != nil {
		return ""
	}
	return one.name
}

// isMember reports whether a user is a full member of the workspace team: not a deleted user, a guest, a stranger
// or a bot.
func isMember(u *slackgo.User, team string) bool {
	switch {
	case u.Deleted, u.IsInvitedUser, u.IsStranger, u.IsRestricted, u.IsUltraRestricted:
		return false
	case u.IsBot, u.IsAppUser, u.IsConnectorBot, u.IsWorkflowBot, u.ID == slackbot:
		return false
	}
	// Members of an organization may have their home in another one of its workspaces.
	return u.TeamID == team || slices.Contains(u.Enterprise.Teams, team)
}

// maxName is the maximum length, in characters, of the name of a person that the model is shown.
const maxName = 64

// slackbot is a user that exists in every workspace and is not a person.
const slackbot = "USLACKBOT"

// chosenName returns the name that a user chose, on one line.
func chosenName(u *slackgo.User) string {
	for _, name := range []string{u.Profile.DisplayName, u.Profile.RealName, u.RealName, u.Name} {
		if name = markup.OneLine(name, maxName); name != "" {
			return name
		}
	}
	return ""
}

// maxCached is the maximum number of values in one cache.
const maxCached = 4096

// A cache remembers up to maxCached values, each for the time ttl unless putFor says otherwise. When it is full, it
// forgets a random one.
type cache[V any] struct {
	ttl time.Duration

	mu      sync.Mutex
	entries map[string]cacheEntry[V]
}

// A cacheEntry is a value in a cache, with the time until which it is remembered.
type cacheEntry[V any] struct {
	value V
	until time.Time
}

// newCache makes a cache that remembers each value for the time keep.
func newCache[V any](keep time.Duration) *cache[V] {
	return &cache[V]{ttl: keep, entries: map[string]cacheEntry[V]{}}
}

// get returns a key's value; false if the cache does not remember it.
func (c *cache[V]) get(key string) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.entries[key]
	if !ok || time.Now().After(one.until) {
		var none V
		return none, false
	}
	return one.value, true
}

// put stores a value for the cache's ttl.
func (c *cache[V]) put(key string, value V) { c.putFor(key, value, c.ttl) }

// putFor stores a value for the time keep. If there are too many, it drops a random one.
func (c *cache[V]) putFor(key string, value V, keep time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= maxCached {
		for old := range c.entries {
			delete(c.entries, old)
			break
		}
	}
	c.entries[key] = cacheEntry[V]{value, time.Now().Add(keep)}
}

// IsGroupID reports whether a text is the id of a channel or a group, as opposed to a name or a person's id.
func IsGroupID(id string) bool {
	return len(id) > 1 && (id[0] == 'C' || id[0] == 'G') && strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// IsUserID reports whether a text is the id of a Slack user, as opposed to a name or an address.
func IsUserID(id string) bool {
	return len(id) > 1 && (id[0] == 'U' || id[0] == 'W') && strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}
