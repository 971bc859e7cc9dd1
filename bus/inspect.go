package bus

import (
	"context"
	"time"
)

// Depth is the state of one topic.
type Depth struct {
	Waiting int           // messages that nobody holds, due or not
	Leased  int           // mailboxes being worked on
	Delayed int           // mailboxes that are not due yet
	Dead    int           // dead letters
	Oldest  time.Duration // age of the oldest message that is waiting or worked on, from its publication
}

// An Inspector tells how things stand.
type Inspector interface {
	// Topics lists the topics that hold or lately held mail.
	Topics(ctx context.Context) ([]Topic, error)
	// Depth counts one topic; an unknown topic is empty.
	Depth(ctx context.Context, topic Topic) (Depth, error)
	// HasMail tells whether a mailbox holds mail, due or not, leased or not.
	HasMail(ctx context.Context, topic Topic, key string) (bool, error)
}

// A Roster knows which processes have the bus open.
type Roster interface {
	// Processes names them, this one first. A name is one process's for good.
	Processes(ctx context.Context) ([]string, error)
}

// A DeadLetter is a message that was given up.
type DeadLetter struct {
	Topic    Topic
	Message  Message
	Reason   string
	Attempts int // claims before it was given up
	BuriedAt time.Time
}

// A DeadLetters store keeps dead letters until somebody decides about them. A letter is
// named by its topic and its message's id.
type DeadLetters interface {
	// DeadLetters lists those of a topic, oldest first, at most limit after
	// that id ("" is the beginning).
	DeadLetters(ctx context.Context, topic Topic, after string, limit int) ([]DeadLetter, error)
	// Replay publishes a letter again under a new id, the old one with "~n"
	// (n = 1, 2, …), at the end of its mailbox, and forgets the letter, both or
	// neither. It returns the new id. ErrNotFound, or ErrFull as for Publish.
	Replay(ctx context.Context, topic Topic, id string) (newID string, err error)
	// Drop forgets a letter. ErrNotFound if there is none.
	Drop(ctx context.Context, topic Topic, id string) error
}

// A Pauser stops a topic from being claimed for a while: a platform-wide rate
// limit, maintenance. Leases already held go on.
type Pauser interface {
	// Pause replaces an earlier pause; zero ends it.
	Pause(ctx context.Context, topic Topic, d time.Duration) error
}

// A Holder gives out names that one process of the fleet holds at a time: a
// platform connection, a dispatcher.
type Holder interface {
	// Hold waits until name is free and takes it. The returned context ends
	// when the hold is lost (its cause is then ErrFenced), released, or ctx
	// ends. Release gives the name back; it may be called more than once.
	Hold(ctx context.Context, name string) (held context.Context, release func(), err error)
}
