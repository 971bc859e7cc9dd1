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

// Facts are what the processes of a fleet know of a channel together. A zero time is not known.
type Facts struct {
	Bot             string // what the bot is called there
	Up              bool
	Since           time.Time // when the channel was connected, or was not any more
	LastIn, LastOut time.Time // when a message last came in or was sent, to within some seconds
}

// Notes keeps facts for all processes together; see [channels.Notes].
type Notes interface {
	SetNote(ctx context.Context, subject, about, value string) error
	AllNoted(ctx context.Context, subject string) ([]channels.Note, error)
}

// The subject under which facts are kept, and about what: this word, a space, and the channel's name.
const (
	subject  = "channel"
	ofState  = "state"
	ofIn     = "in"
	ofOut    = "out"
	keepNext = 10 * time.Second // the least time between two notes of when messages came and went
)

// Read returns the facts that are kept, by the channels' names.
func Read(ctx context.Context, notes Notes) (map[string]Facts, error) {
	kept, err := notes.AllNoted(ctx, subject)
	if err != nil {
		return nil, fmt.Errorf("read what is known of the channels: %w", err)
	}
	all := map[string]Facts{}
	for _, n := range kept {
		of, name, _ := strings.Cut(n.About, " ")
		one := all[name]
		switch of {
		case ofState:
			word, rest, _ := strings.Cut(n.Value, " ")
			since, bot, _ := strings.Cut(rest, " ")
			one.Up, one.Since, one.Bot = word == bus.StateUp, moment(since), bot
		case ofIn:
			one.LastIn = moment(n.Value)
		case ofOut:
			one.LastOut = moment(n.Value)
		}
		all[name] = one
	}
	return all, nil
}

// moment reads a time; the zero time if it is none.
func moment(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// Traffic remembers when this process last had a message of a channel.
type Traffic struct{ in, out atomic.Int64 }

// CameIn says that a message has come in now.
func (t *Traffic) CameIn() { t.in.Store(time.Now().Unix()) }

// Observe returns a function that is told how a send has ended, and tells it on.
func (t *Traffic) Observe(on func(result string, took time.Duration)) func(result string, took time.Duration) {
	return func(result string, took time.Duration) {
		if result == "sent" {
			t.out.Store(time.Now().Unix())
		}
		on(result, took)
	}
}

// Added returns the facts with what this process has had since they were kept.
func (t *Traffic) Added(to Facts) Facts {
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

// A state is what is kept of how a channel does.
type state struct {
	up    bool
	since time.Time
	bot   string
}

// text returns the state as it is kept.
func (s state) text() string {
	word := bus.StateDown
	if s.up {
		word = bus.StateUp
	}
	return strings.TrimSpace(word + " " + s.since.Format(time.RFC3339) + " " + s.bot)
}

// A keeper keeps the facts of one channel.
type keeper struct {
	Channel
	notes   Notes
	now     state // as this process knows it; zero if another process does
	kept    state
	traffic [2]int64  // what is kept of when messages came and went
	next    time.Time // not before then is that kept again
}

// keep keeps what has changed. What cannot be kept now is kept at the next look.
func (k *keeper) keep(ctx context.Context) {
	now := time.Now().UTC().Truncate(time.Second)
	if !k.Known() {
		k.now, k.kept = state{}, state{}
	} else if up := k.Up(); k.now.since.IsZero() || up != k.now.up {
		k.now.up, k.now.since = up, now
	}
	if !k.now.since.IsZero() {
		k.now.bot = k.Bot()
		if k.now != k.kept && k.notes.SetNote(ctx, subject, ofState+" "+k.Name, k.now.text()) == nil {
			k.kept = k.now
		}
	}
	if now.Before(k.next) {
		return
	}
	for i, at := range []int64{k.Traffic.in.Load(), k.Traffic.out.Load()} {
		if of := []string{ofIn, ofOut}[i]; at != k.traffic[i] && k.notes.SetNote(ctx, subject, of+" "+k.Name, asTime(at).Format(time.RFC3339)) == nil {
			k.traffic[i], k.next = at, now.Add(keepNext)
		}
	}
}
