package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"parley/bus"
	"parley/channels"
)

// The policies of Access.
const (
	byPairing = "pairing"
	byList    = "list"
	byMembers = "members"
	byNobody  = "open"
)

// Access says who may talk to the bot on a channel. Users are named by the
// platform's id alone, without the channel.
type Access struct {
	// Policy is "pairing" (also if empty: whom an owner has approved), "list"
	// (AllowFrom), "members" (full members of the workspace) or "open" (anybody).
	Policy    string
	AllowFrom []string
	Owners    []string
	// Approvers may talk to the bot, and approve what conversations ask for.
	Approvers []string
	// Chats are the groups in which the bot listens; nil is all of them. A chat of one
	// person with the bot is none.
	Chats []Chat
	// Mention is when it listens there, where Chats does not say otherwise; "" is
	// channels.MentionThreads.
	Mention channels.Mention
}

// A Chat is a group in which the bot listens, named by the platform's id alone.
type Chat struct {
	ID      string
	Mention channels.Mention // "" is what Access says
}

// mention is what holds in a group.
func (a Access) mention(chat string) channels.Mention {
	all := cmp.Or(a.Mention, channels.MentionThreads)
	if a.Chats == nil {
		return all
	}
	i := slices.IndexFunc(a.Chats, func(c Chat) bool { return c.ID == chat })
	if i < 0 {
		return channels.MentionNowhere
	}
	return cmp.Or(a.Chats[i].Mention, all)
}

func (a Access) policy() string {
	if a.Policy == "" {
		return byPairing
	}
	return a.Policy
}

// CheckAccess says what is wrong with the settings, for this channel.
func CheckAccess(ch channels.Channel, a Access) error {
	switch a.policy() {
	case byPairing, byNobody:
	case byList:
		if len(a.AllowFrom) == 0 && len(a.Owners) == 0 {
			return errors.New(`access = "list" admits nobody: name users in allow_from or owners`)
		}
	case byMembers:
		if _, ok := channels.AsMembershipChecker(ch); !ok {
			return errors.New(`access = "members": this platform does not tell who is a member; use "pairing" or "list"`)
		}
	default:
		return fmt.Errorf(`access = %q: want "pairing", "list", "members" or "open"`, a.Policy)
	}
	if len(a.AllowFrom) > 0 && a.policy() != byList {
		return fmt.Errorf(`allow_from has no effect with access = %q: set access = "list" or remove it`, a.policy())
	}
	return nil
}

// A Gate keeps the settings by which people are let in. They may be replaced
// while it is in use. The zero Gate admits by pairing.
type Gate struct {
	access atomic.Pointer[Access]
}

// Set replaces the settings, from the next message on.
func (g *Gate) Set(a Access) {
	a.AllowFrom, a.Owners, a.Approvers = slices.Clone(a.AllowFrom), slices.Clone(a.Owners), slices.Clone(a.Approvers)
	a.Chats = slices.Clone(a.Chats)
	g.access.Store(&a)
}

// Mention tells when what is said in a group is meant for the bot. It is a
// channels.MentionIn.
func (g *Gate) Mention(chat string) channels.Mention { return g.settings().mention(chat) }

func (g *Gate) settings() Access {
	if a := g.access.Load(); a != nil {
		return *a
	}
	return Access{}
}

// approves tells whether a person is one of the settings' approvers.
func (g *Gate) approves(who bus.Person) bool {
	_, user, _ := strings.Cut(who.ID, ":")
	return slices.Contains(g.settings().Approvers, user)
}

// Judge tells whether a person may talk to the bot now, outside of a message of theirs,
// and returns them with the rights that they have. ErrUnjudged is as of a message.
func (g *Gate) Judge(ctx context.Context, ch channels.Channel, book channels.Pairings, who bus.Person) (bus.Person, bool, error) {
	owner, ok, err := g.admits(ctx, ch, book, who)
	who.Owner, who.Approver = owner, ok && g.approves(who)
	return who, ok && err == nil, err
}

// admits judges a person. Owners always pass: those of the settings, and those
// whom the book knows; and so do approvers. The book is asked each time, because another process may
// write to it.
func (g *Gate) admits(ctx context.Context, ch channels.Channel, book channels.Pairings, who bus.Person) (owner, ok bool, err error) {
	access := g.settings()
	_, user, _ := strings.Cut(who.ID, ":")
	if slices.Contains(access.Owners, user) {
		return true, true, nil
	}
	paired, known, err := book.Paired(ctx, who.ID)
	if err != nil {
		return false, false, fmt.Errorf("look up a pairing: %w", err)
	}
	if known && paired.Owner {
		return true, true, nil
	}
	if slices.Contains(access.Approvers, user) {
		return false, true, nil
	}
	switch access.policy() {
	case byNobody:
		return false, true, nil
	case byPairing:
		return false, known && paired.Approved, nil
	case byList:
		return false, slices.Contains(access.AllowFrom, user), nil
	case byMembers:
		m, ok := channels.AsMembershipChecker(ch)
		if !ok { // CheckAccess refuses this at the start
			return false, false, nil
		}
		member, err := m.Member(ctx, who.ID)
		if err != nil {
			return false, false, fmt.Errorf("%w: %w", channels.ErrUnjudged, err)
		}
		return false, member, nil
	}
	return false, false, nil
}
