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

// Codes of what was not sent, beside those of the platforms.
const (
	codeExpired = "expired"
	codeGivenUp = "given_up"
	codeUnknown = "unknown"
)

// A Status is a submission and what became of it.
type Status struct {
	ID           string        `json:"id"`
	Destinations []Destination `json:"destinations"`
	Origin       string        `json:"-"` // whose it is
}

// A Destination is one address to which a message was posted, and what became of the
// message there.
type Destination struct {
	Address string       `json:"address"`
	State   string       `json:"state"` // queued, sent, failed or unknown
	Error   *bus.Failure `json:"error,omitempty"`
	At      time.Time    `json:"at"` // since when
	// Fallback is where it went instead, if it could not be delivered.
	Fallback *Fallback `json:"fallback,omitempty"`
}

// A Fallback is where something undeliverable went.
type Fallback struct {
	Address string `json:"address"`
	State   string `json:"state"`
}

// State tells what became of a submission; channels.ErrNoSend if there is none.
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

// queued is a submission as it is accepted.
func queued(p channels.Submission) Status {
	s := Status{ID: p.ID, Origin: p.Origin, Destinations: make([]Destination, len(p.Destinations))}
	for n, to := range p.Destinations {
		s.Destinations[n] = Destination{Address: to.String(), State: channels.Queued, At: p.At}
	}
	return s
}

func (o *Outbox) status(ctx context.Context, p channels.Submission) (Status, error) {
	s := queued(p)
	for n, to := range p.Destinations {
		if err := o.inquire(ctx, p, outboundID(p.ID, n), to, &s.Destinations[n]); err != nil {
			return Status{}, fmt.Errorf("look up submission %s: %w", p.ID, err)
		}
	}
	return s, nil
}

// inquire fills in what the book knows of one message. A message that it does
// not know waits, unless its time is over or it was buried unread.
func (o *Outbox) inquire(ctx context.Context, p channels.Submission, id string, to bus.Address, d *Destination) error {
	send, err := o.newest(ctx, id)
	switch {
	case errors.Is(err, channels.ErrNoSend):
		if err := o.unbegun(ctx, p, id, to, d); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		id = send.ID
		d.State, d.At, d.Error = send.State(), send.At, failure(send)
	}
	if d.State == channels.Queued && o.expired(p) {
		d.State, d.At, d.Error = channels.Failed, p.Expires, refusal(codeExpired)
	}
	if d.State == channels.Failed || d.State == channels.Unsure {
		return o.instead(ctx, id, d)
	}
	return nil
}

func (o *Outbox) expired(p channels.Submission) bool {
	return !p.Expires.IsZero() && !o.now().Before(p.Expires)
}

// newest is the send of a message or, where it was replayed from the dead
// letters and begun anew, of its last replay.
func (o *Outbox) newest(ctx context.Context, id string) (channels.Send, error) {
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
	buriedAfter = time.Minute // younger messages are not looked for among the dead
	buriedMost  = 1000        // letters to look through
)

// unbegun looks for a message that the book does not know among the dead
// letters: the Dispatcher buries there what it cannot even read.
func (o *Outbox) unbegun(ctx context.Context, p channels.Submission, id string, to bus.Address, d *Destination) error {
	if o.Dead == nil || o.now().Sub(p.At) < buriedAfter {
		return nil
	}
	letters, err := o.Dead.DeadLetters(ctx, bus.OutboundTopic(to.Channel), "", buriedMost)
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

// instead fills in what became of a message at the fallback: at the place where
// it fared best.
func (o *Outbox) instead(ctx context.Context, id string, d *Destination) error {
	better := map[string]int{channels.Failed: 1, channels.Queued: 2, channels.Unsure: 3, channels.Sent: 4}
	best, places := 0, len(o.Targets()[FallbackTarget])
	for n := 0; n < places || best > 0; n++ {
		send, err := o.newest(ctx, bus.FallbackID(id, n))
		if errors.Is(err, channels.ErrNoSend) {
			if n >= places {
				return nil
			}
			continue // not begun yet
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

// failure says why a message was not sent, or that nobody can tell.
func failure(s channels.Send) *bus.Failure {
	switch s.State() {
	case channels.Unsure:
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

// refusal is a code with what it means.
func refusal(code string) *bus.Failure {
	f := &bus.Failure{Code: code}
	switch code {
	case codeExpired:
		f.Message = "its time was over before it could be sent"
	case codeGivenUp:
		f.Message = "it was tried again and again and given up; see the dead letters"
	case codeUnknown:
		f.Message = "sending was cut off, and the platform does not tell whether it has arrived: look there before repeating it"
	default:
		f.Message = fmt.Sprintf("the platform refused it (%s); see the dead letters", code)
	}
	return f
}
