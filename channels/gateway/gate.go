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
	policyPairing = "pairing"
	policyList    = "list"
	policyMembers = "members"
	policyOpen    = "open"
)

// Access holds the settings that say who may talk to the bot on a channel. They contain users' ids as the platform
// has them, without the channel.
type Access struct {
	// Policy is "pairing" (people whom an owner has approved; "" means the same), "list" (AllowFrom), "members"
	// (full members of the workspace) or "open" (anybody).
	Policy    string
	AllowFrom []string
	Owners    []string
	// Approvers may talk to the bot, and may approve tool calls when conversations ask for approval.
	Approvers []string
	// Chats are the groups in which the bot listens; nil means all of them. The list does not cover private chats.
	Chats []ListenedGroup
	// Mention says which messages in those groups are meant for the bot, unless Chats says otherwise; "" means
	// channels.MentionThreads.
	Mention channels.Mention
}

// A ListenedGroup is a group in which the bot listens. ID is the platform's id, without the channel.
type ListenedGroup struct {
	ID      string
	Mention channels.Mention // "" means the Mention of Access
}

// mention returns which messages in a group are meant for the bot.
func (a Access) mention(chat string) channels.Mention {
	all := cmp.Or(a.Mention, channels.MentionThreads)
	if a.Chats == nil {
		return all
	}
	i := slices.IndexFunc(a.Chats, func(c ListenedGroup) bool { return c.ID == chat })
	if i < 0 {
		return channels.MentionNowhere
	}
	return cmp.Or(a.Chats[i].Mention, all)
}

// policy returns the policy; "pairing" if it is empty.
func (a Access) policy() string {
	if a.Policy == "" {
		return policyPairing
	}
	return a.Policy
}

// CheckAccess returns an error if the settings are wrong for this channel.
func CheckAccess(ch channels.Channel, a Access) error {
	switch a.policy() {
	case policyPairing, policyOpen:
	case policyList:
		if len(a.AllowFrom) == 0 && len(a.Owners) == 0 {
			return errors.New(`access = "list" admits nobody: name users in allow_from or owners`)
		}
	case policyMembers:
		if _, ok := channels.AsMembershipChecker(ch); !ok {
			return errors.New(`access = "members": this platform doesn't say who is a member; use "pairing" or "list"`)
		}
	default:
		return fmt.Errorf(`access = %q: want "pairing", "list", "members" or "open"`, a.Policy)
	}
	if len(a.AllowFrom) > 0 && a.policy() != policyList {
		return fmt.Errorf(`allow_from has no effect with access = %q: set access = "list" or remove it`, a.policy())
	}
	return nil
}

// A Gate holds the current Access of a channel. The settings may be replaced while the gate is in use. The zero
// Gate admits people by pairing.
type Gate struct {
	access atomic.Pointer[Access]
}

// Set replaces the settings; the next message is judged by the new ones.
func (g *Gate) Set(a Access) {
	a.AllowFrom, a.Owners, a.Approvers = slices.Clone(a.AllowFrom), slices.Clone(a.Owners), slices.Clone(a.Approvers)
	a.Chats = slices.Clone(a.Chats)
	g.access.Store(&a)
}

// Mention returns which messages in a group are meant for the bot. It is a channels.MentionIn.
func (g *Gate) Mention(chat string) channels.Mention { return g.settings().mention(chat) }

func (g *Gate) settings() Access {
	if a := g.access.Load(); a != nil {
		return *a
	}
	return Access{}
}

// isApprover reports whether the settings name the person as an approver.
func (g *Gate) isApprover(who bus.Person) bool {
	_, user, _ := strings.Cut(who.ID, ":")
	return slices.Contains(g.settings().Approvers, user)
}

// Judge reports whether a person may talk to the bot now; it doesn't need a message from them. It returns the
// person with their rights, and with the account if it read the book. It returns ErrUnjudged if the platform can't
// say now who this is, and another error if the book can't be read.
func (g *Gate) Judge(ctx context.Context, ch channels.Channel, book channels.Pairings, who bus.Person) (bus.Person, bool, error) {
	judged, ok, err := g.checkAdmission(ctx, ch, book, who)
	judged.Approver = ok && g.isApprover(who)
	return judged, ok && err == nil, err
}

// checkAdmission reports whether a person may talk to the bot, and returns the person with Owner set if they own it. It
// always admits approvers and owners, both the owners in the settings and those in the book. It reads the book each
// time, because another process may write to it.
func (g *Gate) checkAdmission(ctx context.Context, ch channels.Channel, book channels.Pairings, who bus.Person) (_ bus.Person, ok bool, err error) {
	who.Owner = false
	access := g.settings()
	_, user, _ := strings.Cut(who.ID, ":")
	if slices.Contains(access.Owners, user) {
		who.Owner = true
		return who, true, nil
	}
	paired, known, err := book.FindPairing(ctx, who.ID)
	if err != nil {
		return who, false, fmt.Errorf("look up a pairing: %w", err)
	}
	who.Account = paired.Account
	if known && paired.Owner {
		who.Owner = true
		return who, true, nil
	}
	if slices.Contains(access.Approvers, user) {
		return who, true, nil
	}
	switch access.policy() {
	case policyOpen:
		return who, true, nil
	case policyPairing:
		return who, known && paired.Approved, nil
	case policyList:
		return who, slices.Contains(access.AllowFrom, user), nil
	case policyMembers:
		m, ok := channels.AsMembershipChecker(ch)
		if !ok { // CheckAccess refuses such settings at the start
			return who, false, nil
		}
		member, err := m.IsMember(ctx, who.ID)
		if err != nil {
			return who, false, fmt.Errorf("%w: %w", channels.ErrUnjudged, err)
		}
		return who, member, nil
	}
	return who, false, nil
}
