package redisbus_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/redisbus"
	"parley/bus/redisbus/redistest"
	redisserver "parley/bus/redisbus/server"
)

// importer begins an import.
func (r *rig) importer(id string) *redisbus.Importer {
	r.Helper()
	in, err := redisbus.NewImporter(r.Context(), r.Bus, id)
	r.ok("look", err)
	r.ok("begin", in.Begin(r.Context(), time.Now().Add(time.Minute).UnixMicro()))
	return in
}

// message returns the n-th message of another bus.
func message(n int64, key string) redisbus.StoredMessage {
	id := fmt.Sprint("m", n)
	return redisbus.StoredMessage{Topic: inbound, Message: bus.Message{ID: id, Key: key, Seq: n, Body: []byte("body of " + id)}}
}

func TestImport(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	tried := message(2, "tried")
	tried.Attempts = 4
	later := message(5, "later")
	later.Message.NotBefore = time.Now().Add(time.Hour)
	waits := message(6, "waits")
	waits.Due = time.Now().Add(time.Hour)
	urgent := message(7, "waits")
	urgent.Message.Urgent = true
	all := []redisbus.StoredMessage{message(1, "long"), tried, message(3, "long"), message(4, "long"), later, waits, urgent}
	dead := []redisbus.StoredMessage{message(8, "gone"), message(9, "gone")}
	for i := range dead {
		dead[i].Attempts, dead[i].Reason, dead[i].BuriedAt = 10, "given up: no answer", time.UnixMicro(1_700_000_000_000_000)
	}
	day := time.Now().UnixMicro() / (24 * time.Hour).Microseconds()
	// An import that is cut off at any point starts over from the first message.
	for cut := range len(all) + 1 {
		in := r.importer("move")
		for _, l := range all[:cut] {
			r.ok("take", in.AddMessage(t.Context(), l))
		}
	}
	in := r.importer("move")
	for range 2 {
		for _, l := range dead {
			r.ok("inter", in.AddDead(t.Context(), l))
		}
		r.ok("know", in.AddKnown(t.Context(), inbound, day, []string{"old", "older"}))
	}
	r.ok("durable", in.AwaitDurable(t.Context()))

	var ids []string
	for l, err := range in.Messages(t.Context()) {
		r.ok("read", err)
		ids = append(ids, fmt.Sprint(l.Message.Key, " ", l.Message.ID, " ", l.Attempts))
	}
	slices.Sort(ids)
	if want := "[later m5 0 long m1 0 long m3 0 long m4 0 tried m2 4 waits m6 0 waits m7 0]"; fmt.Sprint(ids) != want {
		t.Errorf("there are %v, want %v", ids, want)
	}
	r.publish("long", "old", "older") // a platform delivers again what it delivered before
	first := r.claim("long")
	if fence := first.Claim().Fence; fence < time.Now().Add(50*time.Second).UnixMicro() {
		t.Errorf("fence %d is below those of the other bus", fence)
	}
	r.finish(first, "m1", "m3", "m4")
	second := r.claim("tried")
	if n := second.Claim().Attempts; n != 5 {
		t.Errorf("it is claimed for the %dth time, want the 5th", n)
	}
	r.finish(second, "m2")
	r.finish(r.claim("waits"), "m6", "m7") // an urgent message ends the wait
	r.nothingDue(testLease)
	buried, err := r.DeadLetters(t.Context(), inbound, "", 10)
	r.ok("dead letters", err)
	if len(buried) != 2 || buried[0].Message.ID != "m8" || buried[1].Message.ID != "m9" ||
		buried[0].Reason != dead[0].Reason || buried[0].Attempts != 10 || !buried[0].BuriedAt.Equal(dead[0].BuriedAt) {
		t.Errorf("dead letters are %+v", buried)
	}
	page, err := r.DeadLetters(t.Context(), inbound, "m8", 10)
	r.ok("dead letters", err)
	if len(page) != 1 || page[0].Message.ID != "m9" {
		t.Errorf("behind the first there are %+v", page)
	}
	id, err := r.Replay(t.Context(), inbound, "m9")
	r.ok("replay", err)
	r.finish(r.claim("gone"), id)
}

func TestImportOfADelayedMailbox(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	in := r.importer("move")
	waits := message(1, "waits")
	waits.Due = time.Now().Add(time.Hour)
	r.ok("take", in.AddMessage(t.Context(), waits))
	r.nothingDue(testLease)
	d, err := r.Depth(t.Context(), inbound)
	r.ok("depth", err)
	if d.Delayed != 1 || d.Waiting != 1 {
		t.Errorf("depth is %+v", d)
	}
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	in := r.importer("move")
	r.ok("take", in.AddMessage(t.Context(), message(1, "k")))
	if _, err := redisbus.NewImporter(t.Context(), r.Bus, "another"); !errors.Is(err, redisbus.ErrOccupied) {
		t.Errorf("another import: %v, want ErrOccupied", err)
	}
	other := r.another(testLease, newNetwork())
	if _, err := redisbus.NewImporter(t.Context(), r.Bus, "move"); !errors.Is(err, redisbus.ErrServed) {
		t.Errorf("with another process: %v, want ErrServed", err)
	}
	r.ok("close", other.Close())
	r.await("the other to be gone", func() bool {
		_, err := redisbus.NewImporter(t.Context(), r.Bus, "move")
		return err == nil
	})

	used := newRig(t, testLease)
	used.publish("k", "m")
	used.finish(used.claim("k"), "m")
	if _, err := redisbus.NewImporter(t.Context(), used.Bus, "move"); !errors.Is(err, redisbus.ErrOccupied) {
		t.Errorf("where a bus was used: %v, want ErrOccupied", err)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	s := redistest.New(t, "--appendfsync", "no", "--maxmemory", "100mb")
	h, err := redisserver.Probe(t.Context(), s.URL(), "0")
	if err != nil || h.Fsync != "no" || h.AOFFails || h.Replica || h.UsedMemory == 0 || h.MaxMemory != 100<<20 || h.CheckFit() != nil || !h.AOF {
		t.Errorf("it says %+v, %v", h, err)
	}
	replica := redistest.New(t, "--replicaof", "127.0.0.1", "1")
	if h, err := redisserver.Probe(t.Context(), replica.URL(), "0"); err != nil || !h.Replica {
		t.Errorf("a replica says %+v, %v", h, err)
	}
}
