package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/bus"
	"parley/channels"
)

// fallbacks sends messages that are given up to their fallback addresses.
type fallbacks struct {
	channel channels.Channel
	bus     bus.Bus
	files   *fileSending
	log     *slog.Logger
}

// sendToFallbacks publishes a message that is given up to its fallback addresses, with a sentence that says where it could not
// be delivered and why. The copies have no fallback themselves. A copy that the bus will never accept is left out; if
// the bus can't take one now, the message is given back.
func (f *fallbacks) sendToFallbacks(work context.Context, d *delivery, code string) error {
	for n, to := range d.out.Fallback {
		if to == d.out.To || to.Chat == "" {
			continue
		}
		out := bus.Outbound{
			ID: bus.FallbackID(d.record.ID, n), To: to, Text: undeliveredText(f.channel, d, code) + "\n\n" + d.out.Text,
			Session: d.out.Session, Turn: d.out.Turn, At: time.Now(), Expires: d.out.Expires,
			Subject: d.out.Subject, Origin: d.out.Origin, File: d.out.File, Files: d.out.Files, Needs: d.out.Needs,
		}
		if out.Subject != "" {
			// Copies of messages to two places may go to the same fallback; they must not replace each other.
			out.Subject += " for " + d.out.To.String()
		}
		err := f.files.refer(out)
		if err == nil {
			err = publish(work, f.bus, d, out)
		}
		switch {
		case err == nil:
		case errors.Is(err, bus.ErrInvalid):
			// The message remains only as a dead letter.
			f.log.Error("message cannot go to its fallback", slog.String("id", d.record.ID), slog.Any("error", err))
		default: // the mailbox is full, or the bus is down: keep the message until then
			f.log.Warn("fallback could not be used", slog.String("id", d.record.ID), slog.Any("error", err))
			return giveBackFor(storageWait)
		}
	}
	return nil
}
