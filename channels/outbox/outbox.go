// Package outbox accepts messages that programs want to send, and reports whether they
// were delivered.
//
// A request is recorded as a submission and then published as one outbound message for each destination, under ids
// derived from the submission's. If there is only one destination, and the book and the bus can share a write, both
// happen in the same write. If the process dies between the two, only the record exists: the same request under the
// same Idempotency-Key then finds it, and publishes again what the bus may not have, so that nothing is lost and
// nothing is sent twice. The state of a message is in the book, where its Dispatcher records it; an Outbox only
// reads it.
package outbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
)

// FallbackTarget is the name of the target that receives messages that can't be delivered where they were sent.
const FallbackTarget = "fallback"

// idPrefix begins the id of every submission.
const idPrefix = "m_"

// A Request is a text to be sent to one or more places.
type Request struct {
	Origin string   // the token's or webhook's name, or "owner"
	To     []string // targets by name, or addresses: CHANNEL:CHAT[/THREAD]
	Text   string   // Markdown
	File   *bus.File
	// Subject links the request to earlier messages of the same origin: see bus.Outbound.
	Subject   string
	Expires   time.Time // zero means never
	Urgent    bool      // whether it may exceed the cap of a mailbox, by at most bus.UrgentBeyond messages
	Unlimited bool      // whether an urgent request may exceed the cap by any number of messages
	// Key is the Idempotency-Key, by which a repeated request is recognized; "" if there is none. Digest is a hash
	// of the whole request: the same key with another digest causes channels.ErrKeyReused.
	Key    string
	Digest string
	// Answer is set if an operator answers in a session; To is then empty.
	Answer *OperatorMessage
}

// An OperatorMessage is what an operator personally says in a session's conversation. The text says that an operator
// wrote it, the session is told, and it goes to no fallback, because it is meant for the people in that
// conversation.
type OperatorMessage struct {
	Session string
	At      bus.Address // where the conversation takes place
	By      bus.Person  // Name is shown there, if it is set
}

// A Book is the part of the channels' book (the record of sends, chats, people and asks) that an Outbox needs.
type Book interface {
	channels.Submissions
	// Lookup returns the Dispatcher's record of a message; channels.ErrNoSend if the Dispatcher has not started
	// with it.
	Lookup(ctx context.Context, id string) (channels.Send, error)
}

// An Outbox accepts submissions and reports their states. Its functions are called each time their results are
// needed, so the results may change while it is in use.
type Outbox struct {
	Bus  bus.Bus
	Book Book
	// DeadLetters, if set, is searched for messages that became dead letters without a record in the book.
	DeadLetters bus.DeadLetters
	// Channels lists the configured channels.
	Channels func() []string
	// Targets returns the named lists of addresses; the one named FallbackTarget receives what can't be delivered
	// elsewhere.
	Targets func() map[string][]bus.Address
	Now     func() time.Time // nil means time.Now

	largeFiles sync.Mutex // held while a large file is published
}

// A FullError says for which destinations too many messages are already waiting. For all others the request was
// accepted; repeating it with the same Idempotency-Key completes it.
type FullError struct {
	ID   string // the submission's id
	Full []bus.Address
	// BytesExceeded says that at least some of them have reached the limit in bytes, not in messages.
	BytesExceeded bool
}

// Error names the destinations.
func (e *FullError) Error() string {
	what := "too many messages are"
	if e.BytesExceeded {
		what = "too much is"
	}
	return fmt.Sprintf("%s already waiting for %s", what, joinAddresses(e.Full))
}

// Unwrap returns bus.ErrFull or bus.ErrTooMuch.
func (e *FullError) Unwrap() error {
	if e.BytesExceeded {
		return bus.ErrTooMuch
	}
	return bus.ErrFull
}

// Accept records a request and publishes it to each destination. When it returns nil, all of that is durable. If
// the same request comes again under the same key, it is published again under the same ids, and the result is the
// same: each message counts as queued, whatever has become of it since; State says that. A request that has expired
// is recorded but not published, and its state is failed.
//
// Mailboxes have no transaction in common, so if there are several destinations, only some of them may be full. The
// request is then accepted for the others, and the *FullError (a bus.ErrFull) names those that are full. Other
// errors are *UnknownError, *InvalidError, channels.ErrKeyReused and bus.ErrInvalid. Any other error means that it
// is not known whether the request is durable; the caller should then call Accept with the same request again.
func (o *Outbox) Accept(ctx context.Context, r Request) (Status, error) {
	to, err := o.destinations(r)
	if err != nil {
		return Status{}, err
	}
	if err := check(r); err != nil {
		return Status{}, err
	}
	if err := checkCopies(r.File, len(to)); err != nil {
		return Status{}, err
	}
	p, published, err := o.recordAndPublishInOneWrite(ctx, r, to)
	if err != nil {
		return Status{}, err
	}
	if o.hasExpired(p) && !published {
		return o.status(ctx, p) // nothing is published that nobody should see
	}
	if !published {
		if err := o.publish(ctx, r, p); err != nil {
			return Status{}, err
		}
	}
	return queuedStatus(p), nil
}

