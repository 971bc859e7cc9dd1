package channels

import (
	"context"
	"errors"
	"time"

	"parley/bus"
)

// The Book is what the channel side must remember. It is the truth about what
// was sent, as the log is the truth about what was said.
type Book interface {
	Sends
	Pairings
	Chats
	Asks
	Notes
	Ratings
}

// The states of a part and of a whole message.
const (
	Queued  = "queued"  // not tried, or tried and certainly not sent
	Sending = "sending" // handed to the platform; found after a crash it means unknown
	Sent    = "sent"
	Failed  = "failed"  // will not be sent
	Unsure  = "unknown" // may have been sent, and was left at that
	Drafted = "draft"   // sent, if it has a PlatformID, to be replaced by what is said in the end
)

// A SentPart is what became of one part.
type SentPart struct {
	Text  string // rendered; empty once nothing is to be sent any more
	Plain string
	State string
	// Edits is the platform's id of the message whose text this part replaces;
	// "" posts a message of its own.
	Edits string
	// Under is the platform's id of the earlier message that this part goes under.
	Under string
	// File says that the message's file goes with this part.
	File bool
	// PlatformID is the platform's id of the part, once Sent.
	PlatformID string
	// Interrupted counts the sends of this part whose outcome was unknown.
	Interrupted int
	// Code is why it Failed.
	Code string
}

// A Send is one outbound message as the book knows it.
type Send struct {
	ID string
	To bus.Address
	// Session is that of the turn whose answer it is; "" if it is none.
	Session string
	Parts   []SentPart
	At      time.Time // of the last change
}

// State is the message's: failed, unknown or queued if a part is, else sent.
func (s Send) State() string {
	state := Sent
	for _, p := range s.Parts {
		switch p.State {
		case Failed:
			return Failed
		case Unsure:
			state = Unsure
		case Queued, Sending:
			if state == Sent {
				state = Queued
			}
		}
	}
	return state
}

// Sends records each part before it is sent and what became of it.
type Sends interface {
	// Begin records a message and its parts as queued, with the first part as
	// sending, and returns it with fresh = true; parts given as Failed or
	// Drafted are recorded as that. A message that is known already is returned as it
	// stands, its parts as they were first rendered, and nothing is changed.
	// Durable when it returns.
	Begin(ctx context.Context, send Send) (known Send, fresh bool, err error)
	// Mark replaces all of one part but its texts, which it drops once the part
	// is not to be sent any more, and File. Interrupted only grows: a lower count
	// is of somebody who was paused meanwhile. So is the news that a part which is
	// through is queued, sending or drafted: it is passed over. Durable when it
	// returns.
	Mark(ctx context.Context, id string, part int, now SentPart) error
	// Lookup returns a message; ErrNoSend if none has that id.
	Lookup(ctx context.Context, id string) (Send, error)
}

// ErrNoSend says that the book knows no message of that id.
var ErrNoSend = errors.New("no such message")

// ErrNoCode says that a code is unknown, used or too old.
var ErrNoCode = errors.New("no such code")

// A Submission is what a program handed in to be said, at one or several places.
type Submission struct {
	ID     string // "m_" and more; its outbound messages are ID/0, ID/1, …
	Origin string // the token's or webhook's name: it alone, and who may read all, sees it
	// Key is the Idempotency-Key, "" if there was none, and Digest is of the
	// whole request: the same key with another digest is a mistake.
	Key          string
	Digest       string
	Destinations []bus.Address
	Expires      time.Time
	At           time.Time
}

// ErrOtherBody says that a key was used before for something else.
var ErrOtherBody = errors.New("the key was used before with another body")

// Submissions remembers what programs handed in.
type Submissions interface {
	// Accept records a submission. One with the same Origin and Key, not older than a
	// day, is returned instead, with fresh = false, so that the same request
	// gets the same answer; ErrOtherBody if its digest is another. Durable when
	// it returns: whoever accepts publishes afterwards, and again when asked again.
	Accept(ctx context.Context, s Submission) (known Submission, fresh bool, err error)
	// Submission returns one; ErrNoSend if none has that id.
	Submission(ctx context.Context, id string) (Submission, error)
}

// Subjects remembers which message of the platform's stands for a subject.
type Subjects interface {
	// Bind records the platform's id of the newest first part about a subject.
	Bind(ctx context.Context, origin, subject string, at bus.Address, platformID string) error
	// Bound returns it; "" if there is none.
	Bound(ctx context.Context, origin, subject string, at bus.Address) (platformID string, err error)
}

