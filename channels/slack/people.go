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

// A person is what Slack tells about a user.
type person struct {
	name   string
	member bool // a full member of the workspace: no guest and no bot
	zone   string
}

// people looks up users and remembers them for a while only: guests become
// members, and members leave.
type people struct {
	api    *slackgo.Client
	log    *slog.Logger
	team   func(context.Context) (string, error) // the workspace's id
	known  *cache[person]
	failed *cache[error] // by user: the error of the last question about them

	mu    sync.Mutex
	quiet time.Time // Slack limits these calls until then
}

const (
	// whoTimeout bounds one lookup, as the later messages of the chat wait for it.
	whoTimeout = 5 * time.Second
	// failedKept is how long a failed lookup is not repeated.
	failedKept = 2 * time.Second
	// nobodyKept is how long a user whom Slack does not know counts as no member.
	// It is short, as they may have joined a moment ago.
	nobodyKept = time.Minute
)

func newPeople(api *slackgo.Client, log *slog.Logger, team func(context.Context) (string, error)) *people {
	return &people{api: api, log: log, team: team, known: newCache[person](10 * time.Minute), failed: newCache[error](failedKept)}
}

// who looks up a user. A user about whom Slack refuses to tell is nobody of this
// workspace, which is no error; every error that who returns may pass.
func (p *people) who(ctx context.Context, user string) (person, error) {
	if one, ok := p.known.get(user); ok {
		return one, nil
	}
	if err := p.asked(user); err != nil {
		return person{}, err
	}
	call, t, done := begin(ctx)
	defer done()
	call, cancel := context.WithTimeout(call, whoTimeout)
	defer cancel()
	u, err := p.api.GetUserInfoContext(call, user)
	if err != nil {
		return p.refused(ctx, user, repeatable(sendError(err, t)))
	}
	team, err := p.team(ctx)
	if err != nil {
		return person{}, err
	}
	one := person{name: nameOf(u), member: isMember(u, team), zone: u.TZ}
	p.known.put(user, one)
	return one, nil
}

// asked returns the error of a lookup that failed just now, or the rate limit as
// long as it lasts. If it is nil, Slack may be asked about the user.
func (p *people) asked(user string) error {
	p.mu.Lock()
	quiet := time.Until(p.quiet)
	p.mu.Unlock()
	if quiet > 0 {
		return &channels.SendError{Fault: channels.Retry, Limited: true, RetryAfter: quiet, Code: "ratelimited", Err: errors.New("too many calls")}
	}
	err, _ := p.failed.get(user)
	return err
}

// refused remembers that a lookup failed.
func (p *people) refused(ctx context.Context, user string, e *channels.SendError) (person, error) {
	switch {
	case e.Fault == channels.Rejected && e.Code != "missing_scope": // a scope may be added later
		p.log.LogAttrs(ctx, slog.LevelWarn, "Slack does not tell about a person, who counts as no member",
			slog.String("user", user), slog.String("code", e.Code))
		p.known.putFor(user, person{}, nobodyKept)
		return person{}, nil
	case e.Limited:
		p.mu.Lock()
		p.quiet = time.Now().Add(max(e.RetryAfter, time.Second))
		p.mu.Unlock()
	case ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded):
		p.failed.put(user, e)
	}
	return person{}, e
}

// nameTimeout bounds how long a message waits for a person's name. The name is
// only shown to the model, so a message goes on without it.
const nameTimeout = 2 * time.Second

// name is a user's name; "" if Slack does not tell it in time.
func (p *people) name(ctx context.Context, user string) string {
	ctx, cancel := context.WithTimeout(ctx, nameTimeout)
	defer cancel()
	one, err := p.who(ctx, user)
	if err != nil {
		return ""
	}
	return one.name
}

func isMember(u *slackgo.User, team string) bool {
	switch {
	case u.Deleted, u.IsInvitedUser, u.IsStranger, u.IsRestricted, u.IsUltraRestricted:
		return false
	case u.IsBot, u.IsAppUser, u.IsConnectorBot, u.IsWorkflowBot, u.ID == slackbot:
		return false
	}
	// Members of an organisation may have their home in another of its workspaces.
	return u.TeamID == team || slices.Contains(u.Enterprise.Teams, team)
}

// maxName bounds what the model is shown as a name, in characters.
const maxName = 64

// slackbot is a user who is in every workspace and is no person.
const slackbot = "USLACKBOT"

// nameOf is the name that a person chose, fit to be shown on one line.
func nameOf(u *slackgo.User) string {
	for _, name := range []string{u.Profile.DisplayName, u.Profile.RealName, u.RealName, u.Name} {
		if name = markup.OneLine(name, maxName); name != "" {
			return name
		}
	}
	return ""
}

// maxCached bounds each cache.
const maxCached = 4096

// A cache remembers up to maxCached values, each for a while. When it is full it
// forgets one at random.
type cache[V any] struct {
	keep time.Duration

	mu sync.Mutex
	of map[string]cached[V]
}

type cached[V any] struct {
	value V
	until time.Time
}

func newCache[V any](keep time.Duration) *cache[V] {
	return &cache[V]{keep: keep, of: map[string]cached[V]{}}
}

func (c *cache[V]) get(key string) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.of[key]
	if !ok || time.Now().After(one.until) {
		var none V
		return none, false
	}
	return one.value, true
}

func (c *cache[V]) put(key string, value V) { c.putFor(key, value, c.keep) }

func (c *cache[V]) putFor(key string, value V, keep time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.of) >= maxCached {
		for old := range c.of {
			delete(c.of, old)
			break
		}
	}
	c.of[key] = cached[V]{value, time.Now().Add(keep)}
}

// IsGroupID tells the ids of channels and of groups from names and from people.
func IsGroupID(id string) bool {
	return len(id) > 1 && (id[0] == 'C' || id[0] == 'G') && strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// IsUserID tells the ids of Slack's users from names and addresses.
func IsUserID(id string) bool {
	return len(id) > 1 && (id[0] == 'U' || id[0] == 'W') && strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}
