// Package watch looks for what owners have to see to, and tells them once, and once when it is over.
//
// watch.go remembers in the book what was told; channel.go, dead.go, disk.go and quota.go
// look at channels, dead letters, disks and the folders of conversations.
package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"parley/channels"
)

// A Concern is something that owners have to see to.
type Concern struct {
	ID   string // names it for good
	Text string
	// Count is how many there are of it: owners are told again when it has grown, but not
	// more often than once in an hour. 0 is of what does not count.
	Count int
	// Patience is how long it lasts before they are told.
	Patience time.Duration
}

// A Source looks at one part.
type Source struct {
	// ID is that of its one concern or, with a slash at the end, what the ids of its
	// concerns begin with.
	ID string
	// Judges tells whether this process knows now how the part is: of all in a fleet one
	// does, or each about what is its own.
	Judges func() bool
	// Look returns all that there is now. Those ids that were there before are open: of
	// these it may take another measure.
	Look func(ctx context.Context, open map[string]bool) ([]Concern, error)
	// Over is what is said when a concern is over; "" says nothing.
	Over func(id string) string
}

// has tells whether a concern of that id is of this part.
func (s Source) has(id string) bool {
	return id == s.ID || strings.HasSuffix(s.ID, "/") && strings.HasPrefix(id, s.ID)
}

// Config is what a Watch works with.
type Config struct {
	Sources []Source
	Notes   channels.Notes
	// Tell tells the owners. The suffix makes ids of it: the same is told once.
	Tell func(ctx context.Context, suffix, text string) error
	// Every is how often it looks, and Calm how long a concern must be gone until it is
	// over.
	Every, Calm time.Duration
	Log         *slog.Logger
}

// ErrNobody says that no chat is known in which owners could be told.
var ErrNobody = errors.New("no chat with an owner is known")

// subject is that of the book's notes.
const subject = "concern"

// again is how often owners are told that there is more of something.
const again = time.Hour

// A state is what is remembered of a concern.
type state struct {
	Since time.Time `json:"since"`
	Told  time.Time `json:"told,omitzero"`
	Count int       `json:"count,omitempty"` // that was told
	Gone  time.Time `json:"gone,omitzero"`
}

// Run watches until ctx is done.
func Run(ctx context.Context, c Config) error {
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	for {
		for _, s := range c.Sources {
			if !s.Judges() {
				continue
			}
			if err := c.look(ctx, s); err != nil && !errors.Is(err, ErrNobody) && ctx.Err() == nil {
				c.Log.Warn("owners may not be told of what they have to see to", slog.String("part", s.ID), slog.Any("error", err))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look looks at one part once. A concern that is new is only noted: owners are told when
// the note has been read back, so that processes which find the same at the same time
// tell it under the same id.
func (c Config) look(ctx context.Context, s Source) error {
	noted, err := c.Notes.AllNoted(ctx, subject)
	if err != nil {
		return err
	}
	known, open := map[string]state{}, map[string]bool{}
	for _, n := range noted {
		var st state
		if s.has(n.About) && json.Unmarshal([]byte(n.Value), &st) == nil {
			known[n.About], open[n.About] = st, !st.Told.IsZero()
		}
	}
	there, err := s.Look(ctx, open)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, one := range there {
		st, ok := known[one.ID]
		delete(known, one.ID)
		if err := c.standing(ctx, one, st, ok, now); err != nil {
			return err
		}
	}
	for id, st := range known {
		if err := c.passing(ctx, s, id, st, now); err != nil {
			return err
		}
	}
	return nil
}

// standing deals with a concern that there is.
func (c Config) standing(ctx context.Context, one Concern, st state, known bool, now time.Time) error {
	switch {
	case !known:
		return c.note(ctx, one.ID, state{Since: now})
	case !st.Gone.IsZero():
		st.Gone = time.Time{} // it was gone for a moment
		return c.note(ctx, one.ID, st)
	case st.Told.IsZero() && now.Sub(st.Since) < one.Patience:
		return nil
	case st.Told.IsZero(), one.Count > st.Count && now.Sub(st.Told) >= again:
		if err := c.Tell(ctx, suffix(one.ID, st, strconv.Itoa(one.Count)), one.Text); err != nil {
			return err
		}
		st.Told, st.Count = now, one.Count
		return c.note(ctx, one.ID, st)
	case one.Count < st.Count:
		st.Count = one.Count
		return c.note(ctx, one.ID, st)
	}
	return nil
}

// passing deals with a concern that there is no more.
func (c Config) passing(ctx context.Context, s Source, id string, st state, now time.Time) error {
	switch {
	case st.Told.IsZero():
		return c.Notes.Note(ctx, subject, id, "")
	case st.Gone.IsZero():
		st.Gone = now
		return c.note(ctx, id, st)
	case now.Sub(st.Gone) < c.Calm:
		return nil
	}
	if text := s.Over(id); text != "" {
		if err := c.Tell(ctx, suffix(id, st, "over"), text); err != nil {
			return err
		}
	}
	return c.Notes.Note(ctx, subject, id, "")
}

func (c Config) note(ctx context.Context, id string, st state) error {
	raw, err := json.Marshal(st)
	if err != nil {
		return fmt.Errorf("encode a concern: %w", err)
	}
	return c.Notes.Note(ctx, subject, id, string(raw))
}

// suffix makes ids of what is told: the same for the same concern, and another when it
// comes again.
func suffix(id string, st state, what string) string {
	return "#concern/" + id[:min(len(id), 100)] + "/" + strconv.FormatInt(st.Since.UnixMicro(), 36) + "/" + what
}

// isTold tells of a message by its id that a Watch has told it.
func isTold(id string) bool { return strings.Contains(id, "#concern/") }
