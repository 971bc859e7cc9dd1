// Package problems looks for problems that owners must take care of. It tells owners about each once, and once more
// when it is over.
//
// problems.go records in the book what owners were told; channel.go, dead.go, disk.go, quota.go and tools.go watch
// channels, dead letters, disks, the folders of conversations, and tools that are not offered to models.
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

// A Concern is a problem that owners must take care of.
type Concern struct {
	ID   string // identifies the concern in the book, and stays the same as long as the concern lasts
	Text string
	// Count is the number of things that the concern is about: owners are told again if it has grown, but at most
	// once an hour. It is 0 if there is nothing to count.
	Count int
	// TellAfter is how long the concern must last before owners are told.
	TellAfter time.Duration
}

// A Source watches one part of the bot for problems.
type Source struct {
	// ID is the id of the source's only concern or, if it ends in a slash, the prefix of the ids of its concerns.
	ID string
	// IsResponsible reports whether this process is the one that watches the part now: either one process watches for the
	// whole fleet, or each process watches its own.
	IsResponsible func() bool
	// FindConcerns returns all current concerns. The map open contains the ids of those that the book has recorded, with
	// true for those that owners were told about. For them, FindConcerns may apply a different limit, so that a value near
	// the limit does not start and end a concern again and again.
	FindConcerns func(ctx context.Context, open map[string]bool) ([]Concern, error)
	// EndText returns the text that tells owners that a concern is over; "" means that they are not told.
	EndText func(id string) string
}

// has reports whether a concern with that id belongs to this source.
func (s Source) has(id string) bool {
	return id == s.ID || strings.HasSuffix(s.ID, "/") && strings.HasPrefix(id, s.ID)
}

// Config holds what Run needs.
type Config struct {
	Sources []Source
	Notes   channels.Notes
	// Tell sends a text to the owners. The ids of the messages are derived from suffix, so that a repeated call
	// sends nothing twice.
	Tell func(ctx context.Context, suffix, text string) error
	// Every is how often the sources are checked, and GoneFor is how long a concern must be gone before it is over.
	Every, GoneFor time.Duration
	Log            *slog.Logger
}

// ErrNobody says that no chat is known in which owners could be told.
var ErrNobody = errors.New("no chat with an owner is known")

// concernSubject is the subject of the notes in which the book records what owners were told.
const concernSubject = "concern"

// repeatInterval is the minimum time before owners are told again, if a concern has grown.
const repeatInterval = time.Hour

// A state is what the book remembers about a concern.
type state struct {
	Since time.Time `json:"since"`
	Told  time.Time `json:"told,omitzero"`
	Count int       `json:"count,omitempty"` // the count that owners were told
	Gone  time.Time `json:"gone,omitzero"`
	// Patient says that the concern has a TellAfter: if it ends before owners are told, it is forgotten
	// immediately. Any other concern must be gone for a while, because another process may still see it.
	Patient bool `json:"patient,omitempty"`
}

// Run watches until ctx is done.
func Run(ctx context.Context, c Config) error {
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	for {
		for _, s := range c.Sources {
			if !s.IsResponsible() {
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

// check checks one source once. A new concern is only recorded: owners are told once the note has been read back,
// so that processes that find the same concern at the same time tell owners under the same id.
func (c Config) check(ctx context.Context, s Source) error {
	noted, err := c.Notes.AllNoted(ctx, concernSubject)
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
	there, err := s.FindConcerns(ctx, open)
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

// handlePresent records a concern that exists now, and tells owners if it is time to. st is what the book says
// about the concern; known is false if the book says nothing.
func (c Config) handlePresent(ctx context.Context, one Concern, st state, known bool, now time.Time) error {
	if !known {
		return c.note(ctx, one.ID, state{Since: now, Patient: one.TellAfter > 0})
	}
	wasGone := !st.Gone.IsZero() // for a moment, or for a process that does not see it
	st.Gone = time.Time{}
	switch {
	case st.Told.IsZero() && now.Sub(st.Since) < one.TellAfter:
		return nil
	case st.Told.IsZero(), one.Count > st.Count && now.Sub(st.Told) >= repeatInterval:
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

// handleGone handles a concern that FindConcerns no longer reports. Once the concern has been gone for GoneFor, handleGone forgets
// it, and tells owners that it is over if they were told about it. It forgets a Patient concern that they weren't told
// about at once.
func (c Config) handleGone(ctx context.Context, s Source, id string, st state, now time.Time) error {
	switch {
	case st.Told.IsZero() && st.Patient:
		return c.Notes.SetNote(ctx, concernSubject, id, "")
	case st.Gone.IsZero():
		st.Gone = now
		return c.note(ctx, id, st)
	case now.Sub(st.Gone) < c.GoneFor:
		return nil
	}
	if text := s.EndText(id); text != "" && !st.Told.IsZero() {
		if err := c.Tell(ctx, suffix(id, st, "over"), text); err != nil {
			return err
		}
	}
	return c.Notes.SetNote(ctx, concernSubject, id, "")
}

func (c Config) note(ctx context.Context, id string, st state) error {
	raw, err := plainjson.Marshal(st)
	if err != nil {
		return fmt.Errorf("encode a concern: %w", err)
	}
	return c.Notes.SetNote(ctx, concernSubject, id, string(raw))
}

// suffix returns the suffix for the ids of messages: the same one for the same concern, but a different one if the
// concern comes back.
func suffix(id string, st state, what string) string {
	return "#concern/" + id[:min(len(id), 100)] + "/" + strconv.FormatInt(st.Since.UnixMicro(), 36) + "/" + what
}

// isFromWatch reports whether, according to its id, a message was sent by the watch.
func isFromWatch(id string) bool { return strings.Contains(id, "#concern/") }
