package nodes_test

import (
	"fmt"
	"testing"

	"parley/sessions/nodes"
)

func TestDiscover(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		offer, more := []byte(`{"tools":[]}`), []byte(`{"tools":[{"name":"bash"}]}`)
		discover := func(table *nodes.Table, name, process string, offer []byte) (nodes.Node, error) {
			return table.Discover(t.Context(), name, process, offer, nowInMicros())
		}
		n, err := discover(one, "edge", "", offer)
		requireNoError(t, err)
		if !n.IsKeyless() || n.State != nodes.Waiting || n.Process != "" || !n.LinkChanged.IsZero() || n.JoinedAt.IsZero() {
			t.Errorf("%+v", n)
		}
		n, err = discover(one, "edge", "p1", more)
		requireNoError(t, err)
		if n.Process != "p1" || n.LinkChanged.IsZero() || string(n.Offer) != string(more) || n.State != nodes.Waiting {
			t.Errorf("%+v", n)
		}
		requireNoError(t, other.Accept(t.Context(), "edge", more, []byte(`{"bash":"x"}`)))
		n, err = discover(other, "edge", "p2", more)
		requireNoError(t, err)
		if n.Process != "p2" || n.State != nodes.Accepted || string(n.Accepted) != `{"bash":"x"}` {
			t.Errorf("%+v", n)
		}
		if n, err = discover(one, "edge", "", offer); err != nil || n.Process != "p2" {
			t.Errorf("a kept message has changed who has it: %+v (%v)", n, err)
		}

		// A discovered name does not affect other names.
		mustJoin(t, one, newDevice("device", "key"))
		_, err = discover(one, "device", "p1", more)
		wantError(t, "the name of a device", err, nodes.ErrTaken)
		requireNoError(t, one.Invite(t.Context(), "code", nowInMicros().Add(1e12)))
		wantError(t, "the name of an edge agent", one.Join(t.Context(), "code", newDevice("edge", "key")), nodes.ErrTaken)
		requireNoError(t, one.Revoke(t.Context(), "device", nil, nowInMicros()))
		_, err = discover(one, "device", "p1", more)
		wantError(t, "the name of a revoked device", err, nodes.ErrTaken)
		wantError(t, "accept a revoked device", one.Accept(t.Context(), "device", offer, nil), nodes.ErrRevoked)
		if got := mustNode(t, one, "device"); got.State != nodes.Revoked || got.IsKeyless() {
			t.Errorf("%+v", got)
		}

		// A revoked device stays revoked until an owner accepts it again.
		requireNoError(t, one.Revoke(t.Context(), "edge", nil, nowInMicros()))
		_, err = discover(other, "edge", "p1", more)
		wantError(t, "revoked", err, nodes.ErrRevoked)
		requireNoError(t, one.Accept(t.Context(), "edge", offer, []byte(`{}`)))
		if n, err = discover(other, "edge", "p1", more); err != nil || n.State != nodes.Accepted {
			t.Errorf("%+v (%v)", n, err)
		}
		requireNoError(t, one.Revoke(t.Context(), "edge", nil, nowInMicros()))
		mustJoin(t, one, newDevice("edge", "another key")) // an owner has made the name available
		_, err = discover(other, "edge", "p1", more)
		wantError(t, "a device has joined since", err, nodes.ErrTaken)
	})
}

func TestDiscoverIsLimited(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		add := func(name string) error {
			_, err := one.Discover(t.Context(), name, "p1", []byte(`{}`), nowInMicros())
			return err
		}
		for i := range nodes.MaxDiscovered {
			requireNoError(t, add(fmt.Sprint("edge-", i)))
		}
		wantError(t, "one too many", add("more"), nodes.ErrFull)
		requireNoError(t, add("edge-0"))
		requireNoError(t, one.Accept(t.Context(), "edge-0", []byte(`{}`), []byte(`{}`)))
		requireNoError(t, add("more"))
	})
}

// The calls of a device with a key are never those of an edge agent that has the same name before or after it.
func TestOpenWithoutKey(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		give := func(id string) {
			t.Helper()
			_, err := one.Give(t.Context(), nodes.Call{ID: id, Node: "pi", Tool: "bash", Session: session, Person: "telegram:2", MadeAt: nowInMicros()})
			requireNoError(t, err)
		}
		ids := func() (ids []string) {
			t.Helper()
			open, err := other.OpenWithoutKey(t.Context(), "pi")
			requireNoError(t, err)
			for _, c := range open {
				ids = append(ids, c.ID)
			}
			return ids
		}
		_, err := one.Discover(t.Context(), "pi", "p1", []byte(`{}`), nowInMicros())
		requireNoError(t, err)
		give("b")
		give("a")
		if got := ids(); fmt.Sprint(got) != "[b a]" {
			t.Errorf("open are %s", got)
		}
		_, err = one.Send(t.Context(), "b", "p1", nowInMicros())
		requireNoError(t, err)
		requireNoError(t, one.Revoke(t.Context(), "pi", []byte(`{"status":"not_run"}`), nowInMicros()))
		if got := ids(); fmt.Sprint(got) != "[b]" {
			t.Errorf("open are %s", got)
		}
		mustJoin(t, one, newDevice("pi", "key"))
		give("c")
		if got := ids(); fmt.Sprint(got) != "[b]" {
			t.Errorf("open are %s", got)
		}
		if open, err := one.Open(t.Context(), "pi"); err != nil || len(open) != 1 || open[0].ID != "c" {
			t.Errorf("the device has %+v (%v)", open, err)
		}
	})
}
