package events_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/bustest"
	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/channels/sqlbook"
	"parley/channels/stagetest"
	"parley/channels/webhook/events"
)

// A rig is a Channel over a real bus and book.
type rig struct {
	*events.Channel
	bus  *sqlitebus.Bus
	book *sqlbook.Book
	now  time.Time
}

func newRig(t *testing.T) *rig {
	t.Helper()
	on := stagetest.Open(t, t.TempDir(), sqlitebus.Config{Caps: bus.Caps{Inbound: 20, Outbound: 100}})
	t.Cleanup(on.Close)
	r := &rig{bus: on.Bus, book: on.Book, now: time.Now().UTC().Truncate(time.Hour).Add(10 * time.Minute)}
	r.Channel = &events.Channel{
		Bus: on.Bus, Events: on.Bus, Book: on.Book, Now: func() time.Time { return r.now },
		Webhooks: func(name string) (events.Webhook, bool) {
			return events.Webhook{Agent: "ops", To: []bus.Address{{Channel: "slack", Chat: "CI"}}}, name == "hook" || name == "other"
		},
	}
	return r
}

func event(webhook string, n int) bus.Inbound {
	return bus.Inbound{ID: fmt.Sprintf("%s-%d", webhook, n), From: bus.Person{ID: events.Person(webhook)}, At: events.Address(webhook, "g")}
}

// A webhook starts that many turns in an hour whichever process counts, and people are
// told once; whoever asks again is told the same.
func TestTurnsInAnHour(t *testing.T) {
	r := newRig(t)
	var mu sync.Mutex
	admitted, told := map[string]bool{}, map[string]string{}
	var wg sync.WaitGroup
	for i := range 2 * events.MaxTurns {
		wg.Go(func() {
			refused, err := r.Admit(t.Context(), event("hook", i))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			id := event("hook", i).ID
			if refused == nil {
				admitted[id] = true
			} else if refused.Text != "" {
				told[id] = refused.Text
			}
		})
	}
	wg.Wait()
	if len(admitted) != events.MaxTurns || len(told) != 1 {
		t.Errorf("%d turns begin, and people are told %d times", len(admitted), len(told))
	}
	for i := range 2 * events.MaxTurns { // as after a crash
		in := event("hook", i)
		refused, err := r.Admit(t.Context(), in)
		if err != nil || (refused == nil) != admitted[in.ID] || refused != nil && refused.Text != told[in.ID] {
			t.Errorf("%s is told %+v, %v the second time", in.ID, refused, err)
		}
	}
	if refused, err := r.Admit(t.Context(), event("other", 1)); refused != nil || err != nil {
		t.Errorf("another webhook is refused: %+v, %v", refused, err)
	}
	r.now = r.now.Add(time.Hour)
	if refused, err := r.Admit(t.Context(), event("hook", 1000)); refused != nil || err != nil {
		t.Errorf("in the next hour: %+v, %v", refused, err)
	}
}

// People are not counted here, whatever they call themselves.
func TestPeopleAreNotCounted(t *testing.T) {
	r := newRig(t)
	for i := range 2 * events.MaxTurns {
		in := bus.Inbound{ID: fmt.Sprint(i), From: bus.Person{ID: "slack:U1"}, At: bus.Address{Channel: "slack", Chat: "C1"}}
		if refused, err := r.Admit(t.Context(), in); refused != nil || err != nil {
			t.Fatalf("%+v, %v", refused, err)
		}
	}
}

// What an agent finds goes where its event was to go, once, however often it is handed in.
func TestAReportGoesWhereTheEventWasToGo(t *testing.T) {
	r := newRig(t)
	at := events.Address("hook", "{}:{a=\"b`\"}")
	p, _, err := r.book.Accept(t.Context(), channels.Submission{ID: "m_1", Origin: "webhook/hook", At: r.now, Destinations: []bus.Address{
		at, {Channel: "slack", Chat: "ONE"}, {Channel: "slack", Chat: "TWO"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	part := channels.Part{Key: channels.PartKey(bus.ReplyID(p.ID), 0), Text: "the disk is full", ReplyTo: p.ID}
	for range 3 {
		if _, err := r.Send(t.Context(), at, part); err != nil {
			t.Fatal(err)
		}
	}
	all := bustest.TakeOutbound(t, r.bus, "slack")
	if len(all) != 2 || all[0].To == all[1].To {
		t.Fatalf("it is sent as %+v", all)
	}
	for _, out := range all {
		if !strings.HasSuffix(out.Text, "the disk is full") || !strings.HasPrefix(out.Text, "**hook** `{}:{a=\"b\"}`\n") {
			t.Errorf("it reads %q", out.Text)
		}
		if out.Turn != p.ID || !strings.HasPrefix(out.Session, "ops:webhook:hook:") || out.Told == nil || out.Told.Words != "the disk is full" {
			t.Errorf("it is %+v", out)
		}
	}
	// What no submission tells of goes where the webhook leads.
	if _, err := r.Send(t.Context(), at, channels.Part{Key: "x/0", Text: "more", ReplyTo: "m_forgotten"}); err != nil {
		t.Fatal(err)
	}
	if all := bustest.TakeOutbound(t, r.bus, "slack"); len(all) != 1 || all[0].To.Chat != "CI" {
		t.Errorf("it is sent as %+v", all)
	}
	_, err = r.Send(t.Context(), events.Address("gone", "g"), part)
	if refused, ok := errors.AsType[*channels.SendError](err); !ok || refused.Fault != channels.Rejected {
		t.Errorf("of a webhook that is gone: %v", err)
	}
}

// A bus that is away is asked again, and nothing is lost.
func TestAReportWaitsForTheBus(t *testing.T) {
	r := newRig(t)
	r.bus.Close()
	_, err := r.Send(context.Background(), events.Address("hook", "g"), channels.Part{Key: "x/0", Text: "more"})
	if refused, ok := errors.AsType[*channels.SendError](err); !ok || refused.Fault != channels.Retry {
		t.Errorf("without a bus: %v", err)
	}
}
