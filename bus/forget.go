package bus

import "context"

// Forgotten counts what a bus has removed.
type Forgotten struct {
	Messages    int `json:"messages"`     // messages that waited or were being worked on
	DeadLetters int `json:"dead_letters"` // dead letters
	Leases      int `json:"leases"`       // leases that were taken from the processes at work
}

// A Forgetter removes messages from the bus wherever they are.
type Forgetter interface {
	// Forget removes the messages and dead letters that were published before the call and for
	// which match returns true, and the stored events of the sessions. A process that works on a
	// mailbox which loses a message loses its lease, and the rest of the mailbox can be claimed
	// again some seconds later, when that work is over. The ids of removed messages stay known, so
	// that a repetition is still dropped, and the rest of a mailbox keeps its order.
	//
	// When Forget returns nil, the bus's own files contain no traces of the removed messages, or of
	// those settled before; a Redis server is responsible for its own files. After an error the
	// same call may be made again. Forget calls match from one goroutine at a time, and match may
	// be slow.
	Forget(ctx context.Context, match func(Topic, Message) bool, sessions ...string) (Forgotten, error)
}
