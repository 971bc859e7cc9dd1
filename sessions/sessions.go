// Package sessions is what was said: entries, the log of a session, its fence, and what people have spent.
//
// The log is the truth. What a turn has done is a fold over its entries, so
// resuming is reading. The package holds the contract and the shapes of the
// entries; sqlstore implements it and sessionstest is its suite.
package sessions

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strings"
	"time"
)

// Errors that callers decide on.
var (
	// ErrFenced says that a higher fence has opened the log: somebody else has
	// the session.
	ErrFenced = errors.New("session is held under a higher fence")
	// ErrConflict says that other entries stand at that place: the log is not
	// what the caller believes it to be and is to be opened again.
	ErrConflict = errors.New("other entries stand at that place")
	// ErrOverBudget says that a reservation would go over its cap.
	ErrOverBudget = errors.New("over budget")
	// ErrNotFound says that there is no such session.
	ErrNotFound = errors.New("no such session")
	// ErrInvalidKey says that a text can be no session's key.
	ErrInvalidKey = errors.New("invalid session key")
)

// SeenError says that a message was answered, or is being answered, already.
type SeenError struct {
	Cause string // the message's id
	Turn  string // the turn that took it
}

// Error tells which turn took the message.
func (e *SeenError) Error() string {
	return fmt.Sprintf("message %s already belongs to turn %s", e.Cause, e.Turn)
}

// MaxKey is the longest session key, in bytes.
const MaxKey = 256

// A Store keeps the logs of sessions.
type Store interface {
	// Open makes fence the lowest that may write to the session of that key,
	// creating the session if need be, and returns its log. ErrFenced if a
	// higher fence has opened it; the same fence may open it again.
	Open(ctx context.Context, key string, fence int64) (Log, error)
}

// A Log is one session's log, as one holder of its lease sees it. It is not for
// use by several goroutines at once.
type Log interface {
	// Entries is what stood in the log when it was opened and matters still, in
	// order: the newest summary, everything that it does not cover, what it keeps of
	// the rest, and every entry of an unfinished turn. What was appended since is not
	// in it.
	Entries() []Entry

	// Next is the number that the next appended entry will have. Numbers begin at 1.
	Next() int64

	// Append writes all of the entries or none, the first of them as number at;
	// when it returns nil they are durable. It sets their N, and At where it is
	// zero. The same entries at the same place succeed again, so that a commit
	// whose answer was lost can be retried; other entries there give
	// ErrConflict. ErrFenced if a higher fence has opened the log. *SeenError
	// if one of their causes is known to the session already: causes are unique
	// per session, for ever.
	Append(ctx context.Context, at int64, entries ...Entry) error
}

// A Blanker is a Log in which what somebody said can be blanked.
type Blanker interface {
	// Blank empties the entry of what was said with that cause, and what was edited of it
	// later; a cause that is not known is passed over. Durable when it returns; gone from
	// the store's files with the next erasure. ErrFenced as of Append.
	Blank(ctx context.Context, cause string) error
}

// Info is a session as a list shows it.
type Info struct {
	Key     string    `json:"key"`
	Entries int64     `json:"entries"` // the number of its last entry
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"` // its last append
}

// A Reader reads sessions without holding them.
type Reader interface {
	// List returns sessions whose key is beyond after, in the order of keys, at
	// most limit.
	List(ctx context.Context, after string, limit int) ([]Info, error)
	// Read yields the entries of a session from number from on, in order, those
	// covered by summaries included. ErrNotFound if there is no such session.
	Read(ctx context.Context, key string, from int64) iter.Seq2[Entry, error]
	// Info tells of one session as List does; ErrNotFound if there is no such session.
	Info(ctx context.Context, key string) (Info, error)
	// Find returns the entry that has that cause, ErrNotFound if none has.
	Find(ctx context.Context, key, cause string) (Entry, error)
}

// A Reservation sets tokens aside for one model call, before it is made.
type Reservation struct {
	ID     string // the call's: the same id reserves once
	Person string // who pays
	Tokens int64  // as much as the call may cost
	Cap    int64  // the most that the person may have spent and reserved on that day
	At     time.Time
}

