package channels

import (
	"context"
	"errors"
	"time"

	"parley/bus"
)

// ErrNoProposal says that nothing of that id waits for a person's decision, or that the decision is not theirs.
var ErrNoProposal = errors.New("no such proposal")

// The states of a proposal.
const (
	ProposalOpen    = "open"    // the person has not decided
	ProposalKept    = "kept"    // it was added to the memory
	ProposalRefused = "refused" // it must not be proposed again
)

// A Proposal is something that an agent proposes to remember. It is in no memory unless a person keeps it.
type Proposal struct {
	ID    string // by which people name it
	Scope string // of the memory to which it would be added: OfPerson or OfAgent
	Owner string // of that memory
	Text  string
	State string
	// Person is the one in whose private chat the conversation was, and who decides. At is the chat.
	Person string
	At     bus.Address
	// Session, Covers and Cause are where it comes from: the conversation up to the entry Covers, and the message after
	// which it was proposed.
	Session string
	Covers  int64
	Cause   string
	Made    time.Time
	Expires time.Time // after this time nobody can keep it
}

// A ProposalDecision is what a person decides about a proposal.
type ProposalDecision struct {
	ID    string
	By    string // the person
	Owner bool   // who owns the bot: only they decide about memories of agents
	Keep  bool
	// Append returns a memory with a text added, or an error, such as that the memory would be too long. It may be
	// called more than once.
	Append func(old, text string) (string, error)
}

// Proposals stores what agents propose to remember: for each session the proposals of the newest part of its log for
// which a model was asked.
type Proposals interface {
	// LastProposed returns up to which entry of a session's log a model was asked last, 0 for none, and whether the
	// person was told of what it proposed.
	LastProposed(ctx context.Context, session string) (covers int64, told bool, err error)
	// Propose stores what a model proposes of a session's log up to the entry covers, which may be nothing. It does
	// nothing if a model was asked for that part, or a later one, before. It sets the ids, and deletes proposals that
	// have expired.
	Propose(ctx context.Context, session string, covers int64, all []Proposal) error
	// ForgetProposals erases the proposals of a session, also from the book's files.
	ForgetProposals(ctx context.Context, session string) error
	// NoteProposed records that the person was told.
	NoteProposed(ctx context.Context, session string, covers int64) error
	// Proposed returns the proposals of a session's log up to the entry covers, in their order and any state.
	Proposed(ctx context.Context, session string, covers int64) ([]Proposal, error)
	// ProposalsTo returns the proposals to a person and to those who are linked with them, in any state, the oldest
	// first.
	ProposalsTo(ctx context.Context, person string) ([]Proposal, error)
	// DecideProposal carries a person's decision out, and returns the proposal as it is then. The first decision
	// counts; whoever decides again gets that one. It returns ErrNoProposal for an unknown or expired proposal and for
	// one that is another person's to decide, and an error of Append as it is.
	DecideProposal(ctx context.Context, d ProposalDecision) (Proposal, error)
}
