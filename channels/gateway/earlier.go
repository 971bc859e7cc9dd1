package gateway

import (
	"context"
	"log/slog"
	"slices"
	"time"
	"unicode/utf8"

	"parley/bus"
	"parley/channels"
)

const (
	// earlierTime is how long a message waits for what was said before it.
	earlierTime = 5 * time.Second
	// What was said before is cut to this many characters: each message, and all.
	mostOfEarlier = 1500
	mostEarlier   = 12_000
	cutMark       = " […]"
)

// withEarlier adds to a message that calls the bot into a thread what was said there
// before, as quotes. If that cannot be read the quotes say so: the message does not wait
// for long.
func (d *intake) withEarlier(ctx context.Context, in bus.Inbound) bus.Inbound {
	reader, can := channels.AsThreadReader(d.Channel)
	if !can || d.History == nil || !in.Group || in.At.Thread == "" || in.Kind != bus.Said {
		return in
	}
	most := d.History()
	if most <= 0 {
		return in
	}
	ctx, cancel := context.WithTimeout(ctx, earlierTime)
	defer cancel()
	earlier, err := reader.Before(ctx, in, most)
	if err != nil {
		d.Log.Warn("what was said before in a thread cannot be read", slog.String("channel", d.Name), slog.String("id", in.ID), slog.Any("error", err))
		earlier = []bus.Quote{{Kind: bus.Earlier, Text: "(What was said before in this thread could not be read.)"}}
	}
	in.Quotes = append(newestOf(earlier), in.Quotes...)
	return in
}

// newestOf is as much of what was said before as there is room for, the newest of it.
func newestOf(earlier []bus.Quote) []bus.Quote {
	left := mostEarlier
	first := len(earlier)
	for first > 0 {
		q := &earlier[first-1]
		if n := utf8.RuneCountInString(q.Text); n > mostOfEarlier {
			q.Text = string([]rune(q.Text)[:mostOfEarlier-len([]rune(cutMark))]) + cutMark
		}
		if left -= utf8.RuneCountInString(q.Text); left < 0 {
			break
		}
		first--
	}
	return slices.Clone(earlier[first:])
}