// A Budget bounds what people spend in a day (UTC), over all processes.
type Budget interface {
	// Reserve sets tokens aside, all or none: ErrOverBudget if what the person
	// has spent and reserved that day, and this, would be more than the cap. A
	// reservation that is never settled stays: the call may have been made.
	Reserve(ctx context.Context, r Reservation) error
	// Settle replaces a reservation by what the call has cost. Settling an
	// unknown or settled reservation does nothing.
	Settle(ctx context.Context, id string, tokens int64) error
	// Spent is what a person has spent and reserved on the day of at.
	Spent(ctx context.Context, person string, at time.Time) (int64, error)
}

// Erased counts what was erased.
type Erased struct {
	Sessions []string `json:"sessions"` // erased whole, by key
	Shared   []string `json:"shared"`   // of which only a person's turns were erased
	Entries  int64    `json:"entries"`
}

// An Eraser makes the store forget. What it has erased is gone from its files
// too when it returns, and cannot come back: an erased session begins anew under
// a higher fence, and a log that was open to it gives ErrConflict. The ids of
// messages stay known, so that none is answered a second time.
type Eraser interface {
	// EraseSession erases a session. ErrNotFound if there is none.
	EraseSession(ctx context.Context, key string) (Erased, error)
	// ErasePerson erases the sessions in which nobody else has spoken, and of
	// the others every turn that the person caused or spoke in, what was said
	// there on their behalf, and the summaries that cover these. Turns of others in
	// which they only answered a request stay, without their name and words. Budgets
	// keep sums and lose the person.
	ErasePerson(ctx context.Context, person string) (Erased, error)
	// EraseBefore erases sessions that were last written to before a time, and
	// of the others the turns that ended before it.
	EraseBefore(ctx context.Context, before time.Time) (Erased, error)
}

// Key makes a session's key of an agent's name and where the conversation takes
// place. A part is percent-encoded outside A-Za-z0-9._@-, so that a key holds no
// separator, and "." and ".." never stand alone in a path made of it.
func Key(agent, channel, chat, thread string) (string, error) {
	parts := []string{agent, channel, chat}
	if thread != "" {
		parts = append(parts, thread)
	}
	for i, p := range parts {
		parts[i] = encode(p)
	}
	key := strings.Join(parts, ":")
	return key, CheckKey(key)
}

// PersonalKey makes the key of a conversation that one person has in a place where
// others have theirs: AGENT:CHANNEL:CHAT:[THREAD]:USER. The thread may be empty.
func PersonalKey(agent, channel, chat, thread, user string) (string, error) {
	parts := []string{agent, channel, chat, thread, user}
	for i, p := range parts {
		parts[i] = encode(p)
	}
	key := strings.Join(parts, ":")
	return key, CheckKey(key)
}

// CheckKey tells whether a text is a session's key, as Key and PersonalKey make it:
// three to five encoded parts, none empty but the fourth of five, at most MaxKey bytes
// in all. A conversation has one key only, so what these would have spelled otherwise
// is refused.
func CheckKey(key string) error {
	if len(key) > MaxKey {
		return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrInvalidKey, len(key), MaxKey)
	}
	parts := strings.Split(key, ":")
	if len(parts) < 3 || len(parts) > 5 {
		return fmt.Errorf("%w: want AGENT:CHANNEL:CHAT, AGENT:CHANNEL:CHAT:THREAD or AGENT:CHANNEL:CHAT:[THREAD]:USER", ErrInvalidKey)
	}
	for i, p := range parts {
		if p == "" && i == 3 && len(parts) == 5 {
			continue
		}
		said, err := url.PathUnescape(p)
		if err != nil || said == "" || encode(said) != p {
			return fmt.Errorf("%w: each part has one or more of A-Za-z0-9._@- and, for every other byte, %%XX", ErrInvalidKey)
		}
	}
	return nil
}

func encode(part string) string {
	if part == "." || part == ".." {
		return strings.ReplaceAll(part, ".", "%2E")
	}
	var b strings.Builder
	for i := range len(part) {
		if c := part[i]; plain(rune(c)) && c < 0x80 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func plain(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
		r == '.' || r == '_' || r == '@' || r == '-'
}
