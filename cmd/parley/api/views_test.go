package api_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/bus"
	"parley/sessions"
)

// A counted reader counts the entries that it reads.
type counted struct {
	sessions.Reader
	entries atomic.Int64
}

func (c *counted) Read(ctx context.Context, key string, from int64) iter.Seq2[sessions.Entry, error] {
	return func(yield func(sessions.Entry, error) bool) {
		for e, err := range c.Reader.Read(ctx, key, from) {
			c.entries.Add(1)
			if !yield(e, err) {
				return
			}
		}
	}
}

// writeLong writes a session with that many turns of four entries each.
func (x *rig) writeLong(key string, turns int) {
	x.t.Helper()
	var all []sessions.Entry
	for n := range turns {
		turn := fmt.Sprint("t", n)
		all = append(all, begun(x.t, turn)...)
		all = append(all, entry(x.t, turn, sessions.KindText, sessions.Text{Text: strings.Repeat("x", 100)}),
			entry(x.t, turn, sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCompleted}))
	}
	x.write(key, all...)
}

// Opening a long session reads only the end of its log, and reads it once for all watchers who come before something
// new happens. Later watchers see what happened in between.
func TestSnapshotsCostTheEndOfTheLog(t *testing.T) {
	var reads *counted
	x := newRig(t, func(x *rig) {
		reads = &counted{Reader: x.store}
		x.cfg.Sessions = reads
	})
	x.writeLong(watched, 1000)
	var coming sync.WaitGroup
	for range 50 {
		coming.Go(func() {
			f := x.watch(watched, chatToken, "")
			defer f.close()
			if e := f.must(); strings.Count(e.data, `"state":"done"`) != 32 || !strings.Contains(e.data, `"turn":"t999"`) {
				t.Errorf("%d bytes of %s", len(e.data), e.kind)
			}
		})
	}
	coming.Wait()
	if n := reads.entries.Load(); n > 1000 {
		t.Errorf("50 watchers read %d entries", n)
	}
	x.write(watched, begun(t, "newest")...)
	f := x.watch(watched, chatToken, "")
	defer f.close()
	if e := f.must(); !strings.Contains(e.data, `"turn":"newest"`) {
		t.Error("what has happened since is not in the snapshot")
	}
}

// A snapshot contains the whole running turn, however long it is.
func TestASnapshotHasAllOfALongTurn(t *testing.T) {
	x := newRig(t)
	x.writeLong(watched, 40)
	all := begun(t, "long")
	for n := range 700 {
		all = append(all, entry(t, "long", sessions.KindText, sessions.Text{Text: strings.Repeat(fmt.Sprint(n%10), 4000)}))
	}
	x.write(watched, all...)
	f := x.watch(watched, chatToken, "")
	defer f.close()
	s := newClient()
	s.take(t, f.must())
	if len(s.blocks["long"]) != 701 { // and what the person said
		t.Errorf("%d of 700 blocks", len(s.blocks["long"]))
	}
}

func TestASnapshotSaysThatATurnWaits(t *testing.T) {
	x := newRig(t)
	x.write(watched, append(begun(t, "asking"), entry(t, "asking", sessions.KindTurnParked, sessions.TurnParked{}))...)
	f := x.watch(watched, chatToken, "")
	defer f.close()
	if e := f.must(); !strings.Contains(e.data, `"state":"parked"`) {
		t.Errorf("while it waits: %s", e.data)
	}
	x.write(watched, entry(t, "asking", sessions.KindTurnUnparked, nil))
	g := x.watch(watched, chatToken, "")
	defer g.close()
	if e := g.must(); !strings.Contains(e.data, `"state":"running"`) {
		t.Errorf("once it goes on: %s", e.data)
	}
}

func TestASnapshotSaysForWhichNodeATurnWaits(t *testing.T) {
	x := newRig(t)
	at := time.Date(2026, 11, 30, 21, 4, 0, 0, time.UTC)
	wait := sessions.Ask{ID: "node:a", Call: "k1", Kind: sessions.AskNode, Node: "pi", Since: at, Expires: at.Add(time.Hour)}
	x.write(watched, append(begun(t, "asking"), entry(t, "asking", sessions.KindTurnParked, sessions.TurnParked{Asks: []sessions.Ask{wait}}))...)
	f := x.watch(watched, chatToken, "")
	defer f.close()
	if e := f.must(); !strings.Contains(e.data, `"state":"parked","waits":[{"call":"k1","node":"pi","since":"2026-11-30T21:04:00Z","until":"2026-11-30T22:04:00Z"}]`) {
		t.Errorf("while it waits: %s", e.data)
	}
	x.write(watched, entry(t, "asking", sessions.KindAskEnded, sessions.AskEnded{Ask: "node:a", State: bus.AskAnswered}), entry(t, "asking", sessions.KindTurnUnparked, nil))
	g := x.watch(watched, chatToken, "")
	defer g.close()
	if e := g.must(); strings.Contains(e.data, `"waits"`) || strings.Contains(e.data, "node:a") {
		t.Errorf("once it goes on: %s", e.data)
	}
}

// BenchmarkJoin opens streams of a session that has 12,000 entries and no running turn.
func BenchmarkJoin(b *testing.B) {
	x := newRig(b)
	x.writeLong(watched, 3000)
	b.ReportAllocs()
	for b.Loop() {
		f := x.watch(watched, chatToken, "")
		f.must()
		f.close()
	}
}
