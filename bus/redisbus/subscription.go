package redisbus

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// maxSilence is how long the server may send nothing before the connection is tested.
const maxSilence = 2 * time.Second

// A subscription receives what is published to this process.
type subscription struct {
	*connection
	claims *claims
	leases *leases
	holds  *holds
	events *events

	confirmed func() // is called when the server has confirmed that this process gets its notes
}

// listen receives everything that is published to this process until ctx is done:
// notes about its leases and about names for which it waits, requests to forget, and events.
func (n *subscription) listen(ctx context.Context) {
	s := n.events
	defer s.close() // ends Redis' subscriptions of a process that reads no more
	var retry backoff
	tested := false
	for tidied := time.Now(); ; {
		heard, err := n.receiveNote(ctx, tested)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err == nil:
			retry, tested = 0, false
			n.handleMessage(heard)
		case isTimeout(err) && !tested:
			tested = true
			_ = s.pubsub.Ping(ctx) // if the connection is broken, the next call returns the error
		default:
			tested = false
			s.handleBrokenConnection()
			select {
			case <-time.After(retry.next()):
			case <-ctx.Done():
				return
			}
		}
		if time.Since(tidied) > time.Second {
			s.dropIdleFeeds()
			tidied = time.Now()
		}
	}
}

// receiveNote waits for the next message. tested says that a ping was sent: the client then has
// to treat silence as a broken connection and dial again, which it does if the context has a
// deadline, but not with ReceiveTimeout.
func (n *subscription) receiveNote(ctx context.Context, tested bool) (any, error) {
	if !tested {
		return n.events.pubsub.ReceiveTimeout(ctx, maxSilence)
	}
	ctx, cancel := context.WithTimeout(ctx, maxSilence)
	defer cancel()
	return n.events.pubsub.Receive(ctx)
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// handleMessage handles one message that listen has received.
func (n *subscription) handleMessage(heard any) {
	switch x := heard.(type) {
	case *redis.Subscription:
		if x.Kind != "subscribe" {
			return
		}
		if x.Channel == n.keys.notes(n.self) {
			n.confirmed()
			n.leases.extendNow() // notes sent before are lost; extending returns the same numbers
		}
		n.events.confirm(x.Channel)
	case *redis.Message:
		switch x.Channel {
		case n.keys.notes(n.self):
			n.handleNote(x.Payload)
		case n.keys.forgotten():
			n.events.handleForgetRequest(x.Payload)
		default:
			n.events.deliver(x.Channel, x.Payload)
		}
	}
}

// handleNote handles a note to this process: that a name has become free, that a mailbox is offered to it, or news of one
// of its leases.
func (n *subscription) handleNote(text string) {
	first, rest, _ := strings.Cut(text, " ")
	switch first {
	case "free":
		n.holds.wakeWaiters(rest)
	case "offer":
		n.claims.handleOffer(rest)
	default:
		n.leases.handleNote(reply{first}.number(), reply{rest}.number())
	}
}
