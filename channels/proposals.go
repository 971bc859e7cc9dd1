package channels

import (
	"context"
	"errors"
	"time"

	"parley/bus"
)

// ErrNoProposal says that no proposal with that id is waiting for a decision, or that another person has to decide it.
var ErrNoProposal = errors.New("no such proposal")

// The states of a proposal.
const (
	ProposalOpen    = "open"    // the person has not decided
	ProposalKept    = "kept"    // it was added to the memory
	ProposalRefused = "refused" // it must not be proposed again
)

// A Proposal is something that an agent proposes to remember. It is in no memory unless a person keeps it.
type Proposal struct {
	ID    string // people type it
	Scope string // the scope of the memory to which it would be added: ScopePerson or ScopeAgent
	Owner string // the owner of that memory
	Text  string
	State string
	// Person is the person who had the conversation in a private chat, and who decides. At is the chat.
	Person string
	At     bus.Address
	// Session, Covers and Cause say where it comes from: the conversation, up to the entry Covers, and the message
	// after which it was proposed.
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
	Owner bool   // whether the person owns the bot: only owners decide about agents' memories
	Keep  bool
	// Append returns a memory with a text added, or an error, such as that the memory would be too long. It may be
	// called more than once.
	Append func(old, text string) (string, error)
}

// Proposals stores what agents propose to remember: for each session the proposals from the newest part of its log
// about which a model was asked.
type Proposals interface {
	// LastProposed returns up to which entry of a session's log a model was asked last, 0 for none, and whether the
	// person was told what it proposed.
	LastProposed(ctx context.Context, session string) (covers int64, told bool, err error)
	// StoreProposals stores what a model proposes from a session's log up to the entry covers, which may be nothing. It does
	// nothing if a model was asked about that part, or a later one, before. It sets the ids, and deletes expired
	// proposals.
	StoreProposals(ctx context.Context, session string, covers int64, all []Proposal) error
	// ForgetProposals erases the proposals from a session, also from the book's files.
	ForgetProposals(ctx context.Context, session string) error
	// NoteProposalsTold records that the person was told.
	NoteProposalsTold(ctx context.Context, session string, covers int64) error
	// ProposalsFrom returns the proposals from a session's log up to the entry covers, in order and in any state.
	ProposalsFrom(ctx context.Context, session string, covers int64) ([]Proposal, error)
	// ProposalsTo returns the proposals to a person and to the person's linked accounts, in any state, oldest first.
	ProposalsTo(ctx context.Context, person string) ([]Proposal, error)
	// DecideProposal carries out a person's decision, and returns the proposal as it is afterwards. Only the first
	// decision counts. It returns ErrNoProposal if the proposal is unknown or expired, or if another person has to
	// decide it, and returns an error from Append unchanged.
	DecideProposal(ctx context.Context, d ProposalDecision) (Proposal, error)
}
