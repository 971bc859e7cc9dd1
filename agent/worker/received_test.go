package worker_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"parley/bus/bustest"
)

// Watchers of the server are told when a turn begins and ends, and which messages have arrived meanwhile. A message
// that begins a turn is announced with the turn.
func TestWatchersAreToldOfTurnsAndOfMessages(t *testing.T) {
	started, goOn, asked := make(chan struct{}), make(chan struct{}), 0
	b := newBench(t, blockedModel(&asked, started, goOn))
	news := bustest.News(t, b.bus)
	b.run()
	first := b.say("1", "ann", "first")
	<-started
	second := b.say("1", "bob", "second")
	received := fmt.Sprintf("received session=main:test:1 turn= id=%s kind=said state=", second)
	bustest.Await(t, "word of the second message", func() bool { return slices.Contains(news(), received) })
	close(goOn)
	b.wantReply(first, "answer to first")
	b.wantReply(second, "answer to second")
	turn := func(kind, id, state string) string {
		return fmt.Sprintf("%s session=main:test:1 turn=%s id= kind= state=%s", kind, id, state)
	}
	want := []string{
		turn("turn_start", first, "running"), received, turn("turn_complete", first, "done"),
		turn("turn_start", second, "running"), turn("turn_complete", second, "done"),
	}
	bustest.Await(t, "the end of both turns", func() bool { return len(news()) >= len(want) })
	if got := news(); !slices.Equal(got, want) {
		t.Errorf("watchers are told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A message of a session that can't be worked on yet, and is claimed again and again, is announced once.
func TestWatchersAreToldOfAMessageOnce(t *testing.T) {
	t.Parallel()
	started, goOn, asked := make(chan struct{}), make(chan struct{}), 0
	b := newBench(t, blockedModel(&asked, started, goOn))
	b.limit.Turns = 1
	var claims atomic.Int64
	b.point = func(name string) {
		if name == "settled" {
			claims.Add(1)
		}
	}
	b.run()
	first := b.say("1", "ann", "first")
	<-started
	news := bustest.News(t, b.bus)
	waits := b.say("2", "ann", "second")
	behind := b.say("2", "bob", "third")
	bustest.Await(t, "a third claim", func() bool { return claims.Load() >= 3 })
	behinder := b.say("2", "bob", "fourth")
	close(goOn)
	b.wantReply(first, "answer to first")
	b.wantReply(waits, "answer to second")
	b.reply()
	b.settled()
	bustest.Await(t, "the end of the last turn", func() bool {
		return strings.Contains(strings.Join(news(), "\n"), "turn_complete session=main:test:2 turn="+behind)
	})
	told := strings.Join(news(), "\n")
	for id, want := range map[string]int{waits: 0, behind: 1, behinder: 1} {
		if got := strings.Count(told, fmt.Sprintf("received session=main:test:2 turn= id=%s kind=said", id)); got != want {
			t.Errorf("%s is told %d times, want %d, in\n%s", id, got, want, told)
		}
	}
}
