package subscriptions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/bus"
	"parley/sessions/subscriptions"
	"parley/tools/plainjson"
)

// In the notes on this subject the book records how far the dead letters of each topic were looked through, and since
// when.
const (
	lettersSubject  = "dead_letters_recorded"
	lettersInterval = time.Minute // the time between two looks if nothing is heard of dead letters
	lettersPerPage  = 100
	maxKnownLetters = 20 // how many of the newest dead letters a mark names
)

// A mark is the newest dead letter of a topic for which an event was recorded.
type mark struct {
	At time.Time `json:"at"`
	ID string    `json:"id"`
	// Known are the newest dead letters that there were, so that those after them are found even when some were
	// replayed or dropped, and whatever a clock says. A release that doesn't know it finds them by ID or At.
	Known []string `json:"known,omitempty"`
}

// knows reports whether an event for a dead letter, or for a later one, was recorded.
func (m mark) knows(id string) bool { return id == m.ID || slices.Contains(m.Known, id) }

// watchLetters records an event for each new dead letter, until ctx is done. The bus keeps dead letters, so none is
// missed, whenever the process dies; one process does that at a time.
func (p *Poster) watchLetters(ctx context.Context) {
	err := bus.WhileHeld(ctx, p.Bus, "subscriptions/dead-letters", func(held context.Context) error {
		heard := make(chan struct{}, 1)
		var hearing sync.WaitGroup
		defer hearing.Wait()
		hearing.Go(func() { p.forwardLetterEvents(held, heard) })
		for held.Err() == nil {
			again, err := p.endMoves(held) // first, because a replayed message may have been given up again
			if err == nil && again == 0 {
				again, err = lettersInterval, p.recordLetters(held)
			}
			if err != nil && held.Err() == nil {
				p.Log.Warn("subscribers may hear late of dead letters", slog.Any("error", err))
			}
			late := time.NewTimer(cmp.Or(again, lettersInterval))
			select {
			case <-heard:
			case <-late.C:
			case <-held.Done():
			}
			late.Stop()
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		p.Log.Warn("events about dead letters are no longer recorded by this process", slog.Any("error", err))
	}
}

// forwardLetterEvents sends a value to heard whenever the server's feed may report new dead letters.
func (p *Poster) forwardLetterEvents(ctx context.Context, heard chan<- struct{}) {
	for ctx.Err() == nil {
		news, err := p.Bus.Subscribe(ctx, bus.ServerFeed(), 0)
		if err == nil {
			for e, err := range news {
				if err == nil && (e.Type != bus.DeadLetterMoved || e.News == nil || e.News.State != bus.StateBuried) {
					continue
				}
				select {
				case heard <- struct{}{}:
				default: // it is woken already
				}
			}
		}
		sleep(ctx, time.Second)
	}
}

// recordLetters records an event for each dead letter that is newer than the mark of its topic.
func (p *Poster) recordLetters(ctx context.Context) error {
	if !p.Table.Wants(subscriptions.DeadLetterBuried) {
		return nil
	}
	topics, err := p.Bus.Topics(ctx)
	if err != nil {
		return err
	}
	return p.recordTopics(ctx, topics...)
}

// recordTopics does what recordLetters does, for the given topics.
func (p *Poster) recordTopics(ctx context.Context, topics ...bus.Topic) error {
	if !p.Table.Wants(subscriptions.DeadLetterBuried) {
		return nil
	}
	began, err := p.Notes.SetNoteOnce(ctx, lettersSubject, "since", time.Now().UTC().Format(time.RFC3339Nano))
	if err != nil {
		return err
	}
	since, err := time.Parse(time.RFC3339Nano, began)
	if err != nil {
		return fmt.Errorf("decode since when dead letters are looked through: %w", err)
	}
	var failed error // one topic's mark that can't be used holds up no other topic
	for _, topic := range topics {
		failed = errors.Join(failed, p.recordTopic(ctx, topic, since))
	}
	return failed
}

// recordTopic does what recordLetters does, for one topic. Without a mark, since takes its place. It ignores dead
// letters that are so old that events about them would be dropped.
func (p *Poster) recordTopic(ctx context.Context, topic bus.Topic, since time.Time) error {
	was := mark{At: since}
	noted, err := p.Notes.Noted(ctx, lettersSubject, string(topic))
	if err != nil {
		return err
	}
	if noted.Value != "" {
		if err := json.Unmarshal([]byte(noted.Value), &was); err != nil {
			return fmt.Errorf("decode how far dead letters were looked through: %w", err)
		}
	}
	newest, fresh, err := p.lettersAfter(ctx, topic, was)
	if err != nil || len(newest) == 0 || was.knows(newest[0]) {
		return err
	}
	slices.Reverse(fresh)
	oldest := time.Now().Add(-subscriptions.MaxAge)
	var events []subscriptions.Event
	next := mark{was.At, newest[0], slices.Concat(newest, was.Known)}
	next.Known = next.Known[:min(len(next.Known), maxKnownLetters)]
	for _, l := range fresh {
		if l.BuriedAt.After(next.At) {
			next.At = l.BuriedAt
		}
		if l.BuriedAt.After(oldest) {
			events = append(events, letterEvent(l, subscriptions.DeadLetterBuried, l.BuriedAt))
		}
	}
	if err := p.Table.Add(ctx, events...); err != nil {
		return err
	}
	p.Point("subscription:letters")
	raw, err := plainjson.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode how far dead letters were looked through: %w", err)
	}
	return p.Notes.SetNote(ctx, lettersSubject, string(topic), string(raw))
}

// lettersAfter returns the ids of the newest dead letters of a topic that a mark doesn't know, at most maxKnownLetters,
// and the dead letters that were buried after the mark, both with the newest first. If the topic no longer has one
// that the mark knows, it goes by the mark's time, and stops after a page with none that is later.
func (p *Poster) lettersAfter(ctx context.Context, topic bus.Topic, was mark) (newest []string, fresh []bus.DeadLetter, err error) {
	for before, limit := "", 1; ; limit = lettersPerPage { // mostly, the first one is known
		page, err := p.Bus.NewestDeadLetters(ctx, topic, before, limit)
		if err != nil {
			return nil, nil, err
		}
		older := limit == lettersPerPage
		for _, l := range page {
			if was.knows(l.Message.ID) {
				return newest, fresh, nil
			}
			if before = l.Message.ID; len(newest) < maxKnownLetters {
				newest = append(newest, before)
			}
			if was.ID == "" && !l.BuriedAt.After(was.At) { // nothing was recorded yet
				return newest, fresh, nil
			}
			fresh = append(fresh, l)
			older = older && !l.BuriedAt.After(was.At)
		}
		if len(page) < limit || older {
			return newest, slices.DeleteFunc(fresh, func(l bus.DeadLetter) bool { return !l.BuriedAt.After(was.At) }), nil
		}
	}
}

// letterEvent returns the event of the type what that says what became of a dead letter, and when.
func letterEvent(l bus.DeadLetter, what string, at time.Time) subscriptions.Event {
	_, state, _ := strings.Cut(what, ".") // such as bus.StateBuried
	parts := []string{"dead_letter", string(l.Topic), l.Message.ID, l.BuriedAt.UTC().Format(time.RFC3339Nano)}
	if what != subscriptions.DeadLetterBuried {
		parts = append(parts, what)
	}
	e := subscriptions.Event{
		ID: subscriptions.NewID(parts...), Type: what, At: at,
		Data: subscriptions.Data{ID: l.Message.ID, Topic: string(l.Topic), State: state, Session: l.Message.Key},
	}
	if l.Topic != bus.InboundTopic {
		var out struct{ Session, Turn string }
		_ = json.Unmarshal(l.Message.Body, &out) // what can't be read names no session
		e.Data.Session, e.Data.Turn = out.Session, out.Turn
	}
	return e
}
