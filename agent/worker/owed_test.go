package worker_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent/llm"
	"parley/agent/route"
	"parley/bus"
	"parley/sessions"
)

// The entry that a reply is published is written with the session's next write, or some seconds later if there is none.
func TestThePublishedEntryIsWrittenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBenchIn(t, t.TempDir(), func(_ context.Context, r llm.Request) (llm.Answer, error) {
			return textAnswer("heard " + newestUserText(r)), nil
		})
		log := func() string {
			var kinds []string
			for e, err := range b.store.Read(t.Context(), "main:test:1", 1) {
				if err != nil {
					t.Fatal(err)
				}
				if e.N != int64(len(kinds)+1) || time.Since(e.At) > time.Minute {
					t.Errorf("entry %d is number %d, of %s", len(kinds)+1, e.N, e.At)
				}
				kinds = append(kinds, string(e.Kind))
			}
			return strings.Join(kinds, " ")
		}
		const turn = "turn_started user text usage turn_done"
		defer b.run()()
		b.wantReply(b.say("1", "ann", "one"), "heard one")
		b.settled()
		b.wantReply(b.say("1", "ann", "two"), "heard two")
		b.settled()
		if got, want := log(), turn+" published "+turn; got != want {
			t.Errorf("the log is %q, want %q", got, want)
		}
		b.wantReply(b.say("1", "ann", "/new"), "")
		b.settled()
		b.wantReply(b.say("1", "ann", "three"), "heard three")
		b.settled()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got, want := log(), turn+" published "+turn+" published command summary "+turn+" published"; got != want {
			t.Errorf("the log is %q, want %q", got, want)
		}
	})
}

// A reply that is not logged as published is published again, but not long after it was sent, when the book may no
// longer know it.
func TestAnOldReplyIsNotPublishedAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		age  time.Duration
		want bool
	}{{"yesterday's", 24 * time.Hour, true}, {"last month's", 25 * 24 * time.Hour, false}} {
		t.Run(c.name, func(t *testing.T) {
			b := newBenchIn(t, t.TempDir(), func(_ context.Context, r llm.Request) (llm.Answer, error) {
				return textAnswer("heard " + newestUserText(r)), nil
			})
			log, err := b.store.Open(t.Context(), "main:test:1", 1)
			if err != nil {
				t.Fatal(err)
			}
			at := bus.Address{Channel: "test", Chat: "1"}
			add := func(kind sessions.Kind, data any) {
				e, err := sessions.NewEntry("old", kind, data)
				if err != nil {
					t.Fatal(err)
				}
				e.At = time.Now().Add(-c.age)
				if kind == sessions.KindUser {
					e.Cause, e.Person = "old", "test:ann"
				}
				if err := log.Append(t.Context(), log.Next(), e); err != nil {
					t.Fatal(err)
				}
			}
			add(sessions.KindTurnStarted, sessions.TurnStarted{Route: route.Route{At: at}.Encode(), Agent: "main"})
			add(sessions.KindUser, sessions.User{Text: "hello"})
			add(sessions.KindText, sessions.Text{Text: "then"})
			add(sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCompleted, Outbound: []sessions.Reply{{ID: "old#reply", Text: "then"}}})
			b.run()
			id := b.say("1", "ann", "now")
			if c.want {
				b.wantReply("old", "then")
			}
			b.wantReply(id, "heard now")
			b.settled()
			if got, want := b.kinds("1"), "turn_started user text turn_done published turn_started user text usage turn_done published"; got != want {
				t.Errorf("the log is %q, want %q", got, want)
			}
		})
	}
}
