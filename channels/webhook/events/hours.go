package events

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
)

// MaxTurns is how many turns a webhook may start in an hour, in the whole fleet and for all groups together. Hours
// begin on the hour.
const MaxTurns = 20

// turnsSubject is the subject under which the book notes which turns a webhook has started. A note about "NAME HOUR
// NUMBER" contains the id of a turn; one about "NAME HOUR full" contains the id of the turn that told people that
// the limit was reached.
const turnsSubject = "webhook_turns"

// A Refusal says why an event starts no turn. Text tells people so; "" if they have already been told.
type Refusal struct{ Text string }

// Admit counts the turn that will answer the message in against the limit of its webhook. It returns a Refusal if
// the turn may not begin, otherwise nil. For messages that do not come from a webhook, it returns nil. For the same
// message, it returns the same result as long as the hour lasts.
func (d *Channel) Admit(ctx context.Context, in bus.Inbound) (*Refusal, error) {
	if in.At.Channel != Name || in.From.ID != Person(in.At.Chat) {
		return nil, nil
	}
	now := d.now().UTC()
	hour := in.At.Chat + " " + now.Format("2006-01-02T15")
	noted, err := d.Book.AllNoted(ctx, turnsSubject)
	if err != nil {
		return nil, fmt.Errorf("count the turns of a webhook: %w", err)
	}
	if slices.ContainsFunc(noted, func(r channels.Note) bool { return r.Value == in.ID && !strings.HasSuffix(r.About, " full") }) {
		return nil, nil
	}
	if err := d.forgetHours(ctx, noted, now); err != nil {
		return nil, err
	}
	for n := range MaxTurns {
		about := fmt.Sprintf("%s %02d", hour, n)
		if slices.ContainsFunc(noted, func(r channels.Note) bool { return r.About == about }) {
			continue
		}
		by, err := d.Book.SetNoteOnce(ctx, turnsSubject, about, in.ID)
		if err != nil {
			return nil, fmt.Errorf("count a turn of a webhook: %w", err)
		}
		if by == in.ID {
			return nil, nil
		}
	}
	by, err := d.Book.SetNoteOnce(ctx, turnsSubject, hour+" full", in.ID)
	if err != nil {
		return nil, fmt.Errorf("note that a webhook was told of: %w", err)
	}
	if by != in.ID {
		return &Refusal{}, nil
	}
	return &Refusal{Text: fmt.Sprintf("The webhook %s has started %d turns since %s UTC, the most allowed in an hour. Anything posted before %s UTC won't start one, but you'll find it in the sessions' logs.",
		in.At.Chat, MaxTurns, now.Format("15:00"), now.Add(time.Hour).Format("15:00"))}, nil
}

// forgetHours removes the notes of hours that ended long ago.
func (d *Channel) forgetHours(ctx context.Context, noted []channels.Note, now time.Time) error {
	for _, r := range noted {
		if now.Sub(r.At) < 3*time.Hour {
			continue
		}
		if err := d.Book.SetNote(ctx, turnsSubject, r.About, ""); err != nil {
			return fmt.Errorf("forget the turns of an hour that is over: %w", err)
		}
	}
	return nil
}
