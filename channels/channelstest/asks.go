package channelstest

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/bus"
)

// askExpiringIn returns an ask that expires after the duration lives.
func askExpiringIn(id string, lives time.Duration) bus.Ask {
	now := time.Now().Truncate(time.Microsecond).UTC()
	return bus.Ask{
		ID: id, Kind: bus.AskApproval, Session: "main:c:1", Turn: "t", Call: "k", Person: "c:ann", Tool: "sh",
		Arguments: []byte(`{"command":"x"}`), Reason: "a rule", Hash: "h1", At: bus.Address{Channel: "c", Chat: "1"},
		Asked: []bus.Address{{Channel: "d", Chat: "9"}}, Made: now, Expires: now.Add(lives),
	}
}

// approval returns the answer with which a person approves an ask; cause is the id of the message that says so.
func approval(by, cause string) bus.Answer {
	return bus.Answer{Text: bus.Approve, By: bus.Person{ID: by, Name: "N"}, Cause: cause}
}

func testAsks(t *testing.T, s suite) {
	b := s.open(t)
	ctx := t.Context()
	if _, err := b.LookupAsk(ctx, "none"); !errors.Is(err, bus.ErrNoAsk) {
		t.Errorf("an unknown ask gave %v", err)
	}
	if _, _, err := b.EndAsk(ctx, "none", bus.AskAnswered, approval("c:own", "m1")); !errors.Is(err, bus.ErrNoAsk) {
		t.Errorf("an unknown ask ended with %v", err)
	}
	for _, id := range []string{"a", "b", "old"} {
		lives := time.Hour
		if id == "old" {
			lives = -time.Second
		}
		requireNoError(t, b.OpenAsk(ctx, askExpiringIn(id, lives)))
	}
	requireNoError(t, b.OpenAsk(ctx, bus.Ask{ID: "a", Tool: "another"})) // a known ask stays as it is
	b = s.reopen(t, b)
	got, err := b.LookupAsk(ctx, "a")
	requireNoError(t, err)
	want := askExpiringIn("a", time.Hour)
	if got.Tool != want.Tool || got.Session != want.Session || got.State != bus.AskOpen || got.Asked[0] != want.Asked[0] || !got.Expires.After(time.Now()) {
		t.Errorf("read back %+v", got)
	}
	open, err := b.OpenAsks(ctx)
	requireNoError(t, err)
	if len(open) != 3 {
		t.Errorf("%d asks are open, want 3", len(open))
	}
	testAskEnds(t, b)
}

func testAskEnds(t *testing.T, b Book) {
	ctx := t.Context()
	if ask, ours, err := b.EndAsk(ctx, "a", bus.AskExpired, bus.Answer{}); err != nil || ours || ask.State != bus.AskOpen {
		t.Errorf("it expired too early: %v %v %v", ask.State, ours, err)
	}
	if ask, ours, err := b.EndAsk(ctx, "old", bus.AskAnswered, approval("c:own", "m0")); err != nil || ours || ask.State != bus.AskOpen {
		t.Errorf("it was answered too late: %v %v %v", ask.State, ours, err)
	}
	for range 2 { // the same message again counts as the same answer
		ask, ours, err := b.EndAsk(ctx, "a", bus.AskAnswered, approval("c:own", "m1"))
		if err != nil || !ours || ask.State != bus.AskAnswered || ask.Answer.By.ID != "c:own" || ask.Answer.By.Name != "N" || ask.Ended.IsZero() {
			t.Errorf("answered %+v, %v, %v", ask, ours, err)
		}
	}
	ask, ours, err := b.EndAsk(ctx, "a", bus.AskAnswered, bus.Answer{Text: bus.Deny, By: bus.Person{ID: "c:other"}, Cause: "m2"})
	if err != nil || ours || ask.Answer.By.ID != "c:own" || ask.Answer.Text != bus.Approve {
		t.Errorf("a second answer gave %+v, %v, %v", ask, ours, err)
	}
	if ask, ours, err := b.EndAsk(ctx, "b", bus.AskWithdrawn, bus.Answer{}); err != nil || !ours || ask.State != bus.AskWithdrawn {
		t.Errorf("withdrawn %+v, %v, %v", ask, ours, err)
	}
	if ask, ours, err := b.EndAsk(ctx, "old", bus.AskExpired, bus.Answer{}); err != nil || !ours || ask.State != bus.AskExpired {
		t.Errorf("expired %+v, %v, %v", ask, ours, err)
	}
	untold := func() (ids []string) {
		asks, err := b.UntoldAsks(ctx, time.Now().Add(time.Second))
		requireNoError(t, err)
		for _, a := range asks {
			ids = append(ids, a.ID)
		}
		return ids
	}
	if got := fmt.Sprint(untold()); got != "[a old]" { // whoever withdraws an ask knows
		t.Errorf("untold are %s", got)
	}
	requireNoError(t, b.NoteTold(ctx, "a"))
	requireNoError(t, b.NoteTold(ctx, "none"))
	if got := fmt.Sprint(untold()); got != "[old]" {
		t.Errorf("untold are %s", got)
	}
	if open, err := b.OpenAsks(ctx); err != nil || len(open) != 0 {
		t.Errorf("open are %+v, %v", open, err)
	}
}

