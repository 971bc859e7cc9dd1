// Package connections tells those who watch the server when a channel connects to its platform and when it loses
// the connection, and stores what each process knows about its channels for all processes.
package connections

import (
	"context"
	"time"

	"parley/bus"
)

// checkEvery is the time between two checks whether the channels are connected.
const checkEvery = time.Second

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
}

// Run checks the channels every second until ctx is done.
func (w *Watch) Run(ctx context.Context) error {
	told := map[string]bool{}
	var keepers []*keeper
	for _, c := range w.Channels {
		if w.Notes != nil {
			keepers = append(keepers, &keeper{Channel: c, notes: w.Notes})
		}
	}
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		for _, c := range w.Channels {
			w.emitChange(c, told)
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

// emitChange emits an event if a channel's state is not the one that was last told.
func (w *Watch) emitChange(c Channel, told map[string]bool) {
	if !c.Known() {
		delete(told, c.Name)
		return
	}
	up := c.Up()
	if was, known := told[c.Name]; known && was == up {
		return
	}
	told[c.Name] = up
	state := bus.StateDown
	if up {
		state = bus.StateUp
	}
	w.Events.Emit(bus.Event{Type: bus.ChannelMoved, News: &bus.News{ID: c.Name, State: state}})
}
