package bus

import "context"

// Forgotten counts what a bus has forgotten.
type Forgotten struct {
	Messages    int `json:"messages"`     // that waited or were worked on
	DeadLetters int `json:"dead_letters"` // that were kept
	Leases      int `json:"leases"`       // that were taken from their holders
}

// A Forgetter takes messages out of the bus wherever they are.
type Forgetter interface {
	// Forget drops those messages and dead letters that which picks out of all
	// that were published before the call, and the events held of sessions.
	// Who works on a mailbox that loses a message loses the lease, and what is
	// left of the mailbox comes up again some seconds later, when that work is
	// over. Ids stay known as ever, and the rest of a mailbox keeps its order.
	//
	// When Forget returns nil, the bus's own files hold nothing of what was
	// dropped, nor of what was settled before; a server's are the server's.
	// After an error the same call may be made again. which is called from one
	// goroutine at a time and may take its time.
	Forget(ctx context.Context, which func(Topic, Message) bool, sessions ...string) (Forgotten, error)
}
