package slack_test

import "testing"

// What a lost socket has swallowed comes seconds later, after what was said next:
// here it never does.
func TestWhatALostSocketHasSwallowedIsReadBeforeWhatIsSaidNext(t *testing.T) {
	r := newRig(t)
	m := newMailbox(r)
	connected(t, r, m.publish)
	root := r.server.Say("C1", "U2", called+" begin")
	r.server.Say("D1", "U1", "begin")
	m.wait(t, 2)
	until(t, "acks", acked(r))
	until(t, "two sockets", func() bool { return r.server.Sockets() == 2 })
	r.server.CutOneSocket()
	until(t, "another socket", func() bool { return r.server.Sockets() == 1 })
	until(t, "two sockets", func() bool { return r.server.Sockets() == 2 })
	r.server.Freeze(true)
	r.server.Say("D1", "U1", "one")
	r.server.Reply("C1", root, "U2", "one")
	r.server.DropUnacked()
	r.server.Freeze(false)
	r.server.Say("D1", "U1", "two")
	r.server.Reply("C1", root, "U2", "two")
	said := map[string]string{}
	for _, in := range m.wait(t, 6) {
		said[in.At.Chat] += in.Text + "|"
	}
	if said["D1"] != "begin|one|two|" || said["C1"] != "begin|one|two|" {
		t.Errorf("published: %v", said)
	}
}

// As long as sockets last, nothing is read that need not be.
func TestSettledSocketsReadNoHistory(t *testing.T) {
	r := newRig(t)
	m := newMailbox(r)
	connected(t, r, m.publish)
	for range 5 {
		r.server.Say("D1", "U1", "hello")
	}
	m.wait(t, 5)
	if n := r.server.Calls("conversations.history"); n != 0 {
		t.Errorf("history was read %d times", n)
	}
}
