package channels

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley/bus"
)

// The Book is the durable memory of the channel side. It is the authority on what was sent,
// as the session log is on what was said.
type Book interface {
	Sends
	Pairings
	Chats
	Asks
	Notes
	Ratings
	SignIns
}

// The states of a part and of a complete message.
const (
	Queued  = "queued"  // not tried yet, or tried and certainly not sent
	Sending = "sending" // handed to the platform; after a crash, it is unknown whether it was sent
	Sent    = "sent"
	Failed  = "failed"  // will not be sent
	Unsure  = "unknown" // may have been sent or not; the bot neither tries again nor tries to find out
	Drafted = "draft"   // shows an unfinished answer until the answer replaces it; sent if it has a PlatformID
)

// A SentPart is the recorded state of one part of a message.
type SentPart struct {
	Text  string // the text as rendered for the platform; empty once the part will not be sent anymore
	Plain string
	State string
	// Edits is the platform's id of the message whose text this part replaces;
	// "" posts a message of its own.
	Edits string
	// Under is the platform's id of the earlier message whose thread this part goes into,
	// or which it quotes.
	Under string
	// File says that the message's file is sent with this part.
	File bool
	// PlatformID is the platform's id of the part, once Sent.
	PlatformID string
	// Interrupted counts the sends of this part whose outcome was unknown.
	Interrupted int
	// Code is the platform's error code if the part Failed.
	Code string
}

// A Send is one outbound message as the book knows it.
type Send struct {
	ID string
	To bus.Address
	// Session is the key of the session whose turn this message answers; "" if it answers
	// none.
	Session string
	// Writer is the key of the session that wrote this message, if the message answers no turn; ""
	// if no session wrote it, or if it was recorded by a release without this field.
	Writer string
	Parts  []SentPart
	At     time.Time // when something last changed
}

// State returns the state of the complete message: Failed, Unsure or Queued if one of its parts is
// in that state, checked in this order, otherwise Sent.
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

// HasSentFile reports whether a file of the message was sent.
func (s Send) HasSentFile() bool {
	return slices.ContainsFunc(s.Parts, func(p SentPart) bool { return p.File && p.State == Sent })
}

// Sends records each part of a message before it is sent, and the outcome afterward.
type Sends interface {
	// Begin records a message before it is sent: its first part as sending and the others as
	// queued, except that Failed and Drafted parts stay so. It returns the message with fresh =
	// true. If the message is known already, Begin changes nothing and returns it as recorded, with
	// its parts as they were first rendered, and fresh = false; but once with fresh = true if this
	// process has recorded it with the message's publication. The record is durable when Begin
	// returns.
	Begin(ctx context.Context, send Send) (known Send, fresh bool, err error)
	// Mark replaces the record of one part of the message with that id by now, except File and the
	// texts, which it drops once the part will not be sent anymore. Interrupted only grows,
	// because a lower count comes from a process that was paused meanwhile. For the same reason
	// Mark changes no finished part back to queued, sending or drafted, and no sent part to
	// anything else, but returns ErrFinished. The record is durable when Mark returns.
	Mark(ctx context.Context, id string, part int, now SentPart) error
	// Lookup returns a message; ErrNoSend if none has that id.
	Lookup(ctx context.Context, id string) (Send, error)
}

// ErrNoSend says that the book has no message with that id.
var ErrNoSend = errors.New("no such message")

// ErrFinished says that a part of a message was sent, has failed or was abandoned, perhaps by another
// process meanwhile.
var ErrFinished = errors.New("the part is finished")

// ErrNoCode says that a code is unknown, used or too old.
var ErrNoCode = errors.New("no such code")

// A Submission is a message that a program asks the bot to post, in one or several places.
type Submission struct {
	ID     string // "m_" and a random rest; the outbound messages derived from it are ID/0, ID/1, …
	Origin string // the name of the token or webhook; only its holder, and those who may read everything, see the submission
	// Key is the Idempotency-Key, "" if there was none. Digest is a hash of the whole
	// request: the same key with another digest is the program's mistake.
	Key          string
	Digest       string
	Destinations []bus.Address
	Expires      time.Time
	At           time.Time
}

// ErrOtherBody says that an Idempotency-Key was used before with another request, so the program
// has made a mistake.
var ErrOtherBody = errors.New("the key was used before with another body")

