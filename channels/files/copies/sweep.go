package copies

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/sessions/outgoing"
	"parley/sessions/sqldb"
)

const (
	sweepInterval = 6 * time.Hour
	// unusedFileAge is how old a file must be to be removed if no message is known to need it: the tool call that
	// copied a younger file may still be running.
	unusedFileAge = 24 * time.Hour
	holdName      = "outgoing"
)

// A Sweeper removes files that nobody will send: those that a process copied but never published, or sent but did
// not remove, because it died in between.
type Sweeper struct {
	Files Files
	// Bus says which messages are waiting to be sent.
	Bus  bus.Forgetter
	Book channels.Sends
	Log  *slog.Logger
}

// Run removes such files every six hours until ctx is done. In a fleet, only the process that holds the name
// "outgoing" does so.
func (s Sweeper) Run(ctx context.Context, holder bus.Holder) error {
	err := bus.WhileHeld(ctx, holder, holdName, func(held context.Context) error {
		for held.Err() == nil {
			if _, err := s.Sweep(held, time.Now().Add(-unusedFileAge)); err != nil && held.Err() == nil {
				s.Log.Error("files that nobody will send could not be removed; trying again later", slog.Any("error", err))
			}
			select {
			case <-time.After(sweepInterval):
			case <-held.Done():
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("hold the files to be sent: %w", err)
	}
	return nil
}

// Sweep removes the files that were copied before a time and that nobody will send, and returns their number.
func (s Sweeper) Sweep(ctx context.Context, before time.Time) (int, error) {
	var waiting map[string]bool // the messages on the bus; read only when needed, because that reads all mail
	return s.Files.Store.Sweep(ctx, before, func(r outgoing.Reference) (bool, error) {
		send, err := s.Book.Lookup(ctx, r.Message)
		switch {
		case err == nil && !slices.ContainsFunc(send.Parts, isUnsent):
			return false, nil
		case err == nil && send.State() == channels.Queued:
			return true, nil
		case err != nil && !errors.Is(err, channels.ErrNoSend):
			return false, fmt.Errorf("look up a message: %w", err)
		}
		if waiting == nil {
			if waiting, err = s.waiting(ctx); err != nil {
				return false, err
			}
		}
		return waiting[r.Message], nil
	})
}

// waiting returns the ids of all messages that must still be sent, or be read by an agent (which fetches the files
// that a terminal sent with them). It does not take them off the bus, so the home's database need not be rewritten,
// which others would have to wait for.
func (s Sweeper) waiting(ctx context.Context) (map[string]bool, error) {
	ids := map[string]bool{}
	err := sqldb.PurgeIf(ctx, func(ctx context.Context) (erased bool, err error) {
		_, err = s.Bus.Forget(ctx, func(topic bus.Topic, m bus.Message) bool {
			if topic == bus.InboundTopic || strings.HasPrefix(string(topic), string(bus.OutboundTopic(""))) {
				ids[m.ID] = true
			}
			return false
		})
		return false, err
	})
	if err != nil {
		return nil, fmt.Errorf("look what waits to be sent: %w", err)
	}
	return ids, nil
}
