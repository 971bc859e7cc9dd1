package redisbus_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus"
	"parley/bus/bustest"
	"parley/bus/redisbus"
	"parley/bus/redisbus/redistest"
	"parley/tools/testlog"
)

const inbound = bus.InboundTopic

// patience is how long a test waits for something before it fails.
const patience = 2 * time.Minute

// A rig is a bus on the test's own Redis server, with steps that several tests use.
type rig struct {
	*testing.T
	*redisbus.Bus
	server  *redistest.Server
	network *network
	redis   *redis.Client
	log     *testlog.Buffer
}

func newRig(t *testing.T, lease time.Duration, args ...string) *rig {
	t.Helper()
	r := &rig{T: t, server: redistest.New(t, args...), network: newNetwork(), log: new(testlog.Buffer)}
	r.redis = connect(t, r.server.URL())
	r.Bus = r.another(lease, r.network)
	return r
}

// another opens one more bus on the same server, through another network.
func (r *rig) another(lease time.Duration, way *network) *redisbus.Bus {
	r.Helper()
	b, err := redisbus.Open(r.Context(), redisbus.Config{
		URL: r.server.URL(), Lease: lease, Log: slog.New(slog.NewTextHandler(r.log, nil)), Dial: way.dial,
	})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		if err := b.Close(); err != nil {
			r.Errorf("close: %v", err)
		}
	})
	return b
}

func (r *rig) ok(what string, err error) {
	r.Helper()
	if err != nil {
		r.Fatalf("%s: %v", what, err)
	}
}

func (r *rig) publish(key string, ids ...string) {
	r.Helper()
	for _, id := range ids {
		r.ok("publish "+id, r.Publish(r.Context(), inbound, bus.Message{ID: id, Key: key, Body: []byte("body of " + id)}))
	}
}

// claim claims a mailbox, and fails the test unless its key is key.
func (r *rig) claim(key string) bus.Lease {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	l, err := r.Claim(ctx, inbound)
	r.ok("claim", err)
	if got := l.Claim().Key; got != key {
		r.Fatalf("claimed %q, want %q", got, key)
	}
	return l
}

// nothingDue checks that for a while no mailbox can be claimed.
func (r *rig) nothingDue(while time.Duration) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), while)
	defer cancel()
	if l, err := r.Claim(ctx, inbound); !errors.Is(err, context.DeadlineExceeded) {
		r.Fatalf("claimed %v, %v; want nothing to be due", l, err)
	}
}

// finish settles a lease, and fails the test unless its messages have these ids.
func (r *rig) finish(l bus.Lease, ids ...string) {
	r.Helper()
	mail := r.mailAfter(l, 0)
	var got []string
	for _, m := range mail {
		got = append(got, m.ID)
	}
	if fmt.Sprint(got) != fmt.Sprint(ids) {
		r.Fatalf("mail is %v, want %v", got, ids)
	}
	r.ok("settle", l.Settle(r.Context(), bus.End{Done: mail[len(mail)-1].Seq}))
}

// checkHeld waits until the bus knows whether it holds a lease, and fails the test if it doesn't.
func (r *rig) checkHeld(l bus.Lease) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	r.ok("held", l.Held(ctx))
}

// mailAfter waits for messages after a number.
func (r *rig) mailAfter(l bus.Lease, after int64) []bus.Message {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	mail, err := bustest.AwaitMail(ctx, l, after)
	r.ok("mail", err)
	return mail
}

// await waits until cond returns true.
func (r *rig) await(what string, cond func() bool) {
	r.Helper()
	bustest.Await(r, what, cond)
}