// Submissions remembers the submissions of programs.
type Submissions interface {
	// Accept records a submission. If one with the same Origin and Key exists that is not
	// older than a day, Accept returns that one with fresh = false, so that the same
	// request gets the same answer; with another digest it returns ErrOtherBody. The record
	// is durable when Accept returns: the caller publishes the messages only then, and
	// publishes them again if the request is repeated.
	Accept(ctx context.Context, s Submission) (known Submission, fresh bool, err error)
	// Submission returns the submission with that id; ErrNoSend if there is none.
	Submission(ctx context.Context, id string) (Submission, error)
}

// A SubmissionPublisher is Submissions that can keep a submission and its message together.
type SubmissionPublisher interface {
	Submissions
	// AcceptAndPublish does what Accept does and, if that records s, publishes the message m in
	// the same write: in any case, both are durable or neither is. If s was known before, the
	// message is refused, or this book and the bus have no write in common, nothing is
	// published; the caller continues as after Accept.
	AcceptAndPublish(ctx context.Context, s Submission, topic bus.Topic, m bus.Message) (known Submission, published bool, err error)
}

// Subjects remembers which platform message shows each subject, so that later messages
// about the subject can refer to that one.
type Subjects interface {
	// Bind records, for a subject, the platform's id of the newest message about it (of its first
	// part if it has several).
	Bind(ctx context.Context, origin, subject string, at bus.Address, platformID string) error
	// Bound returns the id that Bind recorded last; "" if there is none.
	Bound(ctx context.Context, origin, subject string, at bus.Address) (platformID string, err error)
}

// Drafts remembers the drafts: messages that only show an answer while it is being written.
// Each is a message of its own in the book, with one part whose state is Drafted from
// before it is posted until the answer has replaced it.
type Drafts interface {
	// Drafts lists the drafts of a channel, the oldest first.
	Drafts(ctx context.Context, channel string) ([]Send, error)
}

// A Pairing is a person's admission to a channel, requested or granted.
type Pairing struct {
	Person   string // CHANNEL:USER
	Name     string // the person's name on the platform, if it is known
	Chat     string // CHANNEL:CHAT, the private chat of this person with the bot
	Code     string // the code by which the owner approves the request; empty once approved
	Approved bool
	Owner    bool
	At       time.Time
	Expires  time.Time // when an unapproved request ends
	// Account is the person under whose name this one is counted; see [Link]. Only Paired
	// sets it.
	Account string
}

// OwnsBot reports whether the person owns the bot on their channel.
func (p Pairing) OwnsBot() bool { return p.Owner && p.Approved }

// Pairings remembers admissions and requests for admission.
type Pairings interface {
	// Ask records that a person asks to be admitted, and returns the request: the open one,
	// if there is one. Codes are unguessable and valid for an hour. Ask stores only ids;
	// SetName adds a name.
	Ask(ctx context.Context, person, chat string) (Pairing, error)
	// Admit admits a person by a code: the one who asked and got that code or, if it is an owner's
	// code, the person who said it. It returns ErrNoCode if the code is not valid. Repeated because
	// its answer was lost, it returns the same result again.
	Admit(ctx context.Context, by Admission) (Pairing, error)
	// OfferOwner makes a code for a channel; the first person who says it there becomes the
	// bot's owner. The channel's earlier offer becomes void. The code is valid for an hour,
	// and never once the channel has an owner.
	OfferOwner(ctx context.Context, channel string) (code string, err error)
	// StandingOffer returns the channel's current offer of ownership, and makes one only if
	// there is none: so several processes, and a restarted one, show the same code.
	StandingOffer(ctx context.Context, channel string) (code string, err error)
	// Pairings lists admissions and open requests, sorted by person.
	Pairings(ctx context.Context) ([]Pairing, error)
	// Paired returns a person's admission; false if there is none. The Pairing's Account is set in
	// both cases.
	Paired(ctx context.Context, person string) (Pairing, bool, error)
	// SetName records the platform's name of a person who was admitted or has asked to be.
	SetName(ctx context.Context, person, name string) error
	// Revoke removes a person's admission or request; ErrNoCode if there is none.
	Revoke(ctx context.Context, person string) error
}

// An Admission is the use of a code. Person and Chat are set when a person says an owner's
// code in a chat, and empty when the owner approves a request.
type Admission struct {
	Code   string
	Person string
	Chat   string
}

// A Chat is a place where an admitted person has spoken to the bot.
type Chat struct {
	Address bus.Address
	Session string // the key of the chat's session
	Group   bool
	Person  string    // CHANNEL:USER of the person whose private chat with the bot this is; "" in a group
	Name    string    // the name of that person, or of the group, on the platform, if it is known
	Seen    time.Time // when the first message was said in the chat
}

