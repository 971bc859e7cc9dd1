// Package sessions defines the log of a conversation: its entries and its fence. It also defines people's
// budgets, audit records and background jobs.
//
// The log is authoritative. A turn's state is computed from its entries, so resuming a turn means reading
// them. The package contains the contract and the types of the entries; sqlstore implements the contract,
// and sessionstest is its test suite.
package sessions

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Errors that tell callers what to do next.
var (
	// ErrFenced says that the log was opened under a higher fence: another process holds
	// the session now.
	ErrFenced = errors.New("session is held under a higher fence")
	// ErrConflict says that the log has other entries at that place. The caller's copy is out of date,
	// and the log must be opened again.
	ErrConflict = errors.New("other entries stand at that place")
	// ErrOverBudget says that a reservation would exceed the person's cap.
	ErrOverBudget = errors.New("over budget")
	// ErrNotFound says that there is no such session.
	ErrNotFound = errors.New("no such session")
	// ErrUnpublished says that nothing was written because a message that was to be published with the
	// entries was refused. The wrapped error says why.
	ErrUnpublished = errors.New("the message was refused")
	// ErrInvalidKey says that a text cannot be a session's key.
	ErrInvalidKey = errors.New("invalid session key")
)

// SeenError says that a message was already answered, or is being answered.
type SeenError struct {
	Cause string // the message's id
	Turn  string // the turn that answers it
}

// Error names the message and the turn that answers it.
func (e *SeenError) Error() string {
	return fmt.Sprintf("message %s already belongs to turn %s", e.Cause, e.Turn)
}

// A Store stores the logs of sessions.
type Store interface {
	// Open returns the log of the session with that key, and creates the session if needed. From then on
	// only holders of this fence or a higher one may write to it. Open returns ErrFenced if the log was
	// opened under a higher fence; it may be opened again under the same fence.
	Open(ctx context.Context, key string, fence int64) (Log, error)
}

// A Log is one session's log for one holder of its lease. Only one goroutine may use it
// at a time.
type Log interface {
	// Entries returns, in order, the entries that the log had when it was opened and that still
	// matter: the newest summary, everything that it does not cover, what it keeps of the rest, and
	// every entry of an unfinished turn. Entries that were appended since are not included.
	Entries() []Entry

	// Next returns the number that the next appended entry will have. Numbers begin at 1.
	Next() int64

	// Append writes all of the entries or none; at is the number of the first. When it returns nil they
	// are durable. It sets their N, and their At where that is zero. Appending the same entries at the
	// same place succeeds again, so that a commit whose answer was lost can be retried; if the log has
	// other entries there, it returns ErrConflict. It returns ErrFenced if the log was opened under a
	// higher fence, and *SeenError if the session already knows one of their causes: causes are unique
	// per session, forever.
	Append(ctx context.Context, at int64, entries ...Entry) error
}

// A SoonLog is a Log that can also append entries without waiting for the disk. This is for entries whose
// loss would not matter yet.
type SoonLog interface {
	// Soon returns the same log as one whose Append may return before the entries are durable. They
	// become durable within the given time, or earlier if an Append of the original log returns. A crash
	// before that loses them; if the disk refuses them, the next Append returns ErrConflict.
	Soon(within time.Duration) Log
}

// A Publisher is a Log that can publish messages in the write that appends entries, because the bus
// stores its messages in the same database as the log.
type Publisher interface {
	// Publishing returns the same log as one whose Append also publishes the mail: after a crash either
	// all of the entries and messages are there, or none. Nothing is published if nothing is appended. A
	// message with an id that was published lately is dropped, so an append may be repeated with its
	// mail. If a message is refused, Append returns ErrUnpublished. Publishing returns false if messages
	// are stored elsewhere.
	Publishing(mail ...Mail) (Log, bool)
}

// Mail is a message that is published with entries. Its topic and its key name its mailbox.
type Mail struct {
	Topic, Key string
	ID         string // unique within the topic
	Body       []byte
}

// A MessageEraser is a Log that can remove the content of one message, for example when its sender
// deletes it.
type MessageEraser interface {
	// EraseMessage empties the entry of the message with the id cause, and those of its later edits; it
	// ignores an id that is not known. The change is durable when EraseMessage returns, and the next
	// erasure removes the text from the store's files. It returns ErrFenced as Append does.
	EraseMessage(ctx context.Context, cause string) error
}