// Drafts remembers which messages only show an answer while it is being made.
// Each is a message of its own in the book, with one part, whose state is
// Drafted from before it is posted until the answer has replaced it.
type Drafts interface {
	// Drafts lists those of a channel, the oldest first.
	Drafts(ctx context.Context, channel string) ([]Send, error)
}

// A Pairing is a person's admission to a channel, asked for or given.
type Pairing struct {
	Person   string // CHANNEL:USER
	Name     string // what the platform calls them, where it is known
	Chat     string // CHANNEL:CHAT, where they talk to the bot alone
	Code     string // to approve it by; empty once approved
	Approved bool
	Owner    bool
	At       time.Time
	Expires  time.Time // of a request
}

// Pairings remembers who was admitted.
type Pairings interface {
	// Ask records that a person asks to be admitted and returns the request:
	// the one that stands, where one does. Codes are unguessable and live for
	// an hour. It keeps nothing but ids; SetName adds a name.
	Ask(ctx context.Context, person, chat string) (Pairing, error)
	// Admit admits the person of a code: of a request or, with owner, of the
	// offer that stands for their channel. ErrNoCode if it is not good. Repeated
	// because its answer was lost, it says again what it did.
	Admit(ctx context.Context, by Admission) (Pairing, error)
	// OfferOwner makes a code that whoever says it first in that channel owns
	// the bot there, and voids the channel's earlier offer. It is good for an
	// hour, and for nothing where somebody owns the bot already.
	OfferOwner(ctx context.Context, channel string) (code string, err error)
	// StandingOffer returns the channel's offer, and makes one only where none
	// stands: so several processes, and one that is started again, say the same.
	StandingOffer(ctx context.Context, channel string) (code string, err error)
	// Pairings lists admissions and open requests, by person.
	Pairings(ctx context.Context) ([]Pairing, error)
	// Paired returns a person's admission; false if there is none.
	Paired(ctx context.Context, person string) (Pairing, bool, error)
	// SetName notes what the platform calls a person who is admitted or asks to be.
	SetName(ctx context.Context, person, name string) error
	// Revoke removes a person's admission or request; ErrNoCode if there is none.
	Revoke(ctx context.Context, person string) error
}

// An Admission uses a code. Person and Chat are set when a person says an
// owner's code in a chat, and empty when the owner approves a request.
type Admission struct {
	Code   string
	Person string
	Chat   string
}

// A Chat is a place where the bot has been spoken to by somebody admitted.
type Chat struct {
	Address bus.Address
	Session string // its session's key
	Group   bool
	Person  string    // CHANNEL:USER, who talks to the bot alone there
	Name    string    // and what the platform calls them, where it is known
	Seen    time.Time // when its first message was said
}

// Chats remembers where the bot has been spoken to.
type Chats interface {
	// Meet records a chat; one that is known keeps all but its
	// person and name.
	Meet(ctx context.Context, chat Chat) error
	// Chats lists them by address.
	Chats(ctx context.Context) ([]Chat, error)
}

// Asks remembers what parked turns wait for, so that an answer on any channel finds
// its session.
type Asks interface {
	// OpenAsk records an ask as open; one that is known stays as it is.
	OpenAsk(ctx context.Context, ask bus.Ask) error
	// LookupAsk returns an ask; bus.ErrNoAsk if none has that id.
	LookupAsk(ctx context.Context, id string) (bus.Ask, error)
	// EndAsk ends an open ask, in one step: of all who try, one does. State is
	// bus.AskAnswered, which comes too late from the expiry on, bus.AskExpired, which
	// comes too early before it, or bus.AskWithdrawn. It returns the ask as it is
	// then, and whether it has ended by this call, or by an earlier one of the same
	// answer and Cause. bus.ErrNoAsk if none has that id.
	EndAsk(ctx context.Context, id, state string, answer bus.Answer) (ask bus.Ask, ours bool, err error)
	// NoteTold notes that the session's log has how an ask has ended.
	NoteTold(ctx context.Context, id string) error
	// OpenAsks lists the open asks, the oldest first.
	OpenAsks(ctx context.Context) ([]bus.Ask, error)
	// Waits tells whether a session has an open ask.
	Waits(ctx context.Context, session string) (bool, error)
	// UntoldAsks lists asks that ended before a time, of which the log does not know.
	UntoldAsks(ctx context.Context, before time.Time) ([]bus.Ask, error)
	// Granted tells whether what has that hash was approved for the session since a time,
	// and by whom.
	Granted(ctx context.Context, session, hash string, since time.Time) (by string, ok bool, err error)
	// EndGrants ends what was approved for a session: from now on each call asks again.
	// What is asked now and approved for the session later is approved for one call.
	EndGrants(ctx context.Context, session string) error
}