// Chats remembers in which chats people have spoken to the bot.
type Chats interface {
	// Meet records a chat; of a known one it changes only the person and the name.
	Meet(ctx context.Context, chat Chat) error
	// Chats lists the chats, sorted by address.
	Chats(ctx context.Context) ([]Chat, error)
	// Assign records that a chat's session is chat.Session from now on; for an unknown
	// chat, it records all fields. The record is durable when Assign returns.
	Assign(ctx context.Context, chat Chat) error
	// SessionAt returns the key of the session of the chat with that address; "" for an unknown
	// chat.
	SessionAt(ctx context.Context, at bus.Address) (session string, err error)
	// AloneAt reports whether a chat is known to have one person and the bot alone: whether it, or one
	// of its threads, is recorded and is not a group. The thread in `at` does not matter. Of several such
	// records the first by thread, with the chat's own before all threads, says who the person is;
	// the person is "" if that record names none.
	AloneAt(ctx context.Context, at bus.Address) (person string, alone bool, err error)
	// SessionOf returns the key of the session that wrote the message to which the platform gave
	// that id in a chat; "" if no session is known to have written it. The thread in `at` does not
	// matter.
	SessionOf(ctx context.Context, at bus.Address, message string) (session string, err error)
}

// Asks remembers the asks for which parked turns wait, so that an answer on any channel
// finds its session.
type Asks interface {
	// OpenAsk records an ask as open; a known ask stays as it is.
	OpenAsk(ctx context.Context, ask bus.Ask) error
	// LookupAsk returns an ask; bus.ErrNoAsk if none has that id.
	LookupAsk(ctx context.Context, id string) (bus.Ask, error)
	// EndAsk ends an open ask in one step: only one of several concurrent callers succeeds.
	// The state is bus.AskAnswered, which fails from the expiry on, bus.AskExpired, which
	// fails before the expiry, or bus.AskWithdrawn. EndAsk returns the ask in its new
	// state. `ours` reports that this call ended it, or an earlier call with the same
	// answer and Cause. It returns bus.ErrNoAsk if no ask has that id.
	EndAsk(ctx context.Context, id, state string, answer bus.Answer) (ask bus.Ask, ours bool, err error)
	// NoteTold records that the session's log has the ask's end, so that UntoldAsks no longer lists
	// it.
	NoteTold(ctx context.Context, id string) error
	// OpenAsks lists the open asks, the oldest first.
	OpenAsks(ctx context.Context) ([]bus.Ask, error)
	// Waits reports whether a session has an open ask.
	Waits(ctx context.Context, session string) (bool, error)
	// UntoldAsks lists the asks that ended before a time and for which NoteTold was not called:
	// their sessions still have to learn of it.
	UntoldAsks(ctx context.Context, before time.Time) ([]bus.Ask, error)
	// Granted reports whether people have approved the tool call with that hash for the whole
	// session since a time, and by returns who did.
	Granted(ctx context.Context, session, hash string, since time.Time) (by string, ok bool, err error)
	// EndGrants ends the approvals for a whole session: from now on, each call needs
	// approval again. If an ask that is open now is approved for the session later, that
	// covers one call only.
	EndGrants(ctx context.Context, session string) error
}

// Processes remembers how new the formats are that each running process can read, as a number
// that grows with the releases. Data that an older process would misunderstand is written only
// when all processes can read it. Older releases record no number.
type Processes interface {
	// NoteProcess records the number for the process of that name; 0 removes the record.
	NoteProcess(ctx context.Context, name string, understands int) error
	// Understand reports whether all of these processes have recorded at least the number least.
	Understand(ctx context.Context, names []string, least int) (bool, error)
}

// A Note is a value that Notes keeps.
type Note struct {
	About string // the person, channel or other thing that the value is about
	Value string
	At    time.Time
}

// Notes keeps one short value for each subject, such as "introduced", and each thing that the subject
// is about, such as a person. Most notes record what the bot has already told people, so that it
// tells them once. Values are ids, words of the program and times, never anything that somebody said.
type Notes interface {
	// SetNote stores a value in place of the one before; "" removes it. The value is durable when
	// SetNote returns. To tell people something, a caller first publishes the message, under an id
	// derived from its subject, and then calls SetNote.
	SetNote(ctx context.Context, subject, about, value string) error
	// SetNoteOnce stores a value unless there is one, and returns the stored value: the same
	// for all callers.
	SetNoteOnce(ctx context.Context, subject, about, value string) (kept string, err error)
	// Noted returns the note on a subject about something; the zero Note if there is none.
	Noted(ctx context.Context, subject, about string) (Note, error)
	// AllNoted lists the notes on a subject, sorted by what they are about.
	AllNoted(ctx context.Context, subject string) ([]Note, error)
}

