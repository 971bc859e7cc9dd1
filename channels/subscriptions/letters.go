package subscriptions

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/bus"
	"parley/sessions/subscriptions"
	"parley/tools/plainjson"
)

// In the notes on this subject the book records how far the dead letters of each topic were looked through, and since
// when.
const (
	lettersSubject = "dead_letters_recorded"
	lettersEvery   = time.Minute // the time between two looks if nothing is heard of dead letters
	lettersAtOnce  = 100
)

// A mark is the newest dead letter of a topic for which an event was recorded.
type mark struct {
	At time.Time `json:"at"`
	ID string    `json:"id"`
}

// watchLetters records an event for each new dead letter, until ctx is done. The bus keeps dead letters, so none is
// missed, whenever the process dies; one process does that at a time.
func (p *Poster) watchLetters(ctx context.Context) {
	err := bus.WhileHeld(ctx, p.Bus, "subscriptions/dead-letters", func(held context.Context) error {
		heard := make(chan struct{}, 1)
		var hearing sync.WaitGroup
		defer hearing.Wait()
		hearing.Go(func() { p.hearLetters(held, heard) })
		for held.Err() == nil {
			if err := p.recordLetters(held); err != nil && held.Err() == nil {
				p.Log.Warn("subscribers may hear late of dead letters", slog.Any("error", err))
			}
			late := time.NewTimer(lettersEvery)
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

// hearLetters sends a value to heard whenever the server's feed may say that there are more dead letters.
func (p *Poster) hearLetters(ctx context.Context, heard chan<- struct{}) {
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
	began, err := p.Notes.SetNoteOnce(ctx, lettersSubject, "since", time.Now().UTC().Format(time.RFC3339Nano))
	if err != nil {
		return err
	}
	since, err := time.Parse(time.RFC3339Nano, began)
	if err != nil {
		return fmt.Errorf("decode since when dead letters are looked through: %w", err)
	}
	topics, err := p.Bus.Topics(ctx)
	if err != nil {
		return err
	}
	for _, topic := range topics {
		if err := p.recordTopic(ctx, topic, since); err != nil {
			return err
		}
	}
	return nil
}

// recordTopic does that for one topic. It ignores dead letters that are so old that events about them would be dropped.
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
	if oldest := time.Now().Add(-subscriptions.Keep); was.At.Before(oldest) {
		was = mark{At: oldest}
	}
	fresh, err := p.lettersAfter(ctx, topic, was)
	if err != nil || len(fresh) == 0 {
		return err
	}
	slices.Reverse(fresh)
	var events []subscriptions.Event
	for _, l := range fresh {
		events = append(events, letterEvent(l))
	}
	if err := p.Table.Add(ctx, events...); err != nil {
		return err
	}
	p.Point("subscription:letters")
	last := fresh[len(fresh)-1]
	raw, err := plainjson.Marshal(mark{last.BuriedAt, last.Message.ID})
	if err != nil {
		return fmt.Errorf("encode how far dead letters were looked through: %w", err)
	}
	return p.Notes.SetNote(ctx, lettersSubject, string(topic), string(raw))
}

// lettersAfter returns the dead letters of a topic that are newer than a mark, the newest first.
func (p *Poster) lettersAfter(ctx context.Context, topic bus.Topic, was mark) (fresh []bus.DeadLetter, err error) {
	for before := ""; ; {
		page, err := p.Bus.NewestDeadLetters(ctx, topic, before, lettersAtOnce)
		if err != nil {
			return nil, err
		}
		for _, l := range page {
			if l.BuriedAt.Before(was.At) || l.BuriedAt.Equal(was.At) && l.Message.ID == was.ID {
				return fresh, nil
			}
			fresh, before = append(fresh, l), l.Message.ID
		}
		if len(page) < lettersAtOnce {
			return fresh, nil
		}
	}
}

func letterEvent(l bus.DeadLetter) subscriptions.Event {
	e := subscriptions.Event{
		ID:   subscriptions.NewID("dead_letter", string(l.Topic), l.Message.ID, l.BuriedAt.UTC().Format(time.RFC3339Nano)),
		Type: subscriptions.DeadLetterBuried, At: l.BuriedAt,
		Data: subscriptions.Data{ID: l.Message.ID, Topic: string(l.Topic), State: bus.StateBuried},
	}
	if l.Topic == bus.InboundTopic {
		e.Data.Session = l.Message.Key
	}
	return e
}
