// Package bus defines the messages of the system and the contract of the bus that carries them: messages
// in keyed mailboxes, leases on mailboxes, and events.
//
// One mechanism serves every direction. A topic consists of mailboxes, a mailbox is a FIFO of messages
// under one key, and the process that works on a mailbox holds its lease. The key of inbound mail is the
// session, of outbound mail the address, of a timer its own id. sqlitebus and redisbus implement the
// contract, and bustest is the test suite that both pass.
package bus

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// These errors tell callers what to do next.
var (
	// ErrFull says that the mailbox has reached its cap (see Caps). Nothing was stored, and the
	// message's id may be used again.
	ErrFull = errors.New("mailbox is full")
	// ErrTooMuch is the ErrFull for a mailbox whose waiting messages have too many bytes.
	ErrTooMuch = fmt.Errorf("%w: too much is waiting in it", ErrFull)
	// ErrFenced says that this process no longer has the lease or hold: another one may be
	// at work, so this one must not act on the outside anymore.
	ErrFenced = errors.New("lease is lost")
	// ErrClosed says that the bus was closed.
	ErrClosed = errors.New("bus is closed")
	// ErrInvalid says that a message can never be accepted: an empty or too
	// long id or key, or a body over MaxBody.
	ErrInvalid = errors.New("invalid message")
	// ErrNotFound says that no dead letter has that id.
	ErrNotFound = errors.New("not found")
)

// These are the limits of one message. Ids and keys are at least one byte of UTF-8 without NUL.
const (
	MaxID   = 256      // in bytes
	MaxKey  = 256      // in bytes
	MaxBody = 16 << 20 // in bytes
)

// A Topic is one direction on the bus.
type Topic string

// These are the topics other than those that OutboundTopic returns.
const (
	InboundTopic Topic = "inbound" // keyed by session
	TimersTopic  Topic = "timers"  // keyed by timer id
)

// OutboundTopic returns the topic of messages to be sent through a channel, keyed by
// address.
func OutboundTopic(channel string) Topic { return Topic("outbound/" + channel) }

// A Message is one item in a mailbox.
type Message struct {
	// ID is unique within the topic: publishing it again today or tomorrow succeeds and has
	// no effect.
	ID string
	// Key names the mailbox.
	Key string
	// Seq is the message's place in its mailbox. The bus assigns it. Within a key it only grows, even
	// after the mailbox was empty or the bus was restarted.
	Seq int64
	// NotBefore, if set, keeps a mailbox from being claimed while this is its
	// first message and the time has not come.
	NotBefore time.Time
	// Urgent mail is accepted although its mailbox is full, and can be claimed at once even if its
	// mailbox is delayed. It keeps its place in the order.
	Urgent bool
	// Bounded, set for programs' messages, limits urgent mail: it may exceed the mailbox's cap by
	// UrgentBeyond messages, and the cap on bytes not at all. Only Publish reads this field; it is not
	// stored.
	Bounded bool
	// Body is the content of the message, which the bus does not read.
	Body []byte
}

// A Bus stores topics of mailboxes. A mailbox is a FIFO of messages under one key.
type Bus interface {
	// Publish puts m at the end of its mailbox. When it returns nil, m is durable. If the ID was
	// published lately (today or yesterday), Publish drops m and returns nil. If the mailbox is
	// full, it returns ErrFull and the ID may be used again; for a message that no bus would
	// accept, it returns ErrInvalid. After any other error, it is unknown whether m is durable:
	// publish the same message again.
	Publish(ctx context.Context, topic Topic, m Message) error

	// Claim waits for a mailbox that has mail, is due and is not leased, and leases it.
	// Mailboxes are served in the order in which they became due; one that still has mail
	// when it is settled goes to the back of the queue. A bus with several processes may keep a mailbox for a
	// moment for the process that had it last. Claim survives outages of the
	// backend and returns only a lease, ctx's error or ErrClosed.
	Claim(ctx context.Context, topic Topic) (Lease, error)
}