// A Titler is a Log that can replace a conversation's title, which is otherwise its first words.
type Titler interface {
	// SetTitle gives the conversation a title in place of the words of entry n. It does nothing if these
	// are no longer the title, or if something was erased from the session since the log was opened. The
	// title is dropped when a new conversation begins, and with each erasure from the session.
	SetTitle(ctx context.Context, n int64, title string) error
}

// A ReopenableLog is a Log that its last holder can open again without reading it.
type ReopenableLog interface {
	// Release frees the memory of the entries, for a log that may be opened again: Entries returns
	// none from now on.
	Release()
	// Reopen does what Store.Open does, and returns true, if the log is still as this holder knows it. It
	// returns false and changes nothing if the log was opened under another fence, if something was
	// appended that this holder does not know, or if something was erased. It returns ErrFenced if it
	// knows of a higher fence.
	Reopen(ctx context.Context, fence int64) (bool, error)
	// ReopenLater does what Reopen does as a part of the next Append, which saves a write. If Reopen
	// would return false, that Append returns ErrConflict, and writes nothing. Until then, holders of a
	// lower fence are not shut out, so the caller may only do what depends on that Append. ReopenLater
	// returns ErrFenced if it knows of a higher fence.
	ReopenLater(fence int64) error
}

// A Peeker is a Store that can also read a log without a write.
type Peeker interface {
	// Peek returns the log of a session as its last holder has left it. Its caller is not a holder
	// yet: the log is a ReopenableLog and has to be reopened, now or with the first Append. So the
	// caller notices any change of the session after Peek.
	//
	// Entries omits the entries of finished turns that only record progress (Kind.IsProgressOnly), except the
	// newest usage of a turn and the newest entry of the log. The turn_started and turn_done of these
	// turns have no Data. Peek returns false if there is no such session, or nothing in it yet.
	Peek(ctx context.Context, key string) (Log, bool, error)
}

// Info describes a session in a list.
type Info struct {
	Key       string    `json:"key"`
	Agent     string    `json:"agent"`
	Channel   string    `json:"channel"`
	LastEntry int64     `json:"entries"` // the number of its last entry
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"` // when something was last appended
	// Title is the first words that somebody said there since the conversation last started over, or what
	// a model has made of them, and Person is who said them. Both are set only in lists, and until they
	// are erased.
	Title  string `json:"title,omitempty"`
	Person string `json:"person,omitempty"`
	// Erasures counts how often something was erased from the session. Whoever keeps a copy of what they
	// have read can compare it.
	Erasures int64 `json:"-"`
}

// A SessionQuery says which sessions to list. An empty field matches all sessions; but without a Limit, none are
// listed.
type SessionQuery struct {
	Agent   string
	Channel string
	Chat    string   // a chat of Channel, which must be set too
	Person  string   // somebody who has spoken there
	Keys    []string // only these; nil for all
	Words   string   // the title contains each of these words, or parts of words, in any case
	Since   time.Time
	After   *Info // only sessions that follow this one, which is the Next of the previous page
	Limit   int
}

// A SessionPage contains some of the sessions that match a query.
type SessionPage struct {
	Sessions []Info
	// Next says where the next page begins; only its Key and Updated matter. It is nil if no session
	// follows.
	Next *Info
}

// A Reader reads sessions without holding their leases.
type Reader interface {
	// List returns sessions whose keys are greater than after, in the order of keys, at
	// most limit.
	List(ctx context.Context, after string, limit int) ([]Info, error)
	// ListIn does what List does, for the sessions of one chat of a channel.
	ListIn(ctx context.Context, channel, chat, after string, limit int) ([]Info, error)
	// Recent returns the sessions that match a query, most recently used first. It looks at a few
	// thousand sessions at most, so a page may have fewer than Limit, or none, although others follow.
	// A session that is used meanwhile moves to the front.
	Recent(ctx context.Context, q SessionQuery) (SessionPage, error)
	// Read yields a session's entries in order, from number from on, including those that summaries
	// cover. It yields ErrNotFound if there is no such session.
	Read(ctx context.Context, key string, from int64) iter.Seq2[Entry, error]
	// Info returns what List returns for one session, without Title and Person; ErrNotFound if there is
	// no such session.
	Info(ctx context.Context, key string) (Info, error)
	// Find returns the session's entry whose Cause is cause; ErrNotFound if there is none.
	Find(ctx context.Context, key, cause string) (Entry, error)
}

