package bustest

import (
	"testing"

	"parley/bus"
)

// A Mailroom is a bus whose mail can be counted and taken.
type Mailroom interface {
	bus.Bus
	bus.Inspector
}

// Take takes the messages that wait in a topic off the bus and returns them, mailbox by mailbox
// in the order in which these are claimed. It waits for mail that is not due yet.
func Take(t testing.TB, b Mailroom, topic bus.Topic) []bus.Message {
	t.Helper()
	var all []bus.Message
	for {
		depth, err := b.Depth(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		if depth.Waiting == 0 {
			return all
		}
		lease, err := b.Claim(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		mail, err := lease.Mail(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(mail) == 0 {
			t.Fatalf("the mailbox of %s is claimed, but has no mail", lease.Claim().Key)
		}
		if err := lease.Settle(t.Context(), bus.End{Done: mail[len(mail)-1].Seq}); err != nil {
			t.Fatal(err)
		}
		all = append(all, mail...)
	}
}

// TakeOutbound takes what waits to be sent on a channel off the bus, in the order of Take.
func TakeOutbound(t testing.TB, b Mailroom, channel string) []bus.Outbound {
	t.Helper()
	var all []bus.Outbound
	for _, m := range Take(t, b, bus.OutboundTopic(channel)) {
		out, err := bus.DecodeOutbound(m.Body)
		if err != nil {
			t.Fatalf("message %s: %v", m.ID, err)
		}
		all = append(all, out)
	}
	return all
}