// A Claim identifies a lease: the mailbox and the fence.
type Claim struct {
	Topic Topic
	Key   string
	// Fence is the number of the lease: the store refuses writes under a lower one. It grows with every
	// claim of any mailbox, even across restarts, loss of data and a change of bus, because it starts
	// from the server's clock in microseconds.
	Fence int64
	// Attempts counts the claims of this mailbox since a message of it was last settled,
	// including this one: it begins at 1. The bus never abandons a message by itself; the
	// claiming process decides, so that it can tell the sender.
	Attempts int
}

// A Lease is the right to work on one mailbox until it is settled or lost. The bus extends it in the
// background. It is lost if this process was paused or disconnected for longer than the lease time, if
// it was held for longer than the bus allows for a turn, or if Forget has removed a message from the
// mailbox.
type Lease interface {
	// Claim returns the mailbox and the fence of the lease.
	Claim() Claim

	// Mail returns the mailbox's messages whose Seq is greater than after, in order: at least one if
	// there are any, and only the first ones if there are many. It waits for the backend, but not for
	// mail. On a fresh lease, Mail(ctx, 0) returns at once. It returns ErrFenced once the lease is lost
	// or settled.
	Mail(ctx context.Context, after int64) ([]Message, error)

	// OnMail sets the function f, which is called when there is mail that Mail has not returned yet, and
	// when the lease ends. This is how a running turn gets new messages (steering) without a goroutine
	// that waits for them. f runs in a goroutine of its own, and has to read until Mail returns none.
	// Calls do not overlap: mail that comes during a call leads to one more call. stop ends this and
	// waits for a call that is running, so f must not call it. There may be one such f at a time.
	OnMail(f func()) (stop func())

	// Held must be called before each effect on the outside world. Nil means that this process had the
	// lease when it asked and will have it for another moment. While that is unknown (Redis or the disk
	// does not answer), Held waits. It returns ErrFenced once the lease is lost or settled.
	Held(ctx context.Context) error

	// Lost returns a channel that is closed once the lease is certainly lost.
	Lost() <-chan struct{}

	// Settle ends the lease, all or nothing: it removes messages up to a number or turns
	// them into dead letters, and gives back the rest. ErrFenced means that this process no
	// longer has the lease. After an error whose outcome is unknown, Settle may be called
	// again, and ErrFenced then means success as well as nil. A crash of the backend may
	// bring back messages that were removed a moment before. The handler of a message must
	// recognize it then, as after a crash right before Settle.
	Settle(ctx context.Context, end End) error
}

// End says how to settle a lease. The zero End gives all mail back at once and counts the
// claim as an attempt.
type End struct {
	// Done removes the messages up to this sequence number.
	Done int64
	// Dead turns the messages after Done and up to this sequence number into
	// dead letters, with Reason.
	Dead   int64
	Reason string
	// After is how long the rest of the mailbox cannot be claimed; its order stays, and urgent mail
	// ends the wait.
	After time.Duration
	// Uncounted does not count this claim as an attempt, because the message did not cause
	// its failure: a shutdown, a rate limit, a full outbox.
	Uncounted bool
}

// Caps bounds the mail that may wait in one mailbox of a topic. In each field 0 means no bound.
type Caps struct {
	Inbound  int // messages waiting in one session, including those being answered
	Outbound int // messages waiting for one address
	// Bytes bounds the total size of the bodies that wait in one mailbox, except for timers. An empty
	// mailbox accepts any message. A bus may be off by a few percent when it counts bytes.
	Bytes int
}

// UrgentBeyond is the number of messages by which bounded urgent mail may exceed a cap.
const UrgentBeyond = 100

// Room returns the caps, in messages and in bytes, that apply to m's mailbox when m is published; 0
// means no bound.
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

// Of returns the cap on the messages of a topic's mailboxes, or 0 if the topic has none.
func (c Caps) Of(topic Topic) int {
	switch topic {
	case InboundTopic:
		return c.Inbound
	case TimersTopic:
		return 0
	}
	return c.Outbound
}
