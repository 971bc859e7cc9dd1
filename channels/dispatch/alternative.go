package dispatch

import (
	"context"
	"errors"

	"parley/channels"
)

// An alternative is the stage for a message that depends on the file of another message. If that file did not
// arrive, the stage replaces the text and the buttons by the alternative ones. The other message was published
// earlier to the same address, so it has been sent or given up by now.
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
