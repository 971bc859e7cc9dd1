package nodes_test

import (
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/nodes"
)

// due returns the ids of the waits that are over at a time, and when the next one is.
func due(t *testing.T, table *nodes.Table, at time.Time) (ids string, next time.Time) {
	t.Helper()
	all, next, err := table.DueWaits(t.Context(), at, at.Add(-time.Minute), 10)
	must(t, err)
	for _, w := range all {
		ids += w.ID
	}
	return ids, next
}

func TestAWaitIsOver(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		join(t, one, device("pi", "key"))
		join(t, one, device("lab", "other"))
		at := now()
		for id, node := range map[string]string{"a": "pi", "b": "lab", "c": "gone"} {
			w := sessions.NodeWait{ID: id, Node: node, Session: session, Person: "telegram:\x002", Until: at.Add(time.Hour)}
			if id == "c" {
				w.Until = at.Add(2 * time.Hour)
			}
			must(t, one.OpenWait(t.Context(), w))
			must(t, other.OpenWait(t.Context(), w))
		}
		wants(t, "wait in no session", one.OpenWait(t.Context(), sessions.NodeWait{ID: "d", Node: "pi", Session: "main:telegram:0"}), sessions.ErrNotFound)
		if got, next := due(t, other, at); got != "" || !next.Equal(at.Add(time.Hour)) {
			t.Errorf("over are %q, and the next at %s", got, next)
		}
		offer := device("pi", "key").Offer
		_, err := one.Link(t.Context(), "pi", "p1", offer, at)
		must(t, err)
		all, _, err := other.DueWaits(t.Context(), at, at.Add(-time.Minute), 10)
		if err != nil || len(all) != 1 || all[0].ID != "a" || all[0].Node != "pi" || all[0].Session != session || all[0].Person != "telegram:\x002" || !all[0].Until.Equal(at.Add(time.Hour)) {
			t.Errorf("with the link, over are %+v, %v", all, err)
		}
		if got, _ := due(t, other, at.Add(2*nodes.LinkAge)); got != "" {
			t.Errorf("with the link of a dead process, over are %q", got)
		}
		must(t, one.NoteWoken(t.Context(), "a", at))
		if got, _ := due(t, other, at.Add(59*time.Second)); got != "" {
			t.Errorf("once it was told, over are %q", got)
		}
		must(t, one.Hold(t.Context(), "p1", at.Add(time.Minute)))
		if got, _ := due(t, other, at.Add(61*time.Second)); got != "a" {
			t.Errorf("a minute after it was told, over are %q", got)
		}
		must(t, one.Unlink(t.Context(), "pi", "p1", at))
		must(t, one.Revoke(t.Context(), "lab", []byte(`{}`), at))
		if got, _ := due(t, other, at); got != "b" {
			t.Errorf("once one is revoked, over are %q", got)
		}
		if got, next := due(t, other, at.Add(time.Hour)); got != "ab" && got != "ba" || !next.Equal(at.Add(2*time.Hour)) {
			t.Errorf("after an hour, over are %q, and the next at %s", got, next)
		}
		for _, id := range []string{"a", "b", "b"} {
			must(t, other.CloseWait(t.Context(), id))
		}
		if got, next := due(t, one, at.Add(3*time.Hour)); got != "c" || !next.IsZero() {
			t.Errorf("in the end, over are %q, and the next at %s", got, next)
		}
	})
}

// A turn that waits for the first of several nodes has one wait, whichever of them is back.
func TestAWaitForTheFirstOfSeveral(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		at := now()
		for _, name := range []string{"pi", "lab"} {
			join(t, one, device(name, "key of "+name))
		}
		for id, all := range map[string][]string{"a": {"pi", "lab", "gone"}, "a2": {"gone"}} {
			must(t, one.OpenWait(t.Context(), sessions.NodeWait{ID: id, Node: all[0], AnyOfNodes: all, Session: session, Until: at.Add(time.Hour)}))
		}
		for _, name := range []string{"lab", "pi"} {
			_, err := one.Link(t.Context(), name, "p1", device(name, "key of "+name).Offer, at)
			must(t, err)
		}
		if got, _ := due(t, other, at); got != "aa" {
			t.Errorf("over are %q", got)
		}
		must(t, other.NoteWoken(t.Context(), "a", at))
		if got, _ := due(t, other, at); got != "" {
			t.Errorf("once it was told, over are %q", got)
		}
		must(t, other.CloseWait(t.Context(), "a"))
		if got, _ := due(t, one, at.Add(2*time.Hour)); got != "a2" {
			t.Errorf("in the end, over are %q", got)
		}
	})
}

// A call that was not sent can be taken back, and given again.
func TestACallIsWithdrawn(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		link(t, one, "pi", "key", "p1")
		give(t, one, "a", "pi")
		for _, want := range []bool{true, false} {
			if got, err := other.Withdraw(t.Context(), "a"); err != nil || got != want {
				t.Errorf("withdrawn: %v, %v, want %v", got, err, want)
			}
		}
		give(t, one, "a", "pi")
		_, err := other.Send(t.Context(), "a", "p1", now())
		must(t, err)
		if got, err := one.Withdraw(t.Context(), "a"); err != nil || got {
			t.Errorf("one that was sent is withdrawn: %v, %v", got, err)
		}
		call(t, one, "a")
	})
}

// Either a call is sent or it is withdrawn.
func TestSendWhileItIsWithdrawn(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		link(t, one, "pi", "key", "p1")
		for range 15 {
			give(t, one, "a", "pi")
			var sent error
			var withdrawn bool
			both(func() { _, sent = one.Send(t.Context(), "a", "p1", now()) }, func() {
				var err error
				withdrawn, err = other.Withdraw(t.Context(), "a")
				must(t, err)
			})
			if withdrawn != (sent != nil) {
				t.Errorf("withdrawn: %v; sent: %v", withdrawn, sent)
			}
			if !withdrawn {
				_, err := one.End(t.Context(), "a", []byte(`{}`), now())
				must(t, err)
				break
			}
		}
	})
}
