// Package connections tells those who watch the server when a channel connects to its platform and when it loses
// the connection, and stores what each process knows about its channels for all processes. Its probe asks the platform
// of a channel that only sends for the bot's account.
package connections

import (
	"context"
	"log/slog"
	"time"

	"parley/bus"
)

// checkInterval is the time between two checks whether the channels are connected.
const checkInterval = time.Second

// A Channel is a channel whose connection is watched.
type Channel struct {
	Name  string
	Known func() bool // whether this process knows the state of the channel
	Up    func() bool // whether it is connected
	// Bot returns the bot's name there, as far as the adapter knows it.
	Bot     func() string
	Traffic *Traffic
}

// A Watch checks the state of the channels, which causes no requests, and emits an event for each change.
type Watch struct {
	Channels []Channel
	Events   bus.Emitter
	Notes    Notes // nil means that nothing is stored
	// Record records a change for subscribers; nil means that nobody needs that. After an error it is called again a
	// second later.
	Record func(ctx context.Context, channel, state string) error
	Log    *slog.Logger
}

// Run checks the channels every second until ctx is done.
func (w *Watch) Run(ctx context.Context) error {
	told, recorded := map[string]bool{}, map[string]bool{}
	var keepers []*keeper
	for _, c := range w.Channels {
		if w.Notes != nil {
			keepers = append(keepers, &keeper{Channel: c, notes: w.Notes})
		}
	}
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		for _, c := range w.Channels {
			w.emitChange(c, told)
			w.recordChange(ctx, c, recorded)
		}
		for _, k := range keepers {
			k.keep(ctx)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// recordChange records a channel's state for subscribers if it is not the one that was last recorded.
func (w *Watch) recordChange(ctx context.Context, c Channel, recorded map[string]bool) {
	if w.Record == nil {
		return
	}
	up, changed := change(c, recorded)
	if !changed {
		return
	}
	if err := w.Record(ctx, c.Name, stateOf(up)); err != nil {
		if ctx.Err() == nil {
			w.Log.Warn("subscribers hear late of a channel", slog.String("channel", c.Name), slog.Any("error", err))
		}
		return
	}
	recorded[c.Name] = up
}

// change returns whether a channel is up, and whether that is not what is known; false if this process can't know.
func change(c Channel, known map[string]bool) (up, changed bool) {
	if !c.Known() {
		delete(known, c.Name)
		return false, false
	}
	up = c.Up()
	was, ok := known[c.Name]
	return up, !ok || was != up
}

func stateOf(up bool) string {
	if up {
		return bus.StateUp
	}
	return bus.StateDown
}

// emitChange emits an event if a channel's state is not the one that was last told.
func (w *Watch) emitChange(c Channel, told map[string]bool) {
	up, changed := change(c, told)
	if !changed {
		return
	}
	told[c.Name] = up
	w.Events.Emit(bus.Event{Type: bus.ChannelMoved, News: &bus.News{ID: c.Name, State: stateOf(up)}})
}