// recordAndPublishInOneWrite records a request as Record does. If the book can do so, and the request has only one
// destination, is not urgent, has no file and has not expired, it publishes the message in the same write. published
// reports whether it did; otherwise the caller has to publish.
func (o *Outbox) recordAndPublishInOneWrite(ctx context.Context, r Request, to []bus.Address) (recorded channels.Submission, published bool, err error) {
	p := o.submission(r, to)
	book, able := o.Book.(channels.SubmissionPublisher)
	if able && len(to) == 1 && r.File == nil && !r.Urgent && !o.hasExpired(p) {
		// If the message can't be encoded, publish will refuse it.
		if m, err := bus.OutboundMessage(o.outbound(r, p, 0)); err == nil {
			recorded, published, err = book.AcceptAndPublish(ctx, p, bus.OutboundTopic(to[0].Channel), m)
			return recorded, published, recordError(err)
		}
	}
	recorded, _, err = o.Book.Accept(ctx, p)
	return recorded, false, recordError(err)
}

// Record records a request with its destinations, and publishes nothing, because the caller does that. If there is
// already a record under the same key, it returns that one instead.
func (o *Outbox) Record(ctx context.Context, r Request, to []bus.Address) (channels.Submission, error) {
	recorded, _, err := o.Book.Accept(ctx, o.submission(r, to))
	return recorded, recordError(err)
}

// submission returns a new submission for a request.
func (o *Outbox) submission(r Request, to []bus.Address) channels.Submission {
	return channels.Submission{
		ID: idPrefix + rand.Text(), Origin: r.Origin, Key: r.Key, Digest: r.Digest,
		Destinations: to, Expires: r.Expires, At: o.now(),
	}
}

func recordError(err error) error {
	if err != nil {
		return fmt.Errorf("record a submission: %w", err)
	}
	return nil
}

// publish publishes a submission to all destinations concurrently, because each publication waits for the disk.
// Large files are published one after another, so that only a few copies of them are in memory at the same time.
func (o *Outbox) publish(ctx context.Context, r Request, p channels.Submission) error {
	errs := make([]error, len(p.Destinations))
	switch {
	case r.File != nil && len(r.File.Data) > largeFile:
		o.largeFiles.Lock()
		defer o.largeFiles.Unlock()
		for n := range p.Destinations {
			errs[n] = o.publishTo(ctx, r, p, n)
		}
	case len(p.Destinations) == 1:
		errs[0] = o.publishTo(ctx, r, p, 0)
	default:
		var wg sync.WaitGroup
		slots := make(chan struct{}, 32)
		for n := range p.Destinations {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				errs[n] = o.publishTo(ctx, r, p, n)
			})
		}
		wg.Wait()
	}
	return joinErrors(p, errs)
}

// joinErrors returns one error for all errors from publishing to a submission's destinations: the first that is not
// about a full mailbox, or else a *FullError that names all full mailboxes.
func joinErrors(p channels.Submission, errs []error) error {
	full := &FullError{ID: p.ID}
	var failed error
	for n, err := range errs {
		switch {
		case errors.Is(err, bus.ErrFull):
			full.Full = append(full.Full, p.Destinations[n])
			full.BytesExceeded = full.BytesExceeded || errors.Is(err, bus.ErrTooMuch)
		case err != nil && failed == nil:
			failed = err
		}
	}
	switch {
	case failed != nil:
		return failed
	case len(full.Full) > 0:
		return full
	}
	return nil
}

func (o *Outbox) publishTo(ctx context.Context, r Request, p channels.Submission, n int) error {
	out := o.outbound(r, p, n)
	if r.Urgent {
		return bus.PublishUrgentOutbound(ctx, o.Bus, out, !r.Unlimited)
	}
	return bus.PublishOutbound(ctx, o.Bus, out)
}

// outbound returns the message to the destination with index n of a submission.
func (o *Outbox) outbound(r Request, p channels.Submission, n int) bus.Outbound {
	to := p.Destinations[n]
	if a := r.Answer; a != nil {
		return bus.Outbound{
			ID: outboundID(p.ID, n), To: to, Text: operatorText(a.By.Name, r.Text), At: p.At, Session: a.Session, Origin: p.Origin,
			Told: &bus.Telling{For: a.By, At: to, Words: r.Text, Own: true, Operator: true, Post: p.ID},
		}
	}
	return bus.Outbound{
		ID: outboundID(p.ID, n), To: to, Text: r.Text, At: p.At, Expires: p.Expires,
		Subject: r.Subject, Origin: p.Origin, File: r.File,
		Fallback: slices.DeleteFunc(slices.Clone(o.Targets()[FallbackTarget]), func(a bus.Address) bool { return a == to }),
	}
}

func outboundID(submission string, n int) string { return submission + "/" + strconv.Itoa(n) }

func (o *Outbox) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}
