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

// The states of a part and of a whole message.
const (
	Queued         = "queued"  // not tried yet, or tried and certainly not sent
	Sending        = "sending" // handed to the platform; after a crash, nobody knows whether it was sent
	Sent           = "sent"
	Failed         = "failed"  // will not be sent
	OutcomeUnknown = "unknown" // may have been sent or not; the bot neither sends it again nor tries to find out
	Drafted        = "draft"   // shows an unfinished answer until the finished one replaces it; posted if it has a PlatformID
)

// A SentPart is the recorded state of one part of a message.
type SentPart struct {
	Text  string // the text as rendered for the platform; empty once the part is finished
	Plain string
	State string
	// Edits is the platform's id of the message whose text this part replaces;
	// "" posts a message of its own.
	Edits string
	// Under is the platform's id of the earlier message that this part quotes, or whose thread it goes into.
	Under string
	// File says that the message's file is sent with this part.
	File bool
	// PlatformID is the platform's id of the part, once Sent.
	PlatformID string
	// Interrupted counts the sends of this part that ended without a known outcome.
	Interrupted int
	// Code is the platform's error code if the part Failed.
	Code string
}

// A Send is the book's record of one outbound message.
type Send struct {
	ID string
	To bus.Address
	// Session is the key of the session whose turn this message answers; "" if it answers no turn.
	Session string
	// Writer is the key of the session that wrote this message, if the message answers no turn; ""
	// if no session wrote it, or if it was recorded by a release without this field.
	Writer string
	Parts  []SentPart
	At     time.Time // when the record last changed
}

