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
)

// Notes keep for all processes which models are left alone, by their ID.
type Notes interface {
	// Note keeps a value in place of the one before; "" removes it.
	Note(ctx context.Context, id, value string) error
	// Noted is the value that was noted last, "" if none was.
	Noted(ctx context.Context, id string) (string, error)
}

const (
	// readEvery is how old what is known of the other processes may be.
	readEvery = 5 * time.Second
	// notesTime bounds how long the notes are waited for: without them each process
	// knows what it has seen itself.
	notesTime = 2 * time.Second
)

// A cooldown is how long a model is left alone.
type cooldown struct {
	Until    time.Time `json:"until"`
	Failures int       `json:"failures"` // in a row
	// read is when it was read from the notes last.
	read time.Time
}

// cooldowns remember which models are left alone. A model whose time is over is tried
// out by one request at a time, until it has answered or is left alone again.
type cooldowns struct {
	notes Notes
	log   *slog.Logger

	mu     sync.Mutex
	known  map[string]cooldown // by ID
	probed map[string]bool     // by ID: a request tries it out now
}

// lengths are how long a model is left alone after its first failure in a row, its second
// and so on; the last holds for all that follow.
func lengths(fault *llm.Error) []time.Duration {
	switch {
	case fault.Cause == llm.CauseQuota:
		return []time.Duration{5 * time.Hour, 24 * time.Hour}
	case fault.Fault == llm.Refused:
		return []time.Duration{5 * time.Minute, time.Hour}
	}
	return []time.Duration{time.Minute, 5 * time.Minute, 25 * time.Minute, time.Hour}
}

// ask returns until when a model is left alone; the zero time if it may be asked. Probe
// tells that it is then tried out: the caller says when it has done that.
func (c *cooldowns) ask(ctx context.Context, id string) (until time.Time, probe bool) {
	now := time.Now()
	known := c.current(ctx, id, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case known.Failures == 0:
		return time.Time{}, false
	case known.Until.After(now):
		return known.Until, false
	case c.probed[id]: // by another request
		return now.Add(time.Second), false
	}
	c.probed[id] = true
	return time.Time{}, true
}

// current is what is known of a model, read anew where that is too old.
func (c *cooldowns) current(ctx context.Context, id string, now time.Time) cooldown {
	c.mu.Lock()
	known := c.known[id]
	c.mu.Unlock()
	if c.notes == nil || now.Sub(known.read) < readEvery {
		return known
	}
	ctx, cancel := context.WithTimeout(ctx, notesTime)
	defer cancel()
	value, err := c.notes.Noted(ctx, id)
	if err != nil {
		c.log.LogAttrs(ctx, slog.LevelWarn, "it is not known which models other processes leave alone", slog.Any("error", err))
		return known
	}
	read := cooldown{}
	if value != "" && json.Unmarshal([]byte(value), &read) != nil {
		read = cooldown{} // of another release: the model is asked
	}
	read.read = now
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[id].read.Equal(known.read) { // nothing was found out meanwhile
		c.known[id] = read
	}
	return c.known[id]
}

// probes tells whether a model is tried out.
func (c *cooldowns) probes(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.probed[id]
}

// probeEnds lets others try the models out.
func (c *cooldowns) probeEnds(ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.probed, func(id string, _ bool) bool {
		return slices.Contains(ids, id)
	})
}

// begin leaves a model alone, longer each time that it fails in a row.
func (c *cooldowns) begin(ctx context.Context, id, name string, fault *llm.Error) {
	now := time.Now()
	c.mu.Lock()
	known := c.known[id]
	if !known.Until.After(now) { // else another request that failed with it has begun it
		all := lengths(fault)
		length := max(all[min(known.Failures, len(all)-1)], fault.RetryAfter)
		known = cooldown{Until: now.Add(length), Failures: known.Failures + 1}
	}
	known.read = now
	c.known[id] = known
	c.mu.Unlock()
	c.log.LogAttrs(ctx, slog.LevelWarn, "the model is left alone for a while", slog.String("model", name),
		slog.Time("until", known.Until), slog.Any("error", fault))
	value, err := json.Marshal(known)
	if err == nil {
		err = c.note(ctx, id, string(value))
	}
	if err != nil {
		c.log.LogAttrs(ctx, slog.LevelWarn, "other processes are not told that a model is left alone", slog.Any("error", err))
	}
}

// end asks a model again as ever.
func (c *cooldowns) end(ctx context.Context, id string) {
	c.mu.Lock()
	failed := c.known[id].Failures > 0
	c.known[id] = cooldown{read: time.Now()}
	c.mu.Unlock()
	if !failed {
		return
	}
	if err := c.note(ctx, id, ""); err != nil {
		c.log.LogAttrs(ctx, slog.LevelWarn, "other processes are not told that a model answers again", slog.Any("error", err))
	}
}

// note tells the other processes, also after the request was given up.
func (c *cooldowns) note(ctx context.Context, id, value string) error {
	if c.notes == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notesTime)
	defer cancel()
	return c.notes.Note(ctx, id, value)
}
