package redisbus_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/redisbus"
)

// Opening a bus finds mailboxes that are missing in every queue, and puts them back.
func TestRepair(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	r := newRig(t, lease)
	r.publish("lost", "a")
	r.publish("waits", "b")
	r.publish("hollow", "c")
	r.publish("worked", "d", "e")
	r.publish("illegible", "f")
	r.publish("headless", "g", "h")
	ctx := t.Context()
	k := redisbus.TopicKeys("parley", inbound)
	r.ok("close", r.Close())
	for _, key := range []string{"lost", "hollow", "worked", "illegible"} {
		r.ok("plant", r.redis.ZRem(ctx, k.Due, key).Err())
	}
	r.ok("plant", r.redis.HDel(ctx, k.Heads, "hollow", "headless").Err())
	packed, err := r.redis.HGet(ctx, k.State, "worked").Result()
	r.ok("plant", err)
	r.ok("plant", r.redis.HSet(ctx, k.State, "worked", "somebody-els"+packed[12:], "illegible", "?").Err())

	r.Bus = r.another(lease, r.network)
	want := map[string]string{"lost": "[a]", "waits": "[b]", "worked": "[d e]", "illegible": "[f]", "headless": "[h]"}
	for range len(want) {
		claim, cancel := context.WithTimeout(ctx, patience)
		l, err := r.Claim(claim, inbound)
		r.ok("claim", err)
		cancel()
		var ids []string
		for _, m := range r.mailAfter(l, 0) {
			ids = append(ids, m.ID)
		}
		if key := l.Claim().Key; want[key] != fmt.Sprint(ids) {
			t.Errorf("%s has %v, want %s", key, ids, want[key])
		}
		r.ok("settle", l.Settle(ctx, bus.End{Done: 1 << 60}))
	}
	r.idle()
	if n := r.redis.ZCard(ctx, k.Leased).Val(); n != 0 {
		t.Errorf("%d leases are left", n)
	}
	if !strings.Contains(r.log.String(), "mailboxes=5") {
		t.Errorf("logged %s, want five mailboxes to be repaired", r.log)
	}
}

// A broken topic doesn't affect others.
func TestTopicBroken(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	r := newRig(t, lease)
	broken := bus.OutboundTopic("broken")
	r.ok("publish", r.Publish(t.Context(), broken, bus.Message{ID: "a", Key: "k"}))
	_, err := r.Claim(t.Context(), broken)
	r.ok("claim", err)
	held, release, err := r.Hold(t.Context(), "name")
	r.ok("hold", err)
	defer release()
	r.publish("k", "b")
	l := r.claim("k")
	r.ok("break", r.redis.Set(t.Context(), redisbus.TopicKeys("parley", broken).State, "?", 0).Err())
	r.nothingDue(3 * lease)
	select {
	case <-l.Lost():
		t.Error("a lease in another topic is lost")
	case <-held.Done():
		t.Error("a hold is lost")
	default:
	}
	r.checkHeld(l)
	r.finish(l, "b")
}

// A server that is out of memory accepts no new messages, but those that it has are processed.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	const lease = 500 * time.Millisecond
	r := newRig(t, lease)
	r.publish("k", "a")
	r.publish("k2", "b")
	l := r.claim("k")
	r.ok("config", r.redis.ConfigSet(t.Context(), "maxmemory", "1").Err())
	if err := r.Publish(t.Context(), inbound, bus.Message{ID: "c", Key: "k"}); err == nil {
		t.Error("a server without memory takes mail")
	}
	r.finish(r.claim("k2"), "b")
	r.nothingDue(2 * lease) // the lease is extended anyway
	r.checkHeld(l)
	r.finish(l, "a")
	_, release, err := r.Hold(t.Context(), "name")
	r.ok("hold", err)
	release()
	r.ok("config", r.redis.ConfigSet(t.Context(), "maxmemory", "0").Err())
	r.publish("k", "c")
	r.finish(r.claim("k"), "c")
	r.idle()
}

