package bus

import (
	"cmp"
	"context"
	"time"
)

// A Depth counts the messages and mailboxes of one topic, for status and metrics.
type Depth struct {
	Waiting int           // messages that are not leased, due or not
	Leased  int           // mailboxes being worked on
	Delayed int           // mailboxes that cannot be claimed yet, because the time of their first message has not come
	Dead    int           // dead letters
	Oldest  time.Duration // age since publication of the oldest message that waits or is being worked on
	// LeasedBy divides Leased among the processes that have leased the mailboxes, by their names in the Roster. It is
	// nil if only one process can have the bus open.
	LeasedBy map[string]int
}

// An Inspector reports the state of the bus.
type Inspector interface {
	// Topics lists the topics that have mail or had some lately.
	Topics(ctx context.Context) ([]Topic, error)
	// Depth returns the counts of one topic; they are zero for an unknown topic.
	Depth(ctx context.Context, topic Topic) (Depth, error)
	// HasMail reports whether a mailbox contains mail, due or not, leased or not.
	HasMail(ctx context.Context, topic Topic, key string) (bool, error)
	// Mailboxes lists mailboxes of a topic that have mail: at most limit that are being worked on,
	// and at most limit that wait. It reads no more than it lists, so if there are more, the list may
	// not have the oldest ones.
	Mailboxes(ctx context.Context, topic Topic, limit int) (MailboxList, error)
}

// A MailboxList lists mailboxes that have mail, those with the oldest mail first, and counts all of them,
// listed or not.
type MailboxList struct {
	Leased, Waiting           []Mailbox
	LeasedCount, WaitingCount int
}

// A Mailbox describes a mailbox that has mail.
type Mailbox struct {
	Key      string
	Messages int       // how many are in it, including those being worked on
	Since    time.Time // when the first of them was published
	Due      time.Time // from when on it can be claimed; zero if it can be claimed, or is leased, now
	// Holder is the process that has leased it, as the Roster names it; "" if nobody has, or if only one process can
	// have the bus open.
	Holder string
}

// OlderMailbox compares two mailboxes in the order of a MailboxList.
func OlderMailbox(a, b Mailbox) int {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Key, b.Key))
}

// A Roster lists the processes that have the bus open.
type Roster interface {
	// Processes lists their names, this process's first. No two processes ever have the
	// same name.
	Processes(ctx context.Context) ([]string, error)
	// Held lists the names that this process holds (see Holder), sorted.
	Held() []string
}

// A DeadLetter is a message that was abandoned.
type DeadLetter struct {
	Topic    Topic
	Message  Message
	Reason   string
	Attempts int // how many times its mailbox was claimed before the message was abandoned
	BuriedAt time.Time
}

// DeadLetters stores dead letters: messages that were abandoned because they failed too often or can
// never be handled. Each stays until an operator replays or drops it, or it is erased. It is identified
// by its topic and its message's id.
type DeadLetters interface {
	// DeadLetters lists the dead letters of a topic, the oldest first: at most limit of them after that id, or from
	// the beginning if it is "".
	DeadLetters(ctx context.Context, topic Topic, after string, limit int) ([]DeadLetter, error)
	// NewestDeadLetters lists them in the opposite order, the newest first: at most limit of those
	// before that id, or from the newest if it is "".
	NewestDeadLetters(ctx context.Context, topic Topic, before string, limit int) ([]DeadLetter, error)
	// DeadLetter returns one; ErrNotFound if there is none.
	DeadLetter(ctx context.Context, topic Topic, id string) (DeadLetter, error)
	// Replay publishes a dead letter again at the end of its mailbox, under a new id (the old one
	// with "~n"; n = 1, 2, …), and removes the dead letter: both or neither. It returns the new id;
	// ErrNotFound if there is no such dead letter, or ErrFull as Publish does.
	Replay(ctx context.Context, topic Topic, id string) (newID string, err error)
	// Drop removes a dead letter; ErrNotFound if there is none.
	Drop(ctx context.Context, topic Topic, id string) error
}

// A Pauser prevents claims of a topic's mailboxes for a while: for a platform-wide rate
// limit, or for maintenance. Leases that are already held continue.
type Pauser interface {
	// Pause begins a pause of that length, in place of an earlier one; zero ends the pause.
	Pause(ctx context.Context, topic Topic, d time.Duration) error
}

// A Holder lets processes of a fleet hold names. Only one process holds a name at a time. The
// process that holds the name of a platform connection or a dispatcher runs it.
type Holder interface {
	// Hold waits until name is free and takes it. The returned context ends when the hold
	// is lost (with the cause ErrFenced), when it is released, or when ctx ends. release
	// gives the name back; it may be called more than once.
	Hold(ctx context.Context, name string) (held context.Context, release func(), err error)
}
