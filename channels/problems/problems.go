// Package problems looks for problems that owners must see to, and tells them once, and once
// again when a problem is over.
//
// problems.go records in the book what owners were told; channel.go, dead.go, disk.go, quota.go
// and tools.go watch channels, dead letters, disks, the folders of conversations, and the tools
// that models are not shown.
package problems

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
	"parley/tools/plainjson"
)

// A Concern is a problem that owners must see to.
type Concern struct {
	ID   string // names the concern in the book, and stays the same as long as the concern lasts
	Text string
	// Count is how many things the concern is about: owners are told again when it has
	// grown, but at most once in an hour. It is 0 if there is nothing to count.
	Count int
	// TellAfter is how long the concern must last before owners are told.
	TellAfter time.Duration
}

// A Source watches one part of the bot for problems.
type Source struct {
	// ID is the id of the part's only concern or, with a slash at the end, what the ids
	// of its concerns begin with.
	ID string
	// Judges reports whether this process is the one that watches the part now: one
	// process watches for the whole fleet, or each watches its own.
	Judges func() bool
	// Look returns all concerns that there are now. The map open has the ids of those that there
	// were at the last look, for which it may apply another limit, so that a value near the limit
	// does not start and end a concern again and again.
	Look func(ctx context.Context, open map[string]bool) ([]Concern, error)
	// Over returns the text that tells owners that a concern is over; "" tells them
	// nothing.
	Over func(id string) string
}

// has reports whether a concern of that id belongs to this part.
func (s Source) has(id string) bool {
	return id == s.ID || strings.HasSuffix(s.ID, "/") && strings.HasPrefix(id, s.ID)
}

// Config holds the parts that a Watch works with.
type Config struct {
	Sources []Source
	Notes   channels.Notes
	// Tell sends a text to the owners. The ids of the messages are made of suffix, so that a
	// repeated call sends nothing twice.
	Tell func(ctx context.Context, suffix, text string) error
	// Every is how often the sources are looked at, and Calm how long a concern must be
	// gone until it is over.
	Every, Calm time.Duration
	Log         *slog.Logger
}

// ErrNobody says that no chat is known in which owners could be told.
var ErrNobody = errors.New("no chat with an owner is known")

// subject is the subject of the notes in which the book records what owners were told.
const subject = "concern"

// tellAgainAfter is how soon owners may be told again, if a concern has grown.
const tellAgainAfter = time.Hour

// A state is what the book remembers about a concern.
type state struct {
	Since time.Time `json:"since"`
	Told  time.Time `json:"told,omitzero"`
	Count int       `json:"count,omitempty"` // the count that owners were told
	Gone  time.Time `json:"gone,omitzero"`
	// Patient says that the concern had to last before owners are told: one that ends sooner is
	// forgotten at once. Any other has to be gone for a while, because another process may still see it.
	Patient bool `json:"patient,omitempty"`
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
			if err := c.check(ctx, s); err != nil && !errors.Is(err, ErrNobody) && ctx.Err() == nil {
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

// check looks at one part once. A new concern is only recorded: owners are told when the
// note has been read back, so that processes which find the same at the same time tell it
// under the same id.
func (c Config) check(ctx context.Context, s Source) error {
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
		if err := c.handlePresent(ctx, one, st, ok, now); err != nil {
			return err
		}
	}
	for id, st := range known {
		if err := c.handleGone(ctx, s, id, st, now); err != nil {
			return err
		}
	}
	return nil
}

// handlePresent records a concern that exists now, and tells owners if it is time. st is what the
// book says about the concern; known is false if the book has nothing about it.
func (c Config) handlePresent(ctx context.Context, one Concern, st state, known bool, now time.Time) error {
	if !known {
		return c.note(ctx, one.ID, state{Since: now, Patient: one.TellAfter > 0})
	}
	wasGone := !st.Gone.IsZero() // for a moment, or for a process that does not see it
	st.Gone = time.Time{}
	switch {
	case st.Told.IsZero() && now.Sub(st.Since) < one.TellAfter:
		return nil
	case st.Told.IsZero(), one.Count > st.Count && now.Sub(st.Told) >= tellAgainAfter:
		if err := c.Tell(ctx, suffix(one.ID, st, strconv.Itoa(one.Count)), one.Text); err != nil {
			return err
		}
		st.Told, st.Count = now, one.Count
		return c.note(ctx, one.ID, st)
	case one.Count < st.Count, wasGone:
		st.Count = min(st.Count, one.Count)
		return c.note(ctx, one.ID, st)
	}
	return nil
}

// handleGone records that a concern does not exist any more, and tells owners once it is
// over.
func (c Config) handleGone(ctx context.Context, s Source, id string, st state, now time.Time) error {
	switch {
	case st.Told.IsZero() && st.Patient:
		return c.Notes.SetNote(ctx, subject, id, "")
	case st.Gone.IsZero():
		st.Gone = now
		return c.note(ctx, id, st)
	case now.Sub(st.Gone) < c.Calm:
		return nil
	}
	if text := s.Over(id); text != "" && !st.Told.IsZero() {
		if err := c.Tell(ctx, suffix(id, st, "over"), text); err != nil {
			return err
		}
	}
	return c.Notes.SetNote(ctx, subject, id, "")
}

func (c Config) note(ctx context.Context, id string, st state) error {
	raw, err := plainjson.Marshal(st)
	if err != nil {
		return fmt.Errorf("encode a concern: %w", err)
	}
	return c.Notes.SetNote(ctx, subject, id, string(raw))
}

// suffix returns the suffix for the ids of messages: the same for the same concern, and
// another when the concern comes again.
func suffix(id string, st state, what string) string {
	return "#concern/" + id[:min(len(id), 100)] + "/" + strconv.FormatInt(st.Since.UnixMicro(), 36) + "/" + what
}

// isFromWatch reports whether a message's id says that a Watch has sent it.
func isFromWatch(id string) bool { return strings.Contains(id, "#concern/") }
