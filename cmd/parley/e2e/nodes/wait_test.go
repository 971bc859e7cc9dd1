//go:build linux

package nodes

import (
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
)

// isAway waits until the server says that the node is away.
func isAway(w *parleytest.HTTPWorld) {
	w.T.Helper()
	parleytest.WaitFor(w.T, "the node to be away", func() bool {
		out, _, _ := w.Run("nodes", "list")
		return strings.Contains(out, "away since")
	})
}

// A turn whose node is away waits for the node, even if the server is killed and restarted, and the call runs once. The
// turn stops waiting after /stop, after the time limit, or when the node is removed.
func TestATurnWaitsForANode(t *testing.T) {
	w, p, n := accepted(t, "wait = \"1h\"\n")
	n.kill()
	isAway(w)
	w.Telegram.Say(2, 2, "run: echo ran >> runs; cat runs;;")
	parleytest.Wants(t, w.WaitSaid(2, 2)[1], "waiting for the node pi, which has been away since", "/stop makes me give up")
	w.Telegram.Say(2, 2, "/status")
	parleytest.Wants(t, w.WaitSaid(2, 3)[2], "been waiting", "the node pi")
	w.Telegram.Say(3, 3, "run: echo never;;")
	parleytest.Wants(t, w.WaitSaid(3, 1)[0], "waiting for the node")
	w.Telegram.Say(3, 3, "/stop")
	parleytest.Wants(t, w.WaitSaid(3, 2)[1], "Stopped.")
	p.Kill()
	p = w.Up()
	if got := w.Count("sessions.db", "SELECT count(*) FROM node_waits"); got != 1 {
		t.Errorf("%d turns wait", got)
	}
	n.start()
	said := w.WaitSaid(2, 4)
	parleytest.Wants(t, said[3], `"stdout":"ran\n"`)
	n.kill()
	isAway(w)
	w.Telegram.Say(4, 4, "run: echo removed;;")
	parleytest.Wants(t, w.WaitSaid(4, 1)[0], "waiting for the node")
	if _, errs, code := w.Run("nodes", "revoke", "pi", "--yes"); code != parleytest.ExitDone {
		t.Errorf("nodes revoke ended with %d: %s", code, errs)
	}
	parleytest.Wants(t, w.WaitSaid(4, 2)[1], "not_found")
	parleytest.WaitFor(t, "nothing to wait", func() bool { return w.Count("sessions.db", "SELECT count(*) FROM node_waits") == 0 })
	p.Stop()
	if said := w.WaitSaid(2, 4); len(said) != 4 {
		t.Errorf("it was said %q", said)
	}
}

// After the time limit, the agent is told that the node is away.
func TestATurnWaitsNoLongerThanItMay(t *testing.T) {
	w, p, n := accepted(t, "wait = \"1s\"\n")
	n.kill()
	isAway(w)
	w.Telegram.Say(2, 2, "run: echo nobody is there;;")
	parleytest.Wants(t, w.WaitSaid(2, 2)[1], "waiting for the node pi")
	parleytest.Wants(t, w.WaitSaid(2, 3)[2], "node_away", "the node pi has been away since")
	p.Stop()
}
