package nodes_test

import (
	"fmt"
	"testing"

	"parley/sessions/nodes"
)

func TestDiscover(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		offer, more := []byte(`{"tools":[]}`), []byte(`{"tools":[{"name":"bash"}]}`)
		discover := func(table *nodes.Table, name, process string, offer []byte) (nodes.Node, error) {
			return table.Discover(t.Context(), name, process, offer, now())
		}
		n, err := discover(one, "edge", "", offer)
		must(t, err)
		if !n.IsKeyless() || n.State != nodes.Waiting || n.Process != "" || !n.Since.IsZero() || n.Joined.IsZero() {
			t.Errorf("%+v", n)
		}
		n, err = discover(one, "edge", "p1", more)
		must(t, err)
		if n.Process != "p1" || n.Since.IsZero() || string(n.Offer) != string(more) || n.State != nodes.Waiting {
			t.Errorf("%+v", n)
		}
		must(t, other.Accept(t.Context(), "edge", more, []byte(`{"bash":"x"}`)))
		n, err = discover(other, "edge", "p2", more)
		must(t, err)
		if n.Process != "p2" || n.State != nodes.Accepted || string(n.Accepted) != `{"bash":"x"}` {
			t.Errorf("%+v", n)
		}
		if n, err = discover(one, "edge", "", offer); err != nil || n.Process != "p2" {
			t.Errorf("a kept message has changed who has it: %+v (%v)", n, err)
		}

		// Names are apart.
		join(t, one, device("device", "key"))
		_, err = discover(one, "device", "p1", more)
		wants(t, "the name of a device", err, nodes.ErrTaken)
		must(t, one.Invite(t.Context(), "code", now().Add(1e12)))
		wants(t, "the name of an edge agent", one.Join(t.Context(), "code", device("edge", "key")), nodes.ErrTaken)
		must(t, one.Revoke(t.Context(), "device", nil, now()))
		_, err = discover(one, "device", "p1", more)
		wants(t, "the name of a revoked device", err, nodes.ErrTaken)
		wants(t, "accept a revoked device", one.Accept(t.Context(), "device", offer, nil), nodes.ErrRevoked)
		if got := look(t, one, "device"); got.State != nodes.Revoked || got.IsKeyless() {
			t.Errorf("%+v", got)
		}

		// Who is revoked stays so, until an owner accepts it again.
		must(t, one.Revoke(t.Context(), "edge", nil, now()))
		_, err = discover(other, "edge", "p1", more)
		wants(t, "revoked", err, nodes.ErrRevoked)
		must(t, one.Accept(t.Context(), "edge", offer, []byte(`{}`)))
		if n, err = discover(other, "edge", "p1", more); err != nil || n.State != nodes.Accepted {
			t.Errorf("%+v (%v)", n, err)
		}
		must(t, one.Revoke(t.Context(), "edge", nil, now()))
		join(t, one, device("edge", "another key")) // an owner has freed the name
		_, err = discover(other, "edge", "p1", more)
		wants(t, "a device has joined since", err, nodes.ErrTaken)
	})
}

func TestDiscoverIsBounded(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		add := func(name string) error {
			_, err := one.Discover(t.Context(), name, "p1", []byte(`{}`), now())
			return err
		}
		for i := range nodes.MaxDiscovered {
			must(t, add(fmt.Sprint("edge-", i)))
		}
		wants(t, "one too many", add("more"), nodes.ErrFull)
		must(t, add("edge-0"))
		must(t, one.Accept(t.Context(), "edge-0", []byte(`{}`), []byte(`{}`)))
		must(t, add("more"))
	})
}

// The calls of a device with a key are never those of an edge agent that has its name later or had it before.
func TestOpenWithoutKey(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		give := func(id string) {
			t.Helper()
			_, err := one.Give(t.Context(), nodes.Call{ID: id, Node: "pi", Tool: "bash", Session: session, Person: "telegram:2", Made: now()})
			must(t, err)
		}
		ids := func() (ids []string) {
			t.Helper()
			open, err := other.OpenWithoutKey(t.Context(), "pi")
			must(t, err)
			for _, c := range open {
				ids = append(ids, c.ID)
			}
			return ids
		}
		_, err := one.Discover(t.Context(), "pi", "p1", []byte(`{}`), now())
		must(t, err)
		give("b")
		give("a")
		if got := ids(); fmt.Sprint(got) != "[b a]" {
			t.Errorf("open are %s", got)
		}
		_, err = one.Send(t.Context(), "b", "p1", now())
		must(t, err)
		must(t, one.Revoke(t.Context(), "pi", []byte(`{"status":"not_run"}`), now()))
		if got := ids(); fmt.Sprint(got) != "[b]" {
			t.Errorf("open are %s", got)
		}
		join(t, one, device("pi", "key"))
		give("c")
		if got := ids(); fmt.Sprint(got) != "[b]" {
			t.Errorf("open are %s", got)
		}
		if open, err := one.Open(t.Context(), "pi"); err != nil || len(open) != 1 || open[0].ID != "c" {
			t.Errorf("the device has %+v (%v)", open, err)
		}
	})
}
