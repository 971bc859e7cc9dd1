package nodes_test

import (
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/nodes"
)

// dueWaits returns the ids of the waits that are over at a given time, and when the next one ends.
func dueWaits(t *testing.T, table *nodes.Table, at time.Time) (ids string, next time.Time) {
	t.Helper()
	all, next, err := table.DueWaits(t.Context(), at, at.Add(-time.Minute), 10)
	requireNoError(t, err)
	for _, w := range all {
		ids += w.ID
	}
	return ids, next
}

func TestDueWaits(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		mustJoin(t, one, newDevice("pi", "key"))
		mustJoin(t, one, newDevice("lab", "other"))
		at := nowInMicros()
		for id, node := range map[string]string{"a": "pi", "b": "lab", "c": "gone"} {
			w := sessions.NodeWait{ID: id, Node: node, Session: session, Person: "telegram:\x002", Until: at.Add(time.Hour)}
			if id == "c" {
				w.Until = at.Add(2 * time.Hour)
			}
			requireNoError(t, one.OpenWait(t.Context(), w))
			requireNoError(t, other.OpenWait(t.Context(), w))
		}
		wantError(t, "wait in no session", one.OpenWait(t.Context(), sessions.NodeWait{ID: "d", Node: "pi", Session: "main:telegram:0"}), sessions.ErrNotFound)
		if got, next := dueWaits(t, other, at); got != "" || !next.Equal(at.Add(time.Hour)) {
			t.Errorf("over are %q, and the next at %s", got, next)
		}
		offer := newDevice("pi", "key").Offer
		_, err := one.Link(t.Context(), "pi", "p1", offer, at)
		requireNoError(t, err)
		all, _, err := other.DueWaits(t.Context(), at, at.Add(-time.Minute), 10)
		if err != nil || len(all) != 1 || all[0].ID != "a" || all[0].Node != "pi" || all[0].Session != session || all[0].Person != "telegram:\x002" || !all[0].Until.Equal(at.Add(time.Hour)) {
			t.Errorf("with the link, over are %+v, %v", all, err)
		}
		if got, _ := dueWaits(t, other, at.Add(2*nodes.LinkLifetime)); got != "" {
			t.Errorf("with the link of a dead process, over are %q", got)
		}
		requireNoError(t, one.NoteWoken(t.Context(), "a", at))
		if got, _ := dueWaits(t, other, at.Add(59*time.Second)); got != "" {
			t.Errorf("once it was told, over are %q", got)
		}
		requireNoError(t, one.Hold(t.Context(), "p1", at.Add(time.Minute)))
		if got, _ := dueWaits(t, other, at.Add(61*time.Second)); got != "a" {
			t.Errorf("a minute after it was told, over are %q", got)
		}
		requireNoError(t, one.Unlink(t.Context(), "pi", "p1", at))
		requireNoError(t, one.Revoke(t.Context(), "lab", []byte(`{}`), at))
		if got, _ := dueWaits(t, other, at); got != "b" {
			t.Errorf("once one is revoked, over are %q", got)
		}
		if got, next := dueWaits(t, other, at.Add(time.Hour)); got != "ab" && got != "ba" || !next.Equal(at.Add(2*time.Hour)) {
			t.Errorf("after an hour, over are %q, and the next at %s", got, next)
		}
		for _, id := range []string{"a", "b", "b"} {
			requireNoError(t, other.CloseWait(t.Context(), id))
		}
		if got, next := dueWaits(t, one, at.Add(3*time.Hour)); got != "c" || !next.IsZero() {
			t.Errorf("in the end, over are %q, and the next at %s", got, next)
		}
	})
}

// A turn that waits for the first of several nodes has only one wait, whichever node comes back.
func TestAWaitForTheFirstOfSeveral(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		at := nowInMicros()
		for _, name := range []string{"pi", "lab"} {
			mustJoin(t, one, newDevice(name, "key of "+name))
		}
		for id, all := range map[string][]string{"a": {"pi", "lab", "gone"}, "a2": {"gone"}} {
			requireNoError(t, one.OpenWait(t.Context(), sessions.NodeWait{ID: id, Node: all[0], AnyOfNodes: all, Session: session, Until: at.Add(time.Hour)}))
		}
		for _, name := range []string{"lab", "pi"} {
			_, err := one.Link(t.Context(), name, "p1", newDevice(name, "key of "+name).Offer, at)
			requireNoError(t, err)
		}
		if got, _ := dueWaits(t, other, at); got != "aa" {
			t.Errorf("over are %q", got)
		}
		requireNoError(t, other.NoteWoken(t.Context(), "a", at))
		if got, _ := dueWaits(t, other, at); got != "" {
			t.Errorf("once it was told, over are %q", got)
		}
		requireNoError(t, other.CloseWait(t.Context(), "a"))
		if got, _ := dueWaits(t, one, at.Add(2*time.Hour)); got != "a2" {
			t.Errorf("in the end, over are %q", got)
		}
	})
}

// A call that was not sent can be withdrawn, and given again.
func TestACallIsWithdrawn(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		mustLink(t, one, "pi", "key", "p1")
		mustGive(t, one, "a", "pi")
		for _, want := range []bool{true, false} {
			if got, err := other.Withdraw(t.Context(), "a"); err != nil || got != want {
				t.Errorf("withdrawn: %v, %v, want %v", got, err, want)
			}
		}
		mustGive(t, one, "a", "pi")
		_, err := other.Send(t.Context(), "a", "p1", nowInMicros())
		requireNoError(t, err)
		if got, err := one.Withdraw(t.Context(), "a"); err != nil || got {
			t.Errorf("one that was sent is withdrawn: %v, %v", got, err)
		}
		mustCall(t, one, "a")
	})
}

// A call is either sent or withdrawn, and never both.
func TestSendWhileItIsWithdrawn(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		mustLink(t, one, "pi", "key", "p1")
		for range 15 {
			mustGive(t, one, "a", "pi")
			var sent error
			var withdrawn bool
			runBoth(func() { _, sent = one.Send(t.Context(), "a", "p1", nowInMicros()) }, func() {
				var err error
				withdrawn, err = other.Withdraw(t.Context(), "a")
				requireNoError(t, err)
			})
			if withdrawn != (sent != nil) {
				t.Errorf("withdrawn: %v; sent: %v", withdrawn, sent)
			}
			if !withdrawn {
				_, err := one.End(t.Context(), "a", []byte(`{}`), nowInMicros())
				requireNoError(t, err)
				break
			}
		}
	})
}
