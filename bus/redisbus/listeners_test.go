package redisbus_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus"
	"parley/bus/redisbus"
)

// published returns how often the server has run PUBLISH.
func (r *rig) published() (calls int) {
	r.Helper()
	info, err := r.redis.Info(r.Context(), "commandstats").Result()
	r.ok("info", err)
	if _, stats, ok := strings.Cut(info, "cmdstat_publish:calls="); ok {
		_, err := fmt.Sscan(strings.SplitN(stats, ",", 2)[0], &calls)
		r.ok("calls", err)
	}
	return calls
}

// turnStart returns an event for three feeds: the session's, the channel's and the server's.
func turnStart(turn string) bus.Event {
	return bus.Event{Type: bus.TurnStart, Session: "s", Turn: turn, Route: bus.Address{Channel: "telegram", Chat: "1"}}
}

func TestEventsArePublishedWhereSomebodyListens(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	other := r.another(testLease, newNetwork())
	stream := "parley:{0}:events:session/s"
	before := r.published()
	r.Emit(turnStart("unseen"))
	r.await("the event to be sent", func() bool { return r.redis.XLen(t.Context(), stream).Val() == 1 })
	if n := r.published() - before; n != 0 {
		t.Errorf("%d PUBLISH, and nobody listens", n)
	}

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen, err := other.Subscribe(ctx, bus.ChannelFeed("telegram"), 0)
	r.ok("subscribe", err)
	before = r.published()
	r.Emit(turnStart("seen"))
	for e, err := range seen {
		r.ok("watch", err)
		if e.Turn != "seen" {
			t.Errorf("a watcher sees %+v", e)
		}
		break
	}
	if n := r.published() - before; n != 1 {
		t.Errorf("%d PUBLISH for one feed that is watched and two that are not", n)
	}
	// Events that nobody listened to are kept for later subscribers.
	held, err := other.HeldEvents(ctx, bus.SessionFeed("s"))
	r.ok("held events", err)
	if len(held) != 2 || held[0].Turn != "unseen" {
		t.Errorf("held are %+v", held)
	}
	again, err := other.Subscribe(ctx, bus.SessionFeed("s"), held[0].ID)
	r.ok("subscribe", err)
	for e, err := range again {
		if err != nil || e.Turn != "seen" {
			t.Errorf("who goes on after the first sees %+v, %v", e, err)
		}
		break
	}
}

// If a server doesn't reveal who listens, the bus publishes every event.
func TestEventsWhereListenersAreSecret(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	r.ok("acl", r.redis.Do(t.Context(), "acl", "setuser", "limited", "on", ">secret", "~*", "&*", "+@all", "-pubsub").Err())
	limited, err := redisbus.Open(t.Context(), redisbus.Config{URL: strings.Replace(r.server.URL(), "://", "://limited:secret@", 1)})
	r.ok("open", err)
	defer func() { r.ok("close", limited.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen, err := r.Subscribe(ctx, bus.SessionFeed("s"), 0)
	r.ok("subscribe", err)
	limited.Emit(turnStart("t"))
	for e, err := range seen {
		if err != nil || e.Turn != "t" {
			t.Errorf("the watcher sees %+v, %v", e, err)
		}
		return
	}
	t.Error("the watcher sees nothing")
}

func TestReleaseTellsThoseWhoWait(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	waiter := r.another(testLease, newNetwork())
	hold := func() func() {
		t.Helper()
		_, release, err := r.Hold(t.Context(), "name")
		r.ok("hold", err)
		return release
	}
	release, before := hold(), r.published()
	release()
	if n := r.published() - before; n != 0 {
		t.Errorf("%d PUBLISH, and nobody waits", n)
	}

	release = hold()
	got := make(chan time.Time)
	go func() {
		_, release, err := waiter.Hold(t.Context(), "name")
		got <- time.Now()
		if err != nil {
			t.Error(err)
			return
		}
		release()
	}()
	waits := "parley:{0}:waiting:name"
	r.await("somebody to wait", func() bool { return r.redis.SCard(t.Context(), waits).Val() == 1 })
	if ttl := r.redis.PTTL(t.Context(), waits).Val(); ttl <= 0 {
		t.Errorf("who waits is remembered for %v", ttl)
	}
	before = r.published()
	released := time.Now()
	release()
	if took := (<-got).Sub(released); took > 500*time.Millisecond { // by itself it would ask after a second
		t.Errorf("the waiter got the name after %v", took)
	}
	if n := r.published() - before; n != 1 {
		t.Errorf("%d PUBLISH for one who waits", n)
	}

	// A process of the previous release waits by listening.
	older := r.redis.Subscribe(t.Context(), "parley:{0}:released")
	defer func() { r.ok("stop listening", older.Close()) }()
	_, err := older.Receive(t.Context())
	r.ok("listen", err)
	hold()()
	heard, err := older.ReceiveTimeout(t.Context(), patience)
	r.ok("hear", err)
	if m, ok := heard.(*redis.Message); !ok || m.Payload != "name" {
		t.Errorf("the release before hears %v", heard)
	}
}
