package outbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"parley/bus"
	"parley/channels"
)

// Codes that say why a message was not sent, in addition to the platforms' codes.
const (
	codeExpired = "expired"
	codeGivenUp = "given_up"
	codeUnknown = "unknown"
)

// A Status says how far a request has come: the state of its message at each destination.
type Status struct {
	ID           string        `json:"id"`
	Destinations []Destination `json:"destinations"`
	Origin       string        `json:"-"` // the origin of the request
}

// A Destination is one address that a message was posted to, with the message's state there.
type Destination struct {
	Address string       `json:"address"`
	State   string       `json:"state"` // queued, sent, failed or unknown
	Error   *bus.Failure `json:"error,omitempty"`
	At      time.Time    `json:"at"` // when the message got into this state
	// Fallback is where the message went instead, if it could not be delivered.
	Fallback *Fallback `json:"fallback,omitempty"`
}

// A Fallback is an address that an undeliverable message went to, with the message's state there.
type Fallback struct {
	Address string `json:"address"`
	State   string `json:"state"`
}

// State returns the status of a submission; channels.ErrNoSend if there is none.
func (o *Outbox) State(ctx context.Context, id string) (Status, error) {
	p, err := o.Find(ctx, id)
	if err != nil {
		return Status{}, err
	}
	return o.status(ctx, p)
}

// Find returns a submission as it was recorded; channels.ErrNoSend if there is none.
func (o *Outbox) Find(ctx context.Context, id string) (channels.Submission, error) {
	p, err := o.Book.Submission(ctx, id)
	if err != nil {
		return channels.Submission{}, fmt.Errorf("look up submission %s: %w", id, err)
	}
	return p, nil
}

// queuedStatus returns the status of a submission that has just been accepted.
func queuedStatus(p channels.Submission) Status {
	s := Status{ID: p.ID, Origin: p.Origin, Destinations: make([]Destination, len(p.Destinations))}
	for n, to := range p.Destinations {
		s.Destinations[n] = Destination{Address: to.String(), State: channels.Queued, At: p.At}
	}
	return s
}

func (o *Outbox) status(ctx context.Context, p channels.Submission) (Status, error) {
	s := queuedStatus(p)
	for n, to := range p.Destinations {
		if err := o.lookUp(ctx, p, outboundID(p.ID, n), to, &s.Destinations[n]); err != nil {
			return Status{}, fmt.Errorf("look up submission %s: %w", p.ID, err)
		}
	}
	return s, nil
}

// lookUp reads the state of one message from the book into d. If the book does not have the message, it is still
// waiting, unless it has expired, or the Dispatcher could not read it and has made it a dead letter.
func (o *Outbox) lookUp(ctx context.Context, p channels.Submission, id string, to bus.Address, d *Destination) error {
	send, err := o.newestSend(ctx, id)
	switch {
	case errors.Is(err, channels.ErrNoSend):
		if err := o.findDead(ctx, p, id, to, d); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		id = send.ID
		d.State, d.At, d.Error = send.State(), send.At, failure(send)
	}
	if d.State == channels.Queued && o.hasExpired(p) {
		d.State, d.At, d.Error = channels.Failed, p.Expires, refusal(codeExpired)
	}
	if d.State == channels.Failed || d.State == channels.OutcomeUnknown {
		return o.fillFallback(ctx, id, d)
	}
	return nil
}

func (o *Outbox) hasExpired(p channels.Submission) bool {
	return !p.Expires.IsZero() && !o.now().Before(p.Expires)
}

// newestSend returns the book's record of a message; if the message was replayed from the dead letters, the record of
// its last replay.
func (o *Outbox) newestSend(ctx context.Context, id string) (channels.Send, error) {
	send, err := o.Book.Lookup(ctx, id)
	for n := 1; err == nil && send.State() == channels.Failed; n++ {
		again, missing := o.Book.Lookup(ctx, id+"~"+strconv.Itoa(n))
		if errors.Is(missing, channels.ErrNoSend) {
			break
		}
		send, err = again, missing
	}
	return send, err
}

const (
	deadLetterSearchAge    = time.Minute // messages younger than this are not looked for among the dead letters
	maxDeadLettersSearched = 1000        // how many dead letters are searched
)

// findDead looks among the channel's oldest dead letters (maxDeadLettersSearched) for a message that the book does not have: that
// is where the Dispatcher puts messages that it can't even read. It changes d only if it finds the message.
func (o *Outbox) findDead(ctx context.Context, p channels.Submission, id string, to bus.Address, d *Destination) error {
	if o.DeadLetters == nil || o.now().Sub(p.At) < deadLetterSearchAge {
		return nil
	}
	letters, err := o.DeadLetters.DeadLetters(ctx, bus.OutboundTopic(to.Channel), "", maxDeadLettersSearched)
	if err != nil {
		return err
	}
	for _, l := range letters {
		if l.Message.ID == id {
			d.State, d.At, d.Error = channels.Failed, l.BuriedAt, refusal(l.Reason)
			return nil
		}
	}
	return nil
}

// fillFallback fills in the state of a message that went to the fallback target instead. Of the target's addresses,
// it picks the one where the message got furthest.
func (o *Outbox) fillFallback(ctx context.Context, id string, d *Destination) error {
	better := map[string]int{channels.Failed: 1, channels.Queued: 2, channels.OutcomeUnknown: 3, channels.Sent: 4}
	best, places := 0, len(o.Targets()[FallbackTarget])
	for n := 0; n < places || best > 0; n++ {
		send, err := o.newestSend(ctx, bus.FallbackID(id, n))
		if errors.Is(err, channels.ErrNoSend) {
			if n >= places {
				return nil
			}
			continue // not started yet
		}
		if err != nil {
			return err
		}
		if state := send.State(); better[state] > best {
			best = better[state]
			d.Fallback = &Fallback{Address: send.To.String(), State: state}
		}
	}
	return nil
}

// failure returns why a message was not sent, or that nobody can tell whether it was; nil if it was sent or is
// still waiting.
func failure(s channels.Send) *bus.Failure {
	switch s.State() {
	case channels.OutcomeUnknown:
		return refusal(codeUnknown)
	case channels.Failed:
		for _, p := range s.Parts {
			if p.State == channels.Failed {
				return refusal(p.Code)
			}
		}
	}
	return nil
}

// refusal returns the reason for a code, with its explanation in words.
func refusal(code string) *bus.Failure {
	f := &bus.Failure{Code: code}
	switch code {
	case codeExpired:
		f.Message = "it expired before it could be sent"
	case codeGivenUp:
		f.Message = "sending it kept failing, so Parley gave up on it; see the dead letters"
	case codeUnknown:
		f.Message = "sending was cut off, and the platform doesn't say whether it arrived: check there before sending it again"
	default:
		f.Message = fmt.Sprintf("the platform refused it (%s); see the dead letters", code)
	}
	return f
}
