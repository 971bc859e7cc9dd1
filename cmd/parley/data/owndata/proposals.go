package owndata

import (
	"context"
	"errors"
	"time"

	"parley/agent/proposals"
	"parley/channels"
	"parley/channels/people"
	"parley/sessions"
)

// A ProposalBook is the part of the channels' book that Proposals needs.
type ProposalBook interface {
	channels.Proposals
	MemoriesFor(ctx context.Context, agent, person string) (ofAgent, ofPerson channels.Memory, err error)
}

// Proposals stores in the book what agents propose to remember, and notifies people about it. It implements
// proposals.Store.
type Proposals struct {
	Book   ProposalBook
	Logs   sessions.Reader
	People *people.Commands
	// MayPropose reports whether agents may propose anything: not while a process of an older release serves, which
	// wouldn't erase proposals.
	MayPropose func(ctx context.Context) (bool, error)
}

// May implements proposals.Store.
func (s Proposals) May(ctx context.Context) (bool, error) { return s.MayPropose(ctx) }

// Last implements proposals.Store.
func (s Proposals) Last(ctx context.Context, session string) (covers int64, told bool, err error) {
	return s.Book.LastProposed(ctx, session)
}

// Past implements proposals.Store. It also reads entries that the session's summaries replace.
func (s Proposals) Past(ctx context.Context, session string, after, upTo int64) (entries []sessions.Entry, whole bool, err error) {
	from := max(after, upTo-proposals.MostEntries) + 1
	for e, err := range s.Logs.Read(ctx, session, from) {
		if errors.Is(err, sessions.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, false, err
		}
		if e.N > upTo {
			break
		}
		entries = append(entries, e)
	}
	return entries, from == after+1, nil
}

// Known implements proposals.Store.
func (s Proposals) Known(ctx context.Context, agent, person string) (proposals.Known, error) {
	ofAgent, ofPerson, err := s.Book.MemoriesFor(ctx, agent, person)
	if err != nil {
		return proposals.Known{}, err
	}
	known := proposals.Known{OfPerson: ofPerson.Content, OfAgent: ofAgent.Content, Untrusted: ofAgent.Untrusted || ofPerson.Untrusted}
	all, err := s.Book.ProposalsTo(ctx, person)
	for _, p := range all {
		known.Proposed = append(known.Proposed, p.Text)
	}
	return known, err
}

// Propose implements proposals.Store.
func (s Proposals) Propose(ctx context.Context, r proposals.Round) error {
	all := make([]channels.Proposal, len(r.Facts))
	for i, f := range r.Facts {
		all[i] = channels.Proposal{
			Scope: channels.ScopePerson, Owner: r.Person, Text: f.Text, Person: r.Person, At: r.At, Cause: r.Cause, Expires: time.Now().Add(proposals.Expires),
		}
		if f.OfAgent {
			all[i].Scope, all[i].Owner = channels.ScopeAgent, r.Agent
		}
	}
	return s.Book.StoreProposals(ctx, r.Session, r.Covers, all)
}

// Forget implements proposals.Store.
func (s Proposals) Forget(ctx context.Context, session string) error {
	return s.Book.ForgetProposals(ctx, session)
}

// Tell implements proposals.Store: the message has an id of its own, so it is sent once.
func (s Proposals) Tell(ctx context.Context, session string, covers int64) error {
	if err := s.People.Propose(ctx, session, covers); err != nil {
		return err
	}
	return s.Book.NoteProposalsTold(ctx, session, covers)
}