// Processes remembers which releases serve. A process says by a number what it
// understands of what others write; releases from before that say nothing.
type Processes interface {
	// NoteProcess notes what the process of that name understands; 0 forgets it.
	NoteProcess(ctx context.Context, name string, understands int) error
	// Understand tells whether all of these processes understand that much.
	Understand(ctx context.Context, names []string, least int) (bool, error)
}

// A Remark is something that was noted.
type Remark struct {
	About string // a person, a channel …
	Value string
	At    time.Time
}

// Notes remembers what the bot has told, so that it says it once: by a subject, such as
// "introduced", and what that is about. Values are ids, words of ours and times, and
// nothing that anybody said.
type Notes interface {
	// Note keeps a value in place of the one before; "" removes it. Durable when it
	// returns. Who tells something publishes it first, under an id made of what it is
	// about, and notes it then.
	Note(ctx context.Context, subject, about, value string) error
	// NoteFirst keeps a value unless there is one, and returns the one that is kept: the
	// same for all who ask.
	NoteFirst(ctx context.Context, subject, about, value string) (kept string, err error)
	// Noted returns what was noted last; the zero Remark if nothing was.
	Noted(ctx context.Context, subject, about string) (Remark, error)
	// AllNoted lists the remarks on a subject, by what they are about.
	AllNoted(ctx context.Context, subject string) ([]Remark, error)
}

// A Link is a person who is one with others: the same human on several channels.
type Link struct {
	Person string
	// Account is that of the people in whose name all of them are counted: the same for all
	// who are one.
	Account string
	Chat    string // where they talk to the bot alone
	Cause   string // the command that has linked them; "" for whoever made the code
}

// A Linking uses a code.
type Linking struct {
	Code   string
	Person string
	Chat   string
	Cause  string // the id of the command, which may come again
}

// An Offer asks for a code.
type Offer struct {
	Person string
	Chat   string
	Cause  string // the id of the command, which may come again
}

// Links remembers which people are one. What agents remember of them belongs to all of
// them.
type Links interface {
	// OfferLink makes a code by which somebody else becomes one with a person, and voids the
	// person's earlier one. It is good for ten minutes, and once. Repeated with the same
	// Cause it is the same code.
	OfferLink(ctx context.Context, o Offer) (code string, err error)
	// Link makes a person one with whoever made the code, and with all who are one with
	// either; it returns all of them. ErrNoCode if the code is not good. Repeated with the
	// same Cause because its answer was lost, it says again what it did.
	Link(ctx context.Context, l Linking) ([]Link, error)
	// Unlink parts a person from the others, and returns these. Each side keeps what is
	// remembered.
	Unlink(ctx context.Context, person string) (others []Link, err error)
	// Linked lists all who are one with a person, them included; nobody where they are
	// linked to nobody.
	Linked(ctx context.Context, person string) ([]Link, error)
}

// Memories is what agents remember beyond one conversation, by scope and owner: of a
// person, for whoever is one with them, and of an agent.
type Memories interface {
	// Recall returns what is remembered; untrusted says that strangers may have written it.
	Recall(ctx context.Context, scope, owner string) (content string, untrusted bool, err error)
	// RecallFor returns in one go what is remembered of an agent and of a person; "" is
	// nobody.
	RecallFor(ctx context.Context, agent, person string) (ofAgent, ofPerson Memory, err error)
	// Remember replaces what is remembered by what change makes of it, which may be called
	// more than once; "" forgets it. Call is the key of the tool call that wants it: done
	// before, nothing changes. With overwrite nothing of what was there stays.
	Remember(ctx context.Context, scope, owner, call string, overwrite, untrusted bool, change func(old string) (string, error)) error
	// Forget erases what is remembered, and its traces in files.
	Forget(ctx context.Context, scope, owner string) error
}

// A Memory is what is remembered of one owner.
type Memory struct {
	Content   string
	Untrusted bool // strangers may have written it
}

// The scopes of memories.
const (
	OfPerson = "person" // the owner is CHANNEL:USER
	OfAgent  = "agent"  // the owner is the agent's name
)
