package nodes_test

import (
	"bytes"
	"testing"

	"parley/sessions/nodes"
)

func TestAdmit(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		offer, more := []byte(`{"tools":[]}`), []byte(`{"tools":[{"name":"exec_shell"}]}`)
		key, another := nodes.TargetKey(bytes.Repeat([]byte("k"), 32)), nodes.TargetKey(bytes.Repeat([]byte("l"), 32))
		must(t, one.Admit(t.Context(), "ssh-a", key, offer, []byte(`{}`), now()))
		n := look(t, other, "ssh-a")
		if n.State != nodes.Accepted || !n.IsTarget() || n.IsKeyless() || len(n.Key) == 32 || n.Joined.IsZero() || n.Process != "" {
			t.Errorf("%+v", n)
		}
		joined := n.Joined
		must(t, other.Admit(t.Context(), "ssh-a", key, more, []byte(`{"exec_shell":"x"}`), now().Add(1e12)))
		if n = look(t, one, "ssh-a"); string(n.Offer) != string(more) || string(n.Accepted) != `{"exec_shell":"x"}` || !n.Joined.Equal(joined) {
			t.Errorf("%+v", n)
		}
		_, err := one.Link(t.Context(), "ssh-a", "p1", more, now())
		must(t, err)
		if n = look(t, one, "ssh-a"); n.Process != "p1" || n.State != nodes.Accepted {
			t.Errorf("%+v", n)
		}

		// What another home was given stays its own.
		_, err = one.Give(t.Context(), nodes.Call{ID: "c", Node: "ssh-a", Tool: "exec_shell", Session: session, Args: []byte(`{}`), Timeout: 1e9, Made: now()})
		must(t, err)
		must(t, other.Admit(t.Context(), "ssh-a", another, more, []byte(`{}`), now()))
		open, err := one.Open(t.Context(), "ssh-a")
		if n = look(t, one, "ssh-a"); err != nil || !bytes.Equal(n.Key, another) || len(open) > 0 {
			t.Errorf("%+v has the calls %+v, %v", n, open, err)
		}
		_, err = one.Send(t.Context(), "c", "p1", now())
		wants(t, "send another home's call", err, nodes.ErrOther)
		must(t, other.Admit(t.Context(), "ssh-a", key, more, []byte(`{}`), now()))
		if open, err = one.Open(t.Context(), "ssh-a"); err != nil || len(open) != 1 {
			t.Errorf("it has the calls %+v, %v", open, err)
		}

		// An owner can take it out of the list; the settings may name it again.
		must(t, one.Revoke(t.Context(), "ssh-a", nil, now()))
		must(t, one.Admit(t.Context(), "ssh-a", key, offer, []byte(`{}`), now()))
		if n = look(t, one, "ssh-a"); n.State != nodes.Accepted {
			t.Errorf("%+v", n)
		}

		// Names are apart.
		join(t, one, device("pi", "key"))
		wants(t, "the name of a device", one.Admit(t.Context(), "pi", key, offer, nil, now()), nodes.ErrTaken)
		_, err = one.Discover(t.Context(), "edge", "", offer, now())
		must(t, err)
		wants(t, "the name of an edge agent", one.Admit(t.Context(), "edge", key, offer, nil, now()), nodes.ErrTaken)
		_, err = one.Discover(t.Context(), "ssh-a", "p2", offer, now())
		wants(t, "an edge agent of that name", err, nodes.ErrTaken)
		must(t, one.Invite(t.Context(), "code", now().Add(1e12)))
		wants(t, "a device of that name", one.Join(t.Context(), "code", device("ssh-a", "key")), nodes.ErrTaken)
	})
}
