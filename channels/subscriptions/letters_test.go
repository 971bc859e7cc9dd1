package subscriptions

import (
	"context"
	"fmt"
	"testing"
	"time"

	"parley/bus"
	"parley/sessions/subscriptions"
)

// buriedLetters is a bus with dead letters, the newest first.
type buriedLetters struct {
	Bus
	all   []bus.DeadLetter
	asked int
}

func (b *buriedLetters) Topics(context.Context) ([]bus.Topic, error) {
	b.asked++
	return []bus.Topic{bus.InboundTopic}, nil
}

func (b *buriedLetters) NewestDeadLetters(_ context.Context, _ bus.Topic, before string, limit int) ([]bus.DeadLetter, error) {
	b.asked++
	from := 0
	for i, l := range b.all {
		if l.Message.ID == before {
			from = i + 1
		}
	}
	return b.all[from:min(len(b.all), from+limit)], nil
}

// If all dead letters that a mark knows are gone, the old ones are not all read each time.
func TestOldDeadLettersAreNotReadAgain(t *testing.T) {
	at := time.Now()
	b := &buriedLetters{}
	for i := range 1000 {
		b.all = append(b.all, bus.DeadLetter{Message: bus.Message{ID: fmt.Sprint(i)}, BuriedAt: at.Add(-time.Duration(i) * time.Second)})
	}
	p := &Poster{Config: Config{Bus: b}}
	newest, fresh, err := p.lettersAfter(t.Context(), bus.InboundTopic, mark{At: at.Add(-150*time.Second - 1), ID: "gone", Known: []string{"gone"}})
	if err != nil || len(fresh) != 151 || len(newest) != maxKnownLetters || b.asked > 4 {
		t.Errorf("after %d looks, %d are new, and %d the newest; %v", b.asked, len(fresh), len(newest), err)
	}
	// A known dead letter further back is found, whatever the clock said.
	if _, fresh, err := p.lettersAfter(t.Context(), bus.InboundTopic, mark{At: at.Add(time.Hour), ID: "50"}); err != nil || len(fresh) != 50 {
		t.Errorf("%d are new; %v", len(fresh), err)
	}
}

// If no subscriber wants events about dead letters, none are read.
func TestUnwantedDeadLettersAreNotRead(t *testing.T) {
	b := &buriedLetters{all: []bus.DeadLetter{{Topic: bus.InboundTopic, Message: bus.Message{ID: "1"}, BuriedAt: time.Now()}}}
	table := subscriptions.NewTable(nil)
	table.Want(subscriptions.Subscription{Name: "ops", Events: "turn.*"})
	p := &Poster{Config: Config{Bus: b, Table: table}}
	if err := p.recordLetters(t.Context()); err != nil || b.asked > 0 {
		t.Errorf("the bus is asked %d times; %v", b.asked, err)
	}
}
