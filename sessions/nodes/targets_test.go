package nodes_test

import (
	"bytes"
	"testing"

	"parley/sessions/nodes"
)

func TestAdmit(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		offer, more := []byte(`{"tools":[]}`), []byte(`{"tools":[{"name":"exec_shell"}]}`)
		key, another := nodes.TargetKey(bytes.Repeat([]byte("k"), 32)), nodes.TargetKey(bytes.Repeat([]byte("l"), 32))
		requireNoError(t, one.Admit(t.Context(), "ssh-a", key, offer, []byte(`{}`), nowInMicros()))
		n := mustNode(t, other, "ssh-a")
		if n.State != nodes.Accepted || !n.IsTarget() || n.IsKeyless() || len(n.Key) == 32 || n.JoinedAt.IsZero() || n.Process != "" {
			t.Errorf("%+v", n)
		}
		joined := n.JoinedAt
		requireNoError(t, other.Admit(t.Context(), "ssh-a", key, more, []byte(`{"exec_shell":"x"}`), nowInMicros().Add(1e12)))
		if n = mustNode(t, one, "ssh-a"); string(n.Offer) != string(more) || string(n.Accepted) != `{"exec_shell":"x"}` || !n.JoinedAt.Equal(joined) {
			t.Errorf("%+v", n)
		}
		_, err := one.Link(t.Context(), "ssh-a", "p1", more, nowInMicros())
		requireNoError(t, err)
		if n = mustNode(t, one, "ssh-a"); n.Process != "p1" || n.State != nodes.Accepted {
			t.Errorf("%+v", n)
		}

		// Calls that another home was given stay its own.
		_, err = one.Give(t.Context(), nodes.Call{ID: "c", Node: "ssh-a", Tool: "exec_shell", Session: session, Args: []byte(`{}`), Timeout: 1e9, MadeAt: nowInMicros()})
		requireNoError(t, err)
		requireNoError(t, other.Admit(t.Context(), "ssh-a", another, more, []byte(`{}`), nowInMicros()))
		open, err := one.Open(t.Context(), "ssh-a")
		if n = mustNode(t, one, "ssh-a"); err != nil || !bytes.Equal(n.Key, another) || len(open) > 0 {
			t.Errorf("%+v has the calls %+v, %v", n, open, err)
		}
		_, err = one.Send(t.Context(), "c", "p1", nowInMicros())
		wantError(t, "send another home's call", err, nodes.ErrOther)
		requireNoError(t, other.Admit(t.Context(), "ssh-a", key, more, []byte(`{}`), nowInMicros()))
		if open, err = one.Open(t.Context(), "ssh-a"); err != nil || len(open) != 1 {
			t.Errorf("it has the calls %+v, %v", open, err)
		}

		// An owner can revoke a target, and the settings may name it again.
		requireNoError(t, one.Revoke(t.Context(), "ssh-a", nil, nowInMicros()))
		requireNoError(t, one.Admit(t.Context(), "ssh-a", key, offer, []byte(`{}`), nowInMicros()))
		if n = mustNode(t, one, "ssh-a"); n.State != nodes.Accepted {
			t.Errorf("%+v", n)
		}

		// A target's name does not affect other names.
		mustJoin(t, one, newDevice("pi", "key"))
		wantError(t, "the name of a device", one.Admit(t.Context(), "pi", key, offer, nil, nowInMicros()), nodes.ErrTaken)
		_, err = one.Discover(t.Context(), "edge", "", offer, nowInMicros())
		requireNoError(t, err)
		wantError(t, "the name of an edge agent", one.Admit(t.Context(), "edge", key, offer, nil, nowInMicros()), nodes.ErrTaken)
		_, err = one.Discover(t.Context(), "ssh-a", "p2", offer, nowInMicros())
		wantError(t, "an edge agent of that name", err, nodes.ErrTaken)
		requireNoError(t, one.Invite(t.Context(), "code", nowInMicros().Add(1e12)))
		wantError(t, "a device of that name", one.Join(t.Context(), "code", newDevice("ssh-a", "key")), nodes.ErrTaken)
	})
}