// A Finder finds sessions of one place, which is the beginning of their keys: AGENT:CHANNEL:CHAT, or that
// with the thread. The amount that it reads grows with the number of sessions at that place.
type Finder interface {
	// FindIn returns the key of the session at a place whose log contains the message with that id;
	// ErrNotFound if none does.
	FindIn(ctx context.Context, place, cause string) (key string, err error)
	// RecentIn lists the sessions of a place, the most recently used first, at most limit.
	RecentIn(ctx context.Context, place string, limit int) ([]Info, error)
}

// A Reservation sets tokens aside for one model call, before it is made.
type Reservation struct {
	ID         string // begins with the turn's id and "#"; the same id reserves only once
	Session    string // the turn's session; "" if the reservation is never taken over
	Person     string // who pays
	Tokens     int64  // the most that the calls may cost
	Used       int64  // the part of Tokens that finished calls have cost
	SentTokens int64  // the part of Tokens that the current call costs at least, if it was sent
	Cap        int64  // the most that the person may have spent and reserved on that day
	At         time.Time
}

// A Budget limits what people spend in a day (UTC), over all processes.
type Budget interface {
	// Reserve reserves tokens, all or none. It returns ErrOverBudget if these, together with what the
	// person has spent and reserved on that day, would exceed the cap. A reservation that nobody extends
	// is settled after a minute at most, at the known cost of its calls; Settle may still correct that
	// for an hour.
	Reserve(ctx context.Context, r Reservation) error
	// Renew changes the number of tokens of a reservation, some of which are used by now. It
	// returns ErrOverBudget, and changes nothing, if that would exceed the cap, and false if the
	// reservation no longer exists.
	Renew(ctx context.Context, r Reservation) (known bool, err error)
	// TakeOver turns what earlier holders have reserved for a turn into the reservation r, of which only
	// ID, Session, Person, Cap and At matter. The used part stays spent. TakeOver returns how many tokens
	// are left; false if nothing was reserved. A repeated call returns the same.
	TakeOver(ctx context.Context, r Reservation, turn string) (tokens int64, ok bool, err error)
	// Extend records that the reservations with these ids are still being worked on.
	Extend(ctx context.Context, ids []string) error
	// Settle replaces a reservation with the tokens that the call has cost. r must be the same as
	// for Reserve. It does nothing for an unknown or already settled reservation.
	Settle(ctx context.Context, r Reservation, tokens int64) error
	// Spent returns the tokens that a person has spent and reserved on the day (UTC) that contains
	// at.
	Spent(ctx context.Context, person string, at time.Time) (int64, error)
	// Reserved returns the part of these that is only reserved.
	Reserved(ctx context.Context, person string, at time.Time) (int64, error)
}

// Erased counts what was erased.
type Erased struct {
	Sessions     []string `json:"sessions"` // the keys of sessions that were erased completely
	PartlyErased []string `json:"shared"`   // the keys of sessions in which only one person's turns were erased
	Entries      int64    `json:"entries"`
}

// An Eraser removes sessions and people from the store. When it returns, the erased data is
// gone from the store's files too and cannot come back: an erased session starts over under
// a higher fence, and an open log of it returns ErrConflict. The ids of messages stay
// known, so that none is answered a second time.
type Eraser interface {
	// EraseSession erases a session. ErrNotFound if there is none.
	EraseSession(ctx context.Context, key string) (Erased, error)
	// ErasePerson erases the sessions in which nobody else has spoken. In the other
	// sessions it erases every turn that the person caused or spoke in, what was said
	// there on their behalf, and the summaries that cover these. Turns of others in which
	// the person only answered a request stay, without the person's name and words.
	// Budgets keep their sums and lose the person.
	ErasePerson(ctx context.Context, person string) (Erased, error)
	// EraseBefore erases the sessions that were last written to before that time, unless one of their
	// turns waits for people. In the other sessions, it erases the turns that ended before that time. Of people of whom
	// nothing is left then, nobody can tell anymore which lines of the audit's archive are about them.
	EraseBefore(ctx context.Context, before time.Time) (Erased, error)
}