// A Link is one account of a human who is linked with other accounts of the same human,
// mostly on other channels.
type Link struct {
	Person string
	// Account is the person under whose name all linked people are counted: the same for
	// all of them.
	Account string
	Chat    string // the private chat of this person with the bot
	Cause   string // the id of the message with the command that linked this person; "" for the person who made the code
}

// A Linking is the use of a link code by a person.
type Linking struct {
	Code   string
	Person string
	Chat   string
	Cause  string // the id of the message with the command, which may be delivered again
}

// A LinkRequest is what a person asks for with /link: a code by which another account of theirs is
// linked with this one.
type LinkRequest struct {
	Person string
	Chat   string
	Cause  string // the id of the message with the command, which may be delivered again
}

// Links remembers which people on different channels are the same human. They share what agents
// remember about any of them.
type Links interface {
	// OfferLink makes a code that links somebody else with a person, and voids the person's
	// earlier code. A code is valid for ten minutes and can be used once. Repeated with the
	// same Cause, OfferLink returns the same code.
	OfferLink(ctx context.Context, o LinkRequest) (code string, err error)
	// Link links a person with the maker of the code, and with all who are linked with
	// either; it returns all of them. It returns ErrNoCode if the code is not valid.
	// Repeated with the same Cause because its answer was lost, it returns the same result
	// again.
	Link(ctx context.Context, l Linking) ([]Link, error)
	// Unlink separates a person from the linked others, and returns these. Each side keeps
	// the memories.
	Unlink(ctx context.Context, person string) (others []Link, err error)
	// Linked lists all people who are linked with a person, including that person; none if
	// the person has no links.
	Linked(ctx context.Context, person string) ([]Link, error)
	// AllLinked returns, for each person who is linked with others, these others, the earliest
	// linked first.
	AllLinked(ctx context.Context) (map[string][]string, error)
}

// Memories stores what agents remember beyond one conversation, by scope and owner: memories of a
// person, shared by all who are linked with that person, and memories of an agent.
type Memories interface {
	// Memory returns the memory of an owner, "" if there is none; untrusted says that strangers may
	// have written some of it.
	Memory(ctx context.Context, scope, owner string) (content string, untrusted bool, err error)
	// RecallFor returns the memories of an agent and of a person in one query; "" means no
	// person.
	MemoriesFor(ctx context.Context, agent, person string) (ofAgent, ofPerson Memory, err error)
	// Remember replaces a memory by the result of change, which gets the old content and may be
	// called more than once; the result "" deletes the memory. `call` is the key of the tool call
	// that asks for this: if that call was carried out before, nothing changes. `overwrite` says
	// that none of the old content stays, `untrusted` that strangers may have written some of the
	// new content.
	Remember(ctx context.Context, scope, owner, call string, overwrite, untrusted bool, change func(old string) (string, error)) error
	// Forget erases a memory, also from the book's files.
	Forget(ctx context.Context, scope, owner string) error
}

// EditableMemories are memories for whoever looks through all of them and erases one that they have seen.
type EditableMemories interface {
	// KeptMemories lists the memories that hold something, without their texts, by scope and owner. It
	// begins after that owner's in that scope.
	KeptMemories(ctx context.Context, scope, owner string, limit int) ([]KeptMemory, error)
	// ForgetIf is Forget for a memory that is only erased if may, which gets its text, returns no error. It
	// returns may's error as it is. may can be called more than once.
	ForgetIf(ctx context.Context, scope, owner string, may func(content string) error) error
}

// A Memory is the text remembered for one owner.
type Memory struct {
	Content   string
	Untrusted bool // strangers may have written it
}

// A KeptMemory says that something is remembered for an owner, and how much.
type KeptMemory struct {
	Scope, Owner string
	Bytes        int64
	Untrusted    bool // strangers may have written some of it
	Changed      time.Time
}

// The scopes of memories.
const (
	OfPerson = "person" // the owner is CHANNEL:USER
	OfAgent  = "agent"  // the owner is the agent's name
)
