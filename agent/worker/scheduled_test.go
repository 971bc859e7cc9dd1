package worker_test

import (
	"fmt"
	"testing"
	"time"

	"parley/bus"
)

// publishScheduled publishes a message of one of ann's schedules.
func (b *bench) publishScheduled(id, said string) {
	b.t.Helper()
	b.publish(bus.Inbound{
		ID: id, Kind: bus.Scheduled, From: bus.Person{ID: "test:ann"}, At: bus.Address{Channel: "test", Chat: "1"}, Text: said, Schedule: "s", SentAt: time.Now(),
	})
}

// A schedule's message is a turn of its own: it neither steers its person's turn, nor is it answered together with the
// person's messages before and after it.
func TestWhatAScheduleSaysIsATurnOfItsOwn(t *testing.T) {
	for _, steer := range []bool{true, false} {
		t.Run(fmt.Sprint("steer ", steer), func(t *testing.T) {
			started, goOn, asked := make(chan struct{}), make(chan struct{}), 0
			b := newBench(t, blockedModel(&asked, started, goOn))
			b.agent.Steer = steer
			b.run()
			b.sayPiece("p0", "first", false)
			<-started
			b.publishScheduled("s1", "look")
			b.publishScheduled("s2", "look again")
			b.sayPiece("p3", "3", false)
			b.sayPiece("p4", "4", false)
			waitWaiting(t, b, 5)
			close(goOn)
			for _, want := range []string{"answer to first", "answer to look", "answer to look again", "answer to 3|4"} {
				if out := b.reply(); out.Text != want {
					t.Errorf("%+v, want %q", out, want)
				}
			}
			b.settled()
			b.wantCauses("p0: p0; s1: s1; s2: s2; p3: p3 p4")
		})
	}
}

// A schedule's message is not an answer to a question that its person was asked.
func TestAScheduleAnswersNoQuestion(t *testing.T) {
	b := newBench(t, actModel(`ask {"question":"Which?"}`), askPeople())
	d := b.ask()
	b.run()
	first := b.say("1", "ann", "go")
	id, _ := b.nextAskID()
	b.publishScheduled("s1", "look")
	b.settled() // it is kept for the turn, and nobody is told so
	if ask, err := d.book.LookupAsk(t.Context(), id); err != nil || ask.State != bus.AskOpen {
		t.Errorf("the book has %+v, %v", ask, err)
	}
	b.say("1", "ann", "blue")
	b.wantEnd(id, "Answered by ann (test:ann)")
	b.wantReply(first, `{"answer":"blue"}; look`)
	b.settled()
}