func testAskRace(t *testing.T, s suite) {
	books := []Book{s.open(t), s.open(t)}
	for round := range 10 {
		id := fmt.Sprint("r", round)
		requireNoError(t, books[0].OpenAsk(t.Context(), askExpiringIn(id, time.Hour)))
		var won atomic.Int32
		var racing sync.WaitGroup
		for i := range 6 {
			racing.Go(func() {
				_, ours, err := books[i%2].EndAsk(t.Context(), id, bus.AskAnswered, approval(fmt.Sprint("c:", i), fmt.Sprint("m", i)))
				if err != nil {
					t.Error(err)
				}
				if ours {
					won.Add(1)
				}
			})
		}
		racing.Wait()
		if n := won.Load(); n != 1 {
			t.Fatalf("%d have decided %s", n, id)
		}
	}
}

func testGrants(t *testing.T, s suite) {
	b := s.open(t)
	ctx := t.Context()
	granted := func(session, hash string, since time.Time) bool {
		by, ok, err := b.Granted(ctx, session, hash, since)
		requireNoError(t, err)
		if ok != (by == "c:own") {
			t.Errorf("approved: %t, by %q", ok, by)
		}
		return ok
	}
	requireNoError(t, b.OpenAsk(ctx, askExpiringIn("once", time.Hour)))
	requireNoError(t, b.OpenAsk(ctx, askExpiringIn("often", time.Hour)))
	_, _, err := b.EndAsk(ctx, "once", bus.AskAnswered, approval("c:own", "m1"))
	requireNoError(t, err)
	long := time.Now().Add(-time.Hour)
	if granted("main:c:1", "h1", long) {
		t.Error("what was approved once is approved for the session")
	}
	answer := approval("c:own", "m2")
	answer.Text = bus.ApproveSession
	_, _, err = b.EndAsk(ctx, "often", bus.AskAnswered, answer)
	requireNoError(t, err)
	if !granted("main:c:1", "h1", long) || granted("main:c:1", "h2", long) || granted("main:c:2", "h1", long) || granted("main:c:1", "h1", time.Now().Add(time.Second)) {
		t.Error("something else than this call in this session, lately, is approved, or this is not")
	}
	requireNoError(t, b.EndGrants(ctx, "main:c:1"))
	if granted("main:c:1", "h1", long) {
		t.Error("it is approved after the end")
	}
	requireNoError(t, b.OpenAsk(ctx, askExpiringIn("after", time.Hour)))
	once := askExpiringIn("alone", time.Hour)
	once.Once = true
	requireNoError(t, b.EndGrants(ctx, "main:c:1"))
	requireNoError(t, b.OpenAsk(ctx, once))
	for _, id := range []string{"after", "alone"} {
		if ask, ours, err := b.EndAsk(ctx, id, bus.AskAnswered, answer); err != nil || !ours || ask.Answer.Text != bus.ApproveSession {
			t.Errorf("the answer to %s: %+v, %t, %v", id, ask, ours, err)
		}
		if granted("main:c:1", "h1", long) {
			t.Errorf("%s is approved for what came after the end", id)
		}
	}
	requireNoError(t, b.OpenAsk(ctx, askExpiringIn("anew", time.Hour)))
	_, _, err = b.EndAsk(ctx, "anew", bus.AskAnswered, answer)
	requireNoError(t, err)
	if !granted("main:c:1", "h1", long) {
		t.Error("what was asked after the end is not approved")
	}
}

func testProcesses(t *testing.T, s suite) {
	b := s.open(t)
	ctx := t.Context()
	understand := func(least int, names ...string) bool {
		ok, err := b.AllUnderstand(ctx, names, least)
		requireNoError(t, err)
		return ok
	}
	requireNoError(t, b.NoteProcess(ctx, "a", 2))
	requireNoError(t, b.NoteProcess(ctx, "b", 1))
	requireNoError(t, b.NoteProcess(ctx, "b", 1))
	if !understand(1, "a", "b") || understand(2, "a", "b") || !understand(2, "a") || understand(1, "a", "silent") {
		t.Error("the wrong ones understand")
	}
	described := func(want map[string]string, names ...string) {
		t.Helper()
		got, err := b.Descriptions(ctx, names)
		requireNoError(t, err)
		if !maps.Equal(got, want) {
			t.Errorf("described are %q, want %q", got, want)
		}
	}
	requireNoError(t, b.DescribeProcess(ctx, "a", "gateway\x00"))
	requireNoError(t, b.DescribeProcess(ctx, "silent", "nothing is known of it"))
	described(map[string]string{"a": "gateway\x00"}, "a", "b", "silent")
	described(map[string]string{}, "b")
	described(map[string]string{})
	many := []string{"a"}
	for i := range 600 {
		many = append(many, fmt.Sprint("process", i))
	}
	described(map[string]string{"a": "gateway\x00"}, many...)
	requireNoError(t, b.DescribeProcess(ctx, "a", "worker"))
	described(map[string]string{"a": "worker"}, "a")
	if !understand(2, "a") {
		t.Error("a process that was described understands no longer")
	}
	requireNoError(t, b.NoteProcess(ctx, "b", 3))
	described(map[string]string{"a": "worker"}, "a", "b")
	requireNoError(t, b.NoteProcess(ctx, "a", 0))
	described(map[string]string{}, "a")
	if understand(1, "a") {
		t.Error("a process that has ended understands")
	}
}
