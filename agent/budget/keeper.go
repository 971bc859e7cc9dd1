package budget

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parley/sessions/bill"
)

// An Extender records that a process still works on reservations, so that others don't settle them.
type Extender interface {
	Extend(ctx context.Context, ids []string) error
}

// extendEvery is how often a Keeper extends reservations: three times before they would be settled.
const extendEvery = bill.LeaseTime / 4

// A Keeper extends the reservations that this process works on, many at once. Other processes
// settle those of a process that has died or stands still. On a nil Keeper, hold and release do
// nothing.
type Keeper struct {
	mu   sync.Mutex
	held map[Extender]map[string]time.Time // by budget and id: when they were made or last extended
}

// NewKeeper makes a Keeper without reservations.
func NewKeeper() *Keeper { return &Keeper{held: map[Extender]map[string]time.Time{}} }

// hold adds a reservation that was just made.
func (k *Keeper) hold(in Extender, id string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held[in] == nil {
		k.held[in] = map[string]time.Time{}
	}
	k.held[in][id] = time.Now()
}

// release removes a reservation that this process no longer works on.
func (k *Keeper) release(in Extender, id string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held[in], id)
}

// dueForExtension returns the reservations that were neither made nor extended during the last half of extendEvery.
func (k *Keeper) dueForExtension(now time.Time) map[Extender][]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var due map[Extender][]string
	for in, ids := range k.held {
		for id, at := range ids {
			if now.Sub(at) < extendEvery/2 {
				continue
			}
			if due == nil {
				due = map[Extender][]string{}
			}
			due[in] = append(due[in], id)
		}
	}
	return due
}

// markExtended records that reservations were extended, if they are still held.
func (k *Keeper) markExtended(in Extender, ids []string, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range ids {
		if _, ok := k.held[in][id]; ok {
			k.held[in][id] = at
		}
	}
}

// Run extends reservations until ctx is done.
func (k *Keeper) Run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(extendEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		for in, ids := range k.dueForExtension(now) {
			err := in.Extend(ctx, ids)
			if err == nil {
				k.markExtended(in, ids, now)
			} else if ctx.Err() == nil {
				log.Warn("reservations for turns that run are not extended; trying again", slog.Int("reservations", len(ids)), slog.Any("error", err))
			}
		}
	}
}
