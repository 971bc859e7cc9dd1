package slack

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	slackgo "github.com/slack-go/slack"

	"parley/channels"
)

// maxCached bounds each cache.
const maxCached = 4096

// A cache remembers for a while, within bounds; when it is full it forgets at random.
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

// A person is what is known of a user.
type person struct {
	name   string
	member bool // in full
}

// people knows the users of the workspace. It asks again after a while: guests
// become members, and members leave.
type people struct {
	channel *Channel
	known   *cache[person]
	failed  *cache[error] // what came of asking about a user just now

	mu    sync.Mutex
	quiet time.Time // Slack is not asked before
}

const (
	// whoTimeout bounds how long one person is asked about, as those who speak
	// after them in the same chat wait for that.
	whoTimeout = 5 * time.Second
	// failedKept is how long a failure keeps from asking again.
	failedKept = 2 * time.Second
	// nobodyKept is how long who Slack does not tell about stays nobody: they may
	// have joined a moment ago.
	nobodyKept = time.Minute
)

func newPeople(c *Channel) *people {
	return &people{channel: c, known: newCache[person](10 * time.Minute), failed: newCache[error](failedKept)}
}

// who tells about a user. Who Slack says that it will not tell about is nobody of
// this workspace; any other error may pass.
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
	u, err := p.channel.api.GetUserInfoContext(call, user)
	if err != nil {
		return p.refused(ctx, user, repeatable(sendError(err, t)))
	}
	me, err := p.channel.identity(ctx)
	if err != nil {
		return person{}, err
	}
	one := person{name: nameOf(u), member: isMember(u, me.Team)}
	p.known.put(user, one)
	return one, nil
}

// asked is the error of a user who was asked about just now, or of all while Slack
// asks for patience. Nil lets ask.
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

// refused deals with what came of asking about a user.
func (p *people) refused(ctx context.Context, user string, e *channels.SendError) (person, error) {
	switch {
	case e.Fault == channels.Rejected && e.Code != "missing_scope": // which the operator may give
		p.channel.log.LogAttrs(ctx, slog.LevelWarn, "Slack does not tell about a person, who counts as no member",
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

// nameTimeout is how long a message waits for the name of a person: it is told
// to the model, and decides nothing.
const nameTimeout = 2 * time.Second

// name is what a user is called; "" if that cannot be found out now.
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
	// In an organisation somebody's home may be another of its workspaces.
	return u.TeamID == team || slices.Contains(u.Enterprise.Teams, team)
}

// Member tells whether a person is a full member of the workspace.
func (c *Channel) Member(ctx context.Context, who string) (bool, error) {
	_, user, found := strings.Cut(who, ":")
	if !found {
		user = who
	}
	one, err := c.people.who(ctx, user)
	return one.member, err
}

// maxName bounds what the model is shown as a name, in characters.
const maxName = 64

// nameOf is what a person calls themselves, fit to be shown on one line.
func nameOf(u *slackgo.User) string {
	for _, name := range []string{u.Profile.DisplayName, u.Profile.RealName, u.RealName, u.Name} {
		if name = oneLine(name, maxName); name != "" {
			return name
		}
	}
	return ""
}

// oneLine is a text without what moves the cursor or turns the direction of
// writing, its spaces single, and no longer than that many characters.
func oneLine(s string, most int) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	runes := []rune(strings.Join(strings.Fields(clean), " "))
	return string(runes[:min(len(runes), most)])
}

// IsUserID tells the ids of Slack's users from names and addresses.
func IsUserID(id string) bool {
	return len(id) > 1 && (id[0] == 'U' || id[0] == 'W') && strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}