// State returns the state of the whole message: Failed, OutcomeUnknown or Queued if one of its parts is in that state
// (checked in this order; Sending counts as Queued), otherwise Sent.
func (s Send) State() string {
	state := Sent
	for _, p := range s.Parts {
		switch p.State {
		case Failed:
			return Failed
		case OutcomeUnknown:
			state = OutcomeUnknown
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

// Sends records each part of a message before it is sent, and what became of it afterward.
type Sends interface {
	// Begin records a message before it is sent: its first part as sending and the others as queued, except that
	// Failed and Drafted parts keep their state. It returns the message with fresh = true. If the message is
	// already recorded, Begin changes nothing, and returns the record, whose parts are as they were first rendered,
	// with fresh = false. The one exception is a message that this process recorded in the same write in which it
	// published it: the first Begin for it returns fresh = true. The record is durable when Begin returns.
	Begin(ctx context.Context, send Send) (known Send, fresh bool, err error)
	// Mark replaces the record of one part of a message by now, except for File and the texts; it drops the texts
	// once the part is finished. Interrupted never gets lower, because a lower count comes from a process that was
	// paused in the meantime. For the same reason, Mark returns ErrFinished instead of changing a finished part
	// back to queued, sending or drafted, or a sent part to any other state. The record is durable when Mark
	// returns.
	Mark(ctx context.Context, id string, part int, now SentPart) error
	// Lookup returns the message with that id; ErrNoSend if there is none.
	Lookup(ctx context.Context, id string) (Send, error)
}

// ErrNoSend says that the book has no message with that id.
var ErrNoSend = errors.New("no such message")

// ErrFinished says that a part of a message has been sent, has failed or was abandoned, perhaps by another process
// in the meantime.
var ErrFinished = errors.New("the part is finished")

// ErrNoCode says that a code is unknown, used or too old.
var ErrNoCode = errors.New("no such code")

// A Submission is a message that a program asks the bot to post in one or more places.
type Submission struct {
	ID     string // "m_" and a random rest; the outbound messages derived from it are ID/0, ID/1, …
	Origin string // the name of the token or webhook; only its holder, and those who may read everything, see the submission
	// Key is the Idempotency-Key; "" if there was none. Digest is a hash of the whole request: if a program uses
	// one key with two digests, it has made a mistake.
	Key          string
	Digest       string
	Destinations []bus.Address
	Expires      time.Time
	At           time.Time
}

// ErrKeyReused says that an Idempotency-Key was used before with a different request, so the program has made a
// mistake.
var ErrKeyReused = errors.New("the key was used before with another body")

// Submissions remembers the submissions of programs.
type Submissions interface {
	// Accept records a submission. If there is already one with the same Origin and Key that is at most a day old,
	// Accept returns that one with fresh = false, so that the same request gets the same answer; if its digest
	// differs, it returns ErrKeyReused. The record is durable when Accept returns. Only then does the caller
	// publish the messages, and it publishes them again if the request is repeated.
	Accept(ctx context.Context, s Submission) (recorded Submission, fresh bool, err error)
	// Submission returns the submission with that id; ErrNoSend if there is none.
	Submission(ctx context.Context, id string) (Submission, error)
}

// A SubmissionPublisher is a Submissions that can store a submission and publish its message in one write.
type SubmissionPublisher interface {
	Submissions
	// AcceptAndPublish does what Accept does and, if that records s, publishes the message m in the same write:
	// either both are durable or neither is. Nothing is published if s was already known, if the message is
	// refused, or if this book and the bus have no write in common; the caller then continues as after Accept.
	AcceptAndPublish(ctx context.Context, s Submission, topic bus.Topic, m bus.Message) (recorded Submission, published bool, err error)
}

// Subjects remembers the platform message that was last sent about each subject (something that several messages
// report on, such as an alert; see bus.Outbound.Subject), so that later messages about it can edit that message or
// be posted under it.
type Subjects interface {
	// BindMessage records the platform's id of the newest message about a subject (the id of its first part if it has
	// several).
	BindMessage(ctx context.Context, origin, subject string, at bus.Address, platformID string) error
	// BoundMessage returns the id that BindMessage recorded last; "" if there is none.
	BoundMessage(ctx context.Context, origin, subject string, at bus.Address) (platformID string, err error)
}

// Drafts lists drafts: messages that only show an answer while it is being written. In the book, each is a message
// of its own with one part, whose state is Drafted from before it is posted until the finished answer has replaced
// it.
type Drafts interface {
	// Drafts lists the drafts on a channel, oldest first.
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
	Expires  time.Time // when a request that nobody has approved ends
	// Account is the linked person under whose name this person is counted; see [Link]. Only FindPairing sets it.
	Account string
}

// OwnsBot reports whether the person owns the bot on their channel.
func (p Pairing) OwnsBot() bool { return p.Owner && p.Approved }

// Pairings remembers admissions and requests for admission.
type Pairings interface {
	// RequestPairing records that a person asks to be admitted, and returns the request: the open one, if there already is
	// one. Codes can't be guessed and are valid for an hour. Ask stores only ids; SetName adds a name.
	RequestPairing(ctx context.Context, person, chat string) (Pairing, error)
	// Admit admits a person by a code. If it is an owner's code, that is the person who said it, and otherwise the
	// person who asked to be admitted and was given the code. It returns ErrNoCode if the code is not valid. A
	// caller that lost the answer may repeat the call, which then returns the same result.
	Admit(ctx context.Context, by Admission) (Pairing, error)
	// OfferOwner makes an owner's code for a channel: the first person who says it there becomes the bot's owner.
	// The channel's earlier offer becomes void. The code is valid for an hour, but never once the channel has an
	// owner.
	OfferOwner(ctx context.Context, channel string) (code string, err error)
	// StandingOffer returns the channel's current offer of ownership, and makes one only if there is none. So
	// several processes, and a process before and after its restart, show the same code.
	StandingOffer(ctx context.Context, channel string) (code string, err error)
	// Pairings lists admissions and open requests, sorted by person.
	Pairings(ctx context.Context) ([]Pairing, error)
	// FindPairing returns a person's admission; false if there is none. The Pairing's Account is set in
	// both cases.
	FindPairing(ctx context.Context, person string) (Pairing, bool, error)
	// SetName records the platform's name for a person who was admitted or has asked to be.
	SetName(ctx context.Context, person, name string) error
	// Revoke removes a person's admission or request; ErrNoCode if there is none.
	Revoke(ctx context.Context, person string) error
}

// An Admission is the use of a code. Person and Chat are set when a person says an owner's code in a chat; they are
// empty when the owner approves a request.
type Admission struct {
	Code   string
	Person string
	Chat   string
}

// A Chat is a place where an admitted person has talked to the bot.
type Chat struct {
	Address bus.Address
	Session string // the key of the chat's session
	Group   bool
	Person  string    // CHANNEL:USER of the person whose private chat with the bot this is; "" in a group
	Name    string    // the name of that person, or of the group, on the platform, if it is known
	Seen    time.Time // when the first message was said in the chat
}

// Chats remembers the chats in which people have talked to the bot.
type Chats interface {
	// RecordChat records a chat; if the chat is known, it changes only the person and the name.
	RecordChat(ctx context.Context, chat Chat) error
	// Chats lists the chats, sorted by address.
	Chats(ctx context.Context) ([]Chat, error)
	// ChatsAfter lists at most limit of the chats that follow an address, sorted by address: those of one channel or,
	// if that is "", of all.
	ChatsAfter(ctx context.Context, channel string, after bus.Address, limit int) ([]Chat, error)
	// AssignSession changes a chat's session to chat.Session; if the chat is unknown, it records all fields. The record is
	// durable when AssignSession returns.
	AssignSession(ctx context.Context, chat Chat) error
	// SessionAt returns the key of the session of the chat at that address; "" if the chat is unknown.
	SessionAt(ctx context.Context, at bus.Address) (session string, err error)
	// PrivateChatAt reports whether a chat is known to consist of one person and the bot: whether it, or one of its
	// threads, is recorded and is not a group. It ignores the thread in `at`. If there are several such records,
	// the first one, sorted by thread with the chat's own record before those of its threads, names the person;
	// `person` is "" if that record names nobody.
	PrivateChatAt(ctx context.Context, at bus.Address) (person string, alone bool, err error)
	// SessionOf returns the key of the session that wrote a message, which is identified by its chat and the
	// platform's id; "" if no session is known to have written it. It ignores the thread in `at`.
	SessionOf(ctx context.Context, at bus.Address, message string) (session string, err error)
}

// Asks remembers the asks that parked turns wait for, so that an answer on any channel finds its session.
type Asks interface {
	// OpenAsk records an ask as open; if the ask is known, it changes nothing.
	OpenAsk(ctx context.Context, ask bus.Ask) error
	// LookupAsk returns the ask with that id; bus.ErrNoAsk if there is none.
	LookupAsk(ctx context.Context, id string) (bus.Ask, error)
	// EndAsk ends an open ask atomically: only one of several concurrent callers succeeds. The state is
	// bus.AskAnswered, which ends no ask that has expired, bus.AskExpired, which ends none before then, or
	// bus.AskWithdrawn. EndAsk returns the ask in its new state. `ours` reports that this call ended it, or that an
	// earlier call with the same answer and Cause did. It returns bus.ErrNoAsk if no ask has that id.
	EndAsk(ctx context.Context, id, state string, answer bus.Answer) (ask bus.Ask, ours bool, err error)
	// NoteTold records that the session's log contains the ask's end, so that UntoldAsks no longer lists it.
	NoteTold(ctx context.Context, id string) error
	// OpenAsks lists the open asks, the oldest first.
	OpenAsks(ctx context.Context) ([]bus.Ask, error)
	// HasOpenAsk reports whether a session has an open ask, that is, waits for people.
	HasOpenAsk(ctx context.Context, session string) (bool, error)
	// UntoldAsks lists the asks that ended before a time and for which NoteTold was not called: their sessions must
	// still be told.
	UntoldAsks(ctx context.Context, before time.Time) ([]bus.Ask, error)
	// Granted reports whether people have, since a time, approved the tool call with that hash for the whole
	// session; `by` says who did.
	Granted(ctx context.Context, session, hash string, since time.Time) (by string, ok bool, err error)
	// EndGrants ends all approvals that were given for a whole session: from now on, each call needs approval
	// again. If somebody later approves an ask that is open now for the whole session, that covers only one call.
	EndGrants(ctx context.Context, session string) error
}

// Processes remembers the newest format that each running process can read, as a number that grows from release to
// release. Data that an older process would misunderstand is written only when all processes can read it. Older
// releases record no number. It also remembers a description of each process, for those who ask about the fleet.
type Processes interface {
	// NoteProcess records the number for the process of that name, without a description; 0 removes the record.
	NoteProcess(ctx context.Context, name string, understands int) error
	// AllUnderstand reports whether each of these processes has recorded a number of at least `least`.
	AllUnderstand(ctx context.Context, names []string, least int) (bool, error)
	// DescribeProcess replaces the description of a process, if it has a record; "" removes the description. The record is
	// as good as new afterwards.
	DescribeProcess(ctx context.Context, name, about string) error
	// Descriptions returns, by name, the descriptions of those of these processes that have one.
	Descriptions(ctx context.Context, names []string) (map[string]string, error)
}

// A Note is a value that Notes keeps.
type Note struct {
	About string // the person, channel or other thing that the value is about
	Value string
	At    time.Time
}

// Notes stores one short value for each subject, such as "introduced", and each thing that the subject applies to,
// such as a person. Most notes record what the bot has already told people, so that it tells them only once. Values
// are ids, words that the program defines, and times, never anything that somebody said.
type Notes interface {
	// SetNote replaces a value; "" removes it. The value is durable when SetNote returns. To tell people something
	// once, a caller first publishes the message, under an id derived from its subject, and then calls SetNote.
	SetNote(ctx context.Context, subject, about, value string) error
	// SetNoteOnce stores a value unless there already is one, and returns the stored value, which is the same for
	// all callers.
	SetNoteOnce(ctx context.Context, subject, about, value string) (kept string, err error)
	// Noted returns the note on a subject and thing; the zero Note if there is none.
	Noted(ctx context.Context, subject, about string) (Note, error)
	// AllNoted lists the notes on a subject, sorted by About.
	AllNoted(ctx context.Context, subject string) ([]Note, error)
}

// A Link is one account of a human that is linked with other accounts of the same human, mostly on other channels.
type Link struct {
	Person string
	// Account is the account under whose name all linked accounts are counted: the same one for all of them.
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

// A LinkRequest is a person's request, made with /link, for a code by which another of their accounts is linked
// with this one.
type LinkRequest struct {
	Person string
	Chat   string
	Cause  string // the id of the message with the command, which may be delivered again
}

// Links remembers which people on different channels are the same human. They share what agents
// remember about any of them.
type Links interface {
	// OfferLink makes a code with which another account can be linked with a person's, and voids the person's
	// earlier code. A code is valid for ten minutes and can be used once. If OfferLink is called again with the
	// same Cause, it returns the same code.
	OfferLink(ctx context.Context, o LinkRequest) (code string, err error)
	// Link links a person with the maker of the code, and with everybody who is linked with either; it returns all
	// of them. It returns ErrNoCode if the code is not valid. A caller that lost the answer may repeat the call
	// with the same Cause, which then returns the same result.
	Link(ctx context.Context, l Linking) ([]Link, error)
	// Unlink separates a person from the others that the person is linked with, and returns those. Both sides keep
	// the memories.
	Unlink(ctx context.Context, person string) (others []Link, err error)
	// LinkedWith lists everybody who is linked with a person, including that person; nobody if the person has no links.
	LinkedWith(ctx context.Context, person string) ([]Link, error)
	// AllLinks returns, for each person who is linked with others, those others, in the order in which they were
	// linked.
	AllLinks(ctx context.Context) (map[string][]string, error)
}

// Memories stores what agents remember beyond one conversation, by scope and owner: memories of a
// person, shared by all who are linked with that person, and memories of an agent.
type Memories interface {
	// Memory returns an owner's memory; "" if there is none. `untrusted` reports that strangers may have written
	// some of it.
	Memory(ctx context.Context, scope, owner string) (content string, untrusted bool, err error)
	// MemoriesFor returns the memories of an agent and of a person in one query; if person is "", only the agent's.
	MemoriesFor(ctx context.Context, agent, person string) (ofAgent, ofPerson Memory, err error)
	// Remember replaces a memory by the result of change, which is passed the old content and may be called more
	// than once; the result "" deletes the memory. `call` is the key of the tool call that asks for this: if that
	// call has already been carried out, nothing changes. `overwrite` says that none of the old content remains,
	// `untrusted` that strangers may have written some of the new content.
	Remember(ctx context.Context, scope, owner, call string, overwrite, untrusted bool, change func(old string) (string, error)) error
	// Forget erases a memory, including from the book's files.
	Forget(ctx context.Context, scope, owner string) error
}

// EditableMemories lets somebody look through all memories, and erase one after seeing it.
type EditableMemories interface {
	// ListMemories lists the memories that aren't empty, without their texts, sorted by scope and owner. The list has
	// at most limit of them, and starts after the memory with the given scope and owner; if both are "", with the
	// first.
	ListMemories(ctx context.Context, scope, owner string, limit int) ([]MemoryInfo, error)
	// ForgetIf erases a memory like Forget, but only if may, which is passed the memory's text, returns no error.
	// Otherwise it returns may's error unchanged. may can be called more than once.
	ForgetIf(ctx context.Context, scope, owner string, may func(content string) error) error
}

// A Memory is the text remembered for one owner.
type Memory struct {
	Content   string
	Untrusted bool // strangers may have written it
}

// A MemoryInfo describes an owner's memory without its text.
type MemoryInfo struct {
	Scope, Owner string
	Bytes        int64
	Untrusted    bool // strangers may have written some of it
	Changed      time.Time
}

// The scopes of memories.
const (
	ScopePerson = "person" // the owner is CHANNEL:USER
	ScopeAgent  = "agent"  // the owner is the agent's name
)
