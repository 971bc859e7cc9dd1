// Package bus is what is said and how it travels: messages in keyed mailboxes, leases on them, and events.
//
// One mechanism serves every direction. A topic holds mailboxes, a mailbox is a
// FIFO of messages under one key, and whoever works on a mailbox holds its
// lease. Inbound mail is keyed by session, outbound mail by address, timers by
// their own id. The package holds the contract and the payloads; sqlitebus and
// redisbus implement it, and bustest is the suite that both pass.
package bus

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors that callers decide on.
var (
	// ErrFull says that the mailbox is at its cap. Nothing was stored, and the
	// message's id may be used again.
	ErrFull = errors.New("mailbox is full")
	// ErrTooMuch is the ErrFull of a mailbox in which too many bytes wait.
	ErrTooMuch = fmt.Errorf("%w: too much waits in it", ErrFull)
	// ErrFenced says that the lease or hold is no longer ours: another holder
	// may be at work, so nothing outward may happen any more.
	ErrFenced = errors.New("lease is lost")
	// ErrClosed says that the bus was closed.
	ErrClosed = errors.New("bus is closed")
	// ErrInvalid says that a message can never be accepted: an empty or too
	// long id or key, or a body over MaxBody.
	ErrInvalid = errors.New("invalid message")
	// ErrNotFound says that no dead letter has that id.
	ErrNotFound = errors.New("not found")
)

// Bounds of one message. Ids and keys are at least one byte of UTF-8 without NUL.
const (
	MaxID   = 256      // bytes
	MaxKey  = 256      // bytes
	MaxBody = 16 << 20 // bytes
)

// A Topic is one direction on the bus.
type Topic string

// The topics beside Outbound's.
const (
	InboundTopic Topic = "inbound" // keyed by session
	TimersTopic  Topic = "timers"  // keyed by timer id
)

// OutboundTopic is the topic of what goes out through a channel, keyed by address.
func OutboundTopic(channel string) Topic { return Topic("outbound/" + channel) }

// A Message is one thing on its way through a mailbox.
type Message struct {
	// ID is unique within the topic: publishing it again today or tomorrow is
	// accepted and does nothing.
	ID string
	// Key names the mailbox.
	Key string
	// Seq is the message's place in its mailbox. The bus assigns it; within a
	// key it only grows, also after the mailbox was empty or the bus restarted.
	Seq int64
	// NotBefore, if set, keeps a mailbox from being claimed while this is its
	// first message and the time has not come.
	NotBefore time.Time
	// Urgent mail is exempt from the cap and makes its mailbox due at once,
	// whatever delays it. It keeps its place in the order.
	Urgent bool
	// Bounded urgent mail goes past the cap by UrgentBeyond messages and no
	// further: that of programs. It is a word to Publish and is not kept.
	Bounded bool
	// Body is opaque to the bus.
	Body []byte
}

// A Bus keeps topics of mailboxes. A mailbox is a FIFO of messages under one key.
type Bus interface {
	// Publish puts m at the end of its mailbox. When it returns nil, m is
	// durable. An ID published lately (today or yesterday) is accepted and
	// dropped. A mailbox at its cap gives ErrFull and does not burn the ID;
	// what no bus would take gives ErrInvalid. Any other error means "not
	// known to be durable": publish the same message again.
	Publish(ctx context.Context, topic Topic, m Message) error

	// Claim waits for a mailbox with mail that is due and that nobody holds,
	// and leases it. Mailboxes are served in the order in which they became
	// due; one that still has mail when it is settled goes to the back. It
	// outlives outages of the backend and returns only a lease, ctx's error or
	// ErrClosed.
	Claim(ctx context.Context, topic Topic) (Lease, error)
}

// A Claim says what is held and under which number.
type Claim struct {
	Topic Topic
	Key   string
	// Fence grows with every claim of every mailbox, over restarts, loss of
	// data and a change of bus: it begins at the server's clock in microseconds.
	Fence int64
	// Attempts counts the claims of this mailbox since something in it was last
	// settled, this one included: 1 is the first. The bus never gives up by
	// itself; who claims decides, so that somebody can tell the sender.
	Attempts int
}

// A Lease is the right to work on one mailbox until it is settled or lost. The
// bus extends it in the background; it is lost when this process was paused or
// cut off for longer than the lease time, and when it was held for longer than
// the bus allows any turn to take.
type Lease interface {
	Claim() Claim

	// Mail returns the messages beyond that sequence number, in order and at
	// least one, and waits while there are none: the way to steer. Mail(ctx, 0)
	// of a fresh lease returns at once. ErrFenced once the lease is lost or settled.
	Mail(ctx context.Context, after int64) ([]Message, error)

	// Held is asked before each outward effect. Nil means that the lease was
	// ours when asked and will be for a moment; it waits while that is unknown
	// (the backend is away) and returns ErrFenced once it is lost or settled.
	Held(ctx context.Context) error

	// Lost is closed once it is certain that the lease is lost.
	Lost() <-chan struct{}

	// Settle ends the lease: forgets or buries mail up to a number and gives
	// back the rest. It is all or nothing. ErrFenced means that the lease is
	// not ours any more; after an error whose outcome is unknown, Settle may be
	// called again, and then ErrFenced is as good as nil.
	Settle(ctx context.Context, end End) error
}

// End says how a lease is settled. The zero End gives everything back at once
// and counts the claim.
type End struct {
	// Done forgets the messages up to this sequence number.
	Done int64
	// Dead turns the messages after Done and up to this sequence number into
	// dead letters, with Reason.
	Dead   int64
	Reason string
	// After keeps the rest of the mailbox from being claimed for that long, in
	// its order; urgent mail ends the wait.
	After time.Duration
	// Uncounted takes this claim out of Attempts: a shutdown, a rate limit, a
	// full outbox is nobody's fault.
	Uncounted bool
}

// Caps bounds what waits in one mailbox of a topic.
type Caps struct {
	Inbound  int // messages waiting in one session, those being answered included
	Outbound int // messages waiting for one address
	// Bytes bounds the bodies that wait in one mailbox, except for timers; 0
	// means no bound. An empty mailbox takes any message. What one bus
	// counts may differ by a few percent from what another does.
	Bytes int
}

// UrgentBeyond is how many messages bounded urgent mail may make wait beyond a cap.
const UrgentBeyond = 100

// Room is how many messages and how many bytes may wait in the mailbox that takes
// m; 0 means that there is no bound.
func (c Caps) Room(topic Topic, m Message) (count, size int) {
	if topic == TimersTopic || m.Urgent && !m.Bounded {
		return 0, 0
	}
	count = c.Of(topic)
	if m.Urgent && count > 0 {
		count += UrgentBeyond
	}
	return count, c.Bytes
}

// Of is the cap of a topic's mailboxes; 0 means that the topic has none.
func (c Caps) Of(topic Topic) int {
	switch topic {
	case InboundTopic:
		return c.Inbound
	case TimersTopic:
		return 0
	}
	return c.Outbound
}
