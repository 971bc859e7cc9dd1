package connections

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"parley/bus"
	"parley/channels"
)

// Facts is what the processes of a fleet together know about a channel. A zero time means unknown.
type Facts struct {
	Bot             string // the bot's name there
	Up              bool
	Since           time.Time // when the channel connected, or lost its connection
	LastIn, LastOut time.Time // when a message last arrived or was sent; stored at most every ten seconds
}

// Notes stores facts for all processes; see [channels.Notes].
type Notes interface {
	SetNote(ctx context.Context, subject, about, value string) error
	AllNoted(ctx context.Context, subject string) ([]channels.Note, error)
}

// The subject of the notes with facts, and what they are about: one of these words, a space, and the channel's
// name.
const (
	channelSubject = "channel"
	aboutState     = "state"
	aboutReceived  = "in"
	aboutSent      = "out"
	noteInterval   = 10 * time.Second // the minimum time between two notes of when messages arrived and were sent
)

// Read returns the stored facts, by channel name.
func Read(ctx context.Context, notes Notes) (map[string]Facts, error) {
	kept, err := notes.AllNoted(ctx, channelSubject)
	if err != nil {
		return nil, fmt.Errorf("read what is known of the channels: %w", err)
	}
	all := map[string]Facts{}
	for _, n := range kept {
		of, name, _ := strings.Cut(n.About, " ")
		one := all[name]
		switch of {
		case aboutState:
			word, rest, _ := strings.Cut(n.Value, " ")
			since, bot, _ := strings.Cut(rest, " ")
			one.Up, one.Since, one.Bot = word == bus.StateUp, parseTime(since), bot
		case aboutReceived:
			one.LastIn = parseTime(n.Value)
		case aboutSent:
			one.LastOut = parseTime(n.Value)
		}
		all[name] = one
	}
	return all, nil
}

// parseTime parses a time; it returns the zero time if the text isn't one.
func parseTime(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// Traffic remembers when this process last received a message on a channel and last sent one.
type Traffic struct{ in, out atomic.Int64 }

// NoteReceived records that a message has just arrived.
func (t *Traffic) NoteReceived() { t.in.Store(time.Now().Unix()) }

// Observe returns a function that calls on with how a send ended, and records the time if the message was sent.
func (t *Traffic) Observe(on func(result string, took time.Duration)) func(result string, took time.Duration) {
	return func(result string, took time.Duration) {
		if result == "sent" {
			t.out.Store(time.Now().Unix())
		}
		on(result, took)
	}
}

// AddTo returns the facts, updated with what this process has received and sent since they were stored.
func (t *Traffic) AddTo(to Facts) Facts {
	if at := asTime(t.in.Load()); at.After(to.LastIn) {
		to.LastIn = at
	}
	if at := asTime(t.out.Load()); at.After(to.LastOut) {
		to.LastOut = at
	}
	return to
}

func asTime(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// A state is a channel's state as it is stored.
type state struct {
	up    bool
	since time.Time
	bot   string
}

// text returns the state in its stored form.
func (s state) text() string {
	word := bus.StateDown
	if s.up {
		word = bus.StateUp
	}
	return strings.TrimSpace(word + " " + s.since.Format(time.RFC3339) + " " + s.bot)
}

// A keeper stores the facts about one channel.
type keeper struct {
	Channel
	notes           Notes
	current         state // as this process knows it; zero if another process does
	stored          state
	traffic         [2]int64  // the stored times of the last messages received and sent
	nextTrafficNote time.Time // when those may be stored again
}

// keep stores what has changed. What can't be stored now is stored at the next check.
func (k *keeper) keep(ctx context.Context) {
	now := time.Now().UTC().Truncate(time.Second)
	if !k.Known() {
		k.current, k.stored = state{}, state{}
	} else if up := k.Up(); k.current.since.IsZero() || up != k.current.up {
		k.current.up, k.current.since = up, now
	}
	if !k.current.since.IsZero() {
		k.current.bot = k.Bot()
		if k.current != k.stored && k.notes.SetNote(ctx, channelSubject, aboutState+" "+k.Name, k.current.text()) == nil {
			k.stored = k.current
		}
	}
	if now.Before(k.nextTrafficNote) {
		return
	}
	for i, at := range []int64{k.Traffic.in.Load(), k.Traffic.out.Load()} {
		if of := []string{aboutReceived, aboutSent}[i]; at != k.traffic[i] && k.notes.SetNote(ctx, channelSubject, of+" "+k.Name, asTime(at).Format(time.RFC3339)) == nil {
			k.traffic[i], k.nextTrafficNote = at, now.Add(noteInterval)
		}
	}
}
