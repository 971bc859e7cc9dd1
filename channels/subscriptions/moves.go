package subscriptions

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/sessions/subscriptions"
	"parley/tools/plainjson"
)

// In the notes on this subject the book has the dead letters that somebody is about to replay or drop, so that
// subscribers are told even if the process dies right afterwards. The bus and the database share no transaction.
const movesSubject = "dead_letters_moved"

// When another process finds out what came of a move.
const (
	maxMoveTime   = 10 * time.Second // after this time, a dead letter that is still there was not moved
	minOutcomeAge = time.Second      // after this time, whoever has moved one that is gone would have said so
)

// errUnusableNote says that a note isn't one that this release has written: it stays for another one, and holds up no other.
var errUnusableNote = errors.New("a note can't be used")

// A move is a dead letter that somebody is about to replay or drop, and the event that says so.
type move struct {
	Topic bus.Topic           `json:"topic"`
	ID    string              `json:"id"`
	Event subscriptions.Event `json:"event"`
}

// Letters are a bus's dead letters, of which subscribers are told when one is replayed or dropped.
type Letters struct {
	Bus
	poster *Poster
}

// Letters returns the dead letters for those who replay or drop them on a person's behalf.
func (p *Poster) Letters() Letters { return Letters{p.Bus, p} }

// Replay implements bus.DeadLetters.
func (l Letters) Replay(ctx context.Context, topic bus.Topic, id string) (newID string, err error) {
	err = l.poster.move(ctx, topic, id, subscriptions.DeadLetterReplayed, func() (err error) {
		newID, err = l.Bus.Replay(ctx, topic, id)
		return err
	})
	return newID, err
}

// Drop implements bus.DeadLetters.
func (l Letters) Drop(ctx context.Context, topic bus.Topic, id string) error {
	return l.poster.move(ctx, topic, id, subscriptions.DeadLetterDropped, func() error { return l.Bus.Drop(ctx, topic, id) })
}

// move replays or drops a dead letter with do, and records the event of the type what for that. If the process dies
// meanwhile, or the outcome of do is not known, endMoves later sees in the bus what came of it.
func (p *Poster) move(ctx context.Context, topic bus.Topic, id, what string, do func() error) error {
	if !p.Table.Wants(what) {
		return do()
	}
	if err := p.recordTopics(ctx, topic); err != nil { // that it was buried comes first
		return err
	}
	l, err := p.Bus.DeadLetter(ctx, topic, id)
	if err != nil {
		return err
	}
	m := move{topic, id, letterEvent(l, what, time.Now())}
	raw, err := plainjson.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode what is done with a dead letter: %w", err)
	}
	about := rand.Text() // somebody else may be about to move it, too
	if err := p.Notes.SetNote(ctx, movesSubject, about, string(raw)); err != nil {
		return err
	}
	p.Point("subscription:letter_noted")
	err = do()
	p.Point("subscription:letter_moved")
	switch {
	case err == nil:
		err = p.recordMove(context.WithoutCancel(ctx), about, m)
	case errors.Is(err, bus.ErrNotFound), errors.Is(err, bus.ErrFull): // it wasn't done
		return errors.Join(err, p.Notes.SetNote(context.WithoutCancel(ctx), movesSubject, about, ""))
	default:
		return err
	}
	if err != nil {
		p.Log.Warn("subscribers hear late of a dead letter", slog.Any("error", err))
	}
	return nil
}

// recordMove records that a dead letter was replayed or dropped, and that nobody else needs to.
func (p *Poster) recordMove(ctx context.Context, about string, m move) error {
	if err := p.Table.Add(ctx, m.Event); err != nil {
		return err
	}
	return p.Notes.SetNote(ctx, movesSubject, about, "")
}

// endMoves finds out what came of the moves whose processes have not said so, and returns when to look again if that is
// not certain yet; 0 if it is.
func (p *Poster) endMoves(ctx context.Context) (again time.Duration, err error) {
	begun, err := p.Notes.AllNoted(ctx, movesSubject)
	if err != nil {
		return 0, err
	}
	for _, one := range begun {
		left, err := p.endMove(ctx, one)
		if errors.Is(err, errUnusableNote) {
			p.Log.Warn("a note about a dead letter can't be used; subscribers may not hear what was done with it", slog.String("note", one.About))
			continue
		}
		if err != nil {
			return 0, err
		}
		if left > 0 && (again == 0 || left < again) {
			again = left
		}
	}
	return again, nil
}

// endMove records a move if it has happened, and forgets it. If it is too early to tell, it does nothing, and returns
// when to call it again (left). It returns errUnusableNote for a note that this release can't use.
func (p *Poster) endMove(ctx context.Context, begun channels.Note) (left time.Duration, err error) {
	var m move
	if err := json.Unmarshal([]byte(begun.Value), &m); err != nil || m.Topic == "" || m.ID == "" {
		return 0, errUnusableNote
	}
	age := time.Since(begun.At).Abs() // it may be from a process with another clock
	_, err = p.Bus.DeadLetter(ctx, m.Topic, m.ID)
	switch gone := errors.Is(err, bus.ErrNotFound); {
	case err != nil && !gone:
		return 0, err
	case gone && age < minOutcomeAge:
		return minOutcomeAge - age, nil
	case gone:
		return 0, p.recordMove(ctx, begun.About, m)
	case age < maxMoveTime:
		return maxMoveTime - age, nil
	}
	return 0, p.Notes.SetNote(ctx, movesSubject, begun.About, "") // it is still there
}
