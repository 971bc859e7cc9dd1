package dispatch

import (
	"context"
	"errors"

	"parley/channels"
)

// An alternative is the stage that replaces a message's text with its alternative text if the message that it
// depends on did not arrive. That message was published earlier to the same address, so what became of it is known
// by now.
type alternative struct{ ledger *ledger }

func (w *alternative) run(_, work context.Context, d *delivery) error {
	otherwise := d.out.Otherwise
	if otherwise == nil {
		return nil
	}
	ahead, err := w.ledger.book.Lookup(work, otherwise.Unsent)
	if err != nil && !errors.Is(err, channels.ErrNoSend) {
		return w.ledger.retryAfterError(d, err)
	}
	if !ahead.HasSentFile() {
		d.out.Text, d.out.Buttons = otherwise.Text, otherwise.Buttons
	}
	return nil
}