// A process that takes a wake token and dies delays the messages only for a moment.
func TestWakeTokenLost(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	wake := redisbus.TopicKeys("parley", inbound).Wake
	thief := connect(t, r.server.URL())
	stolen := make(chan error, 1)
	go func() {
		stolen <- thief.BLPop(context.Background(), 20*time.Second, wake).Err()
	}()
	r.await("the thief to be first in line", func() bool {
		info, err := r.redis.Info(t.Context(), "clients").Result()
		r.ok("info", err)
		return strings.Contains(info, "blocked_clients:1")
	})
	got := make(chan bus.Lease, 1)
	go func() {
		l, _ := r.Claim(t.Context(), inbound)
		got <- l
	}()
	r.await("the bus to listen too", func() bool {
		info, err := r.redis.Info(t.Context(), "clients").Result()
		r.ok("info", err)
		return strings.Contains(info, "blocked_clients:2")
	})
	start := time.Now()
	r.publish("k", "a")
	r.ok("steal", <-stolen)
	l := <-got
	if took := time.Since(start); took > 1500*time.Millisecond {
		t.Errorf("the mail came after %v", took)
	}
	r.finish(l, "a")
}

// If a notification about new messages is lost with its connection, the next round of extensions makes up for it.
func TestNoteLost(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	r.publish("k", "a")
	l := r.claim("k")
	mail := r.mailAfter(l, 0)
	r.await("the connection to be there", func() bool {
		n, err := r.redis.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Result()
		r.ok("kill", err)
		return n > 0
	})
	r.publish("k", "b")
	start := time.Now()
	next := r.mailAfter(l, mail[0].Seq)
	if took := time.Since(start); took > testLease/3+500*time.Millisecond {
		t.Errorf("the mail came after %v", took)
	}
	r.ok("settle", l.Settle(t.Context(), bus.End{Done: next[0].Seq}))
}

// A waiting message uses little memory besides its body. A settled one leaves only its id and, for some minutes,
// which process had its mailbox.
func TestMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease, "--appendonly", "no")
	used := func() int {
		info, err := r.redis.Info(t.Context(), "memory").Result()
		r.ok("info", err)
		_, rest, _ := strings.Cut(info, "used_memory:")
		digits, _, _ := strings.Cut(rest, "\r")
		n, err := strconv.Atoi(digits)
		r.ok("used_memory", err)
		return n
	}
	const n, body = 10000, 512
	before := used()
	for i := range n {
		key := fmt.Sprintf("main:telegram:%d", 100000000+i)
		r.ok("publish", r.Publish(t.Context(), inbound, bus.Message{ID: "telegram:" + key, Key: key, Body: make([]byte, body)}))
	}
	waiting := used()
	if each := (waiting-before)/n - body; each > 1200 {
		t.Errorf("a waiting message costs %d bytes beside its body", each)
	} else {
		t.Logf("a waiting message costs %d bytes beside its body", each)
	}
	for range n {
		l, err := r.Claim(t.Context(), inbound)
		r.ok("claim", err)
		r.ok("settle", l.Settle(t.Context(), bus.End{Done: 1 << 60}))
	}
	r.idle()
	lately := r.redis.Keys(t.Context(), "parley:{0}:last:*").Val()
	if len(lately) != n {
		t.Errorf("it is remembered of %d sessions who had them, want %d", len(lately), n)
	}
	with := used()
	for _, key := range lately {
		if left := r.redis.TTL(t.Context(), key).Val(); left <= 0 || left > 10*time.Minute {
			t.Fatalf("%s is kept for %v", key, left)
		}
		r.ok("delete", r.redis.Del(t.Context(), key).Err())
	}
	if each := (with - used()) / n; each > 200 {
		t.Errorf("remembering who had a session takes %d bytes", each)
	} else {
		t.Logf("remembering who had a session takes %d bytes", each)
	}
	if each := (used() - before) / n; each > 250 {
		t.Errorf("a message that has gone leaves %d bytes", each)
	} else {
		t.Logf("a message that has gone leaves %d bytes", each)
	}
}
