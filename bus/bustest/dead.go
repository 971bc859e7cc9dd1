package bustest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"parley/bus"
)

var deadLetterPromises = []promise{
	{"keeps a dead letter with its reason and its attempts", testBury},
	{"lets the mail behind it go on", testMailBehindDeadLetter},
	{"lists in pages, oldest first", testDeadLetterPages},
	{"replays under a new id, and forgets the dead letter with it", testReplay},
	{"does not replay into a full mailbox", testReplayIntoFull},
	{"drops", testDrop},
}

// bury claims the next mailbox, checks that it has that key and exactly these messages, and makes dead letters of all
// of them.
func (r *rig) bury(key, reason string, ids ...string) {
	r.Helper()
	l := r.claimKey(key)
	r.settle(l, bus.End{Dead: r.wantMail(l, 0, ids...), Reason: reason})
}

// wantDeadLetters lists dead letters, checks that they have these ids, and returns them.
func (r *rig) wantDeadLetters(after string, limit int, ids ...string) []bus.DeadLetter {
	r.Helper()
	list, err := r.DeadLetters(r.Context(), inbound, after, limit)
	r.noError("dead letters", err)
	var got []string
	for _, d := range list {
		got = append(got, d.Message.ID)
	}
	if fmt.Sprint(got) != fmt.Sprint(ids) {
		r.Fatalf("dead letters after %q are %v, want %v", after, got, ids)
	}
	return list
}

func testBury(r *rig) {
	r.open(Options{})
	r.publish("k", "a", "b", "c")
	r.settle(r.claimKey("k"), bus.End{})
	l := r.claimKey("k")
	last := r.wantMail(l, 0, "a", "b", "c")
	mail, err := l.Mail(r.Context(), 0)
	r.noError("mail", err)
	before := time.Now().Add(-time.Second)
	r.settle(l, bus.End{Done: mail[0].Seq, Dead: last, Reason: "poison"})
	for range 2 {
		for i, d := range r.wantDeadLetters("", 10, "b", "c") {
			m := d.Message
			if d.Topic != inbound || d.Reason != "poison" || d.Attempts != 2 || m.Key != "k" || m.Seq != mail[i+1].Seq || string(m.Body) != "body of "+m.ID {
				r.Errorf("dead letter is %+v", d)
			}
			if one, err := r.DeadLetter(r.Context(), inbound, m.ID); err != nil || !reflect.DeepEqual(one, d) {
				r.Errorf("alone it is %+v, %v", one, err)
			}
			if d.BuriedAt.Before(before) || d.BuriedAt.After(time.Now().Add(time.Minute)) {
				r.Errorf("buried at %v", d.BuriedAt)
			}
		}
		if d := r.readDepth(inbound); d.Dead != 2 || d.Waiting != 0 {
			r.Errorf("depth is %+v", d)
		}
		r.wantNothingLeft()
		r.reopen()
	}
	r.publish("k", "b") // the bus accepted the message, so its id is used
	r.wantNothingDue(inbound, 50*time.Millisecond)
	if d, err := r.DeadLetter(r.Context(), inbound, "a"); !errors.Is(err, bus.ErrNotFound) {
		r.Errorf("one that was not buried is %+v, %v", d, err)
	}
	if list, err := r.DeadLetters(r.Context(), bus.TimersTopic, "", 10); err != nil || len(list) > 0 {
		r.Errorf("another topic has %v, %v", list, err)
	}
}

func testMailBehindDeadLetter(r *rig) {
	r.open(Options{})
	r.publish("k", "poison", "good")
	l := r.claimKey("k")
	mail, err := l.Mail(r.Context(), 0)
	r.noError("mail", err)
	r.settle(l, bus.End{Dead: mail[0].Seq, Reason: "poison"})
	l = r.claimKey("k")
	r.wantAttempts(l, 1)
	r.settle(l, bus.End{Done: r.wantMail(l, 0, "good")})
	r.wantDeadLetters("", 10, "poison")
}

func testDeadLetterPages(r *rig) {
	r.open(Options{})
	for _, id := range []string{"z", "y", "x", "w", "v"} {
		r.publish(id, id)
		r.bury(id, "no", id)
	}
	r.wantDeadLetters("", 2, "z", "y")
	r.wantDeadLetters("y", 2, "x", "w")
	r.wantDeadLetters("w", 2, "v")
	r.wantDeadLetters("v", 2)
	for before, want := range map[string]string{"": "v w", "w": "x y", "y": "z", "z": ""} {
		list, err := r.NewestDeadLetters(r.Context(), inbound, before, 2)
		var ids []string
		for _, d := range list {
			ids = append(ids, d.Message.ID)
		}
		if err != nil || strings.Join(ids, " ") != want {
			r.Errorf("the newest dead letters before %q are %q, want %q, %v", before, ids, want, err)
		}
	}
}

func testReplay(r *rig) {
	r.open(Options{})
	r.publish("k", "a")
	r.bury("k", "no", "a")
	for n := range 3 {
		id := "a"
		if n > 0 {
			id = fmt.Sprint("a~", n)
		}
		r.publish("k", fmt.Sprint("other", n))
		got, err := r.Replay(r.Context(), inbound, id)
		r.noError("replay", err)
		want := fmt.Sprint("a~", n+1)
		if got != want {
			r.Fatalf("%s is replayed as %s, want %s", id, got, want)
		}
		r.wantDeadLetters("", 10)
		_, err = r.Replay(r.Context(), inbound, id)
		r.wantError("replay again", err, bus.ErrNotFound)
		r.reopen()
		r.publish("k", want) // the id is known now
		l := r.claimKey("k")
		got1, err := l.Mail(r.Context(), 0)
		r.noError("mail", err)
		if len(got1) != 2 || got1[1].ID != want || string(got1[1].Body) != "body of a" {
			r.Fatalf("mail is %+v, want the replayed message at its end", got1)
		}
		r.settle(l, bus.End{Done: got1[0].Seq, Dead: got1[1].Seq, Reason: "again"})
	}
	r.publish("k", "b~7") // an id may look like a replay's
	r.bury("k", "no", "b~7")
	if got, err := r.Replay(r.Context(), inbound, "b~7"); err != nil || got != "b~7~1" {
		r.Errorf("b~7 is replayed as %q, %v", got, err)
	}
}

func testReplayIntoFull(r *rig) {
	r.open(Options{Caps: bus.Caps{Inbound: 1}})
	r.publish("k", "a")
	r.bury("k", "no", "a")
	r.publish("k", "b")
	_, err := r.Replay(r.Context(), inbound, "a")
	r.wantError("replay", err, bus.ErrFull)
	r.wantDeadLetters("", 10, "a")
	r.finish("k", "b")
	id, err := r.Replay(r.Context(), inbound, "a")
	r.noError("replay", err)
	if id != "a~1" {
		r.Errorf("replayed as %q, want a~1: what is refused burns no id", id)
	}
	_, err = r.Replay(r.Context(), inbound, "nothing")
	r.wantError("replay", err, bus.ErrNotFound)
}

func testDrop(r *rig) {
	r.open(Options{})
	r.publish("k", "a", "b")
	r.bury("k", "no", "a", "b")
	r.noError("drop", r.Drop(r.Context(), inbound, "a"))
	r.wantError("drop again", r.Drop(r.Context(), inbound, "a"), bus.ErrNotFound)
	r.wantError("drop from another topic", r.Drop(r.Context(), bus.TimersTopic, "b"), bus.ErrNotFound)
	r.wantDeadLetters("", 10, "b")
	r.reopen()
	r.wantDeadLetters("", 10, "b")
}
