package failover

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"parley/agent/llm"
	"parley/tools/plainjson"
)

// Notes are a store that all processes share. In it, each process finds the models that others have found failing, and
// doesn't ask them for a while. There is one value for each model's ID.
type Notes interface {
	// SetNote sets the value of an ID; "" removes it.
	SetNote(ctx context.Context, id, value string) error
	// Noted returns the value of an ID, or "" if it has none.
	Noted(ctx context.Context, id string) (string, error)
}

const (
	// readEvery is the age at which a value that was read from the notes is read again.
	readEvery = 5 * time.Second
	// notesTimeout limits how long a call of the notes may take. Without the notes, each process uses only its own
	// experience.
	notesTimeout = 2 * time.Second
)

// A cooldown is the state of a model that has failed: no request is sent to it until a certain time. The zero
// cooldown is for a model that answers.
type cooldown struct {
	Until    time.Time `json:"until"`
	Failures int       `json:"failures"` // in a row
	// read is when the value was last read from the notes.
	read time.Time
}

// cooldowns keep track of the models that are not asked for a while. When a model's time is up, one request at a time
// probes it, until it answers or its next cooldown begins.
type cooldowns struct {
	notes Notes
	log   *slog.Logger

	mu     sync.Mutex
	known  map[string]cooldown // by ID
	probed map[string]bool     // by ID: a request is probing the model now
}

// cooldownLengths returns how long a model is left alone after its first failure in a row, after
// the second, and so on. The last length also holds for all later failures.
func cooldownLengths(fault *llm.Error) []time.Duration {
	switch {
	case fault.Cause == llm.CauseQuota:
		return []time.Duration{5 * time.Hour, 24 * time.Hour}
	case fault.Fault == llm.Refused:
		return []time.Duration{5 * time.Minute, time.Hour}
	}
	return []time.Duration{time.Minute, 5 * time.Minute, 25 * time.Minute, time.Hour}
}

// leftAloneUntil returns until when a model is left alone, or the zero time if it may be asked. While another
// request probes the model, that is a second from now. probe reports that the caller's request probes the model;
// then the caller has to call endProbes afterwards.
func (c *cooldowns) leftAloneUntil(ctx context.Context, id string) (until time.Time, probe bool) {
	now := time.Now()
	known := c.lookUp(ctx, id, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case known.Failures == 0:
		return time.Time{}, false
	case known.Until.After(now):
		return known.Until, false
	case c.probed[id]: // another request is probing the model
		return now.Add(time.Second), false
	}
	c.probed[id] = true
	return time.Time{}, true
}

// lookUp returns a model's cooldown. It reads it from the notes if the value it has is too old. If that fails, it
// returns the old value.
func (c *cooldowns) lookUp(ctx context.Context, id string, now time.Time) cooldown {
	c.mu.Lock()
	known := c.known[id]
	c.mu.Unlock()
	if c.notes == nil || now.Sub(known.read) < readEvery {
		return known
	}
	ctx, cancel := context.WithTimeout(ctx, notesTimeout)
	defer cancel()
	value, err := c.notes.Noted(ctx, id)
	if err != nil {
		c.log.LogAttrs(ctx, slog.LevelWarn, "it is not known which models other processes leave alone", slog.Any("error", err))
		return known
	}
	read := cooldown{}
	if value != "" && json.Unmarshal([]byte(value), &read) != nil {
		read = cooldown{} // another release wrote a value that this one can't read: ask the model
	}
	read.read = now
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[id].read.Equal(known.read) { // nothing was learned in the meantime
		c.known[id] = read
	}
	return c.known[id]
}

// isProbing reports whether a request is probing the model.
func (c *cooldowns) isProbing(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.probed[id]
}

// endProbes ends the caller's probes of these models, so that other requests can probe them.
func (c *cooldowns) endProbes(ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.probed, func(id string, _ bool) bool {
		return slices.Contains(ids, id)
	})
}

// begin begins a cooldown of a model, unless one is still running. It gets longer with each failure in a row.
func (c *cooldowns) begin(ctx context.Context, id, name string, fault *llm.Error) {
	now := time.Now()
	c.mu.Lock()
	known := c.known[id]
	if !known.Until.After(now) { // otherwise another failed request has begun one already
		all := cooldownLengths(fault)
		length := max(all[min(known.Failures, len(all)-1)], fault.RetryAfter)
		known = cooldown{Until: now.Add(length), Failures: known.Failures + 1}
	}
	known.read = now
	c.known[id] = known
	c.mu.Unlock()
	c.log.LogAttrs(ctx, slog.LevelWarn, "the model is left alone for a while", slog.String("model", name),
		slog.Time("until", known.Until), slog.Any("error", fault))
	value, err := plainjson.Marshal(known)
	if err == nil {
		err = c.shareValue(ctx, id, string(value))
	}
	if err != nil {
		c.log.LogAttrs(ctx, slog.LevelWarn, "other processes are not told that a model is left alone", slog.Any("error", err))
	}
}

// end ends a model's cooldown: the model has answered.
func (c *cooldowns) end(ctx context.Context, id string) {
	c.mu.Lock()
	failed := c.known[id].Failures > 0
	c.known[id] = cooldown{read: time.Now()}
	c.mu.Unlock()
	if !failed {
		return
	}
	if err := c.shareValue(ctx, id, ""); err != nil {
		c.log.LogAttrs(ctx, slog.LevelWarn, "other processes are not told that a model answers again", slog.Any("error", err))
	}
}

// shareValue shares a value with the other processes, even if the caller has given its request up.
func (c *cooldowns) shareValue(ctx context.Context, id, value string) error {
	if c.notes == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notesTimeout)
	defer cancel()
	return c.notes.SetNote(ctx, id, value)
}
