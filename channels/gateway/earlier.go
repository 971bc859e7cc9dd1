package gateway

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley/bus"
	"parley/channels"
)

const (
	// earlierTime is how long a message waits while the thread before it is read.
	earlierTime = 5 * time.Second
	// These bound the quoted messages of the thread, in characters: each one, and all
	// together.
	maxEarlierMessage = 1500
	maxEarlierTotal   = 12_000
	cutMark           = " […]"
)

// addEarlier adds to a message that calls the bot, or another agent, into a thread the
// earlier messages of that thread, as quotes. If they cannot be read in time, the quotes say
// so.
func (d *receiver) addEarlier(ctx context.Context, in bus.Inbound, to RouteResult) bus.Inbound {
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
	another, err := d.callsAnother(ctx, in, to)
	var earlier []bus.Quote
	if err == nil {
		earlier, err = reader.Before(ctx, in, most, another)
	}
	if err != nil {
		d.Log.Warn("the earlier messages in a thread cannot be read", slog.String("channel", d.Name), slog.String("id", in.ID), slog.Any("error", err))
		earlier = []bus.Quote{{Kind: bus.Earlier, Text: textNoEarlier}}
	}
	in.Quotes = append(newestFitting(earlier), in.Quotes...)
	return in
}

// callsAnother reports whether a message names another agent than the one with whom people
// have talked in its thread until now.
func (d *receiver) callsAnother(ctx context.Context, in bus.Inbound, to RouteResult) (bool, error) {
	if !to.Named {
		return false, nil
	}
	session, err := d.Chats.SessionAt(ctx, in.At)
	was, _, _ := strings.Cut(session, ":")
	return session != "" && !strings.HasPrefix(to.Session, was+":"), err
}

// newestFitting returns as many of the earlier messages as fit, the newest ones, each cut to its
// bound.
func newestFitting(earlier []bus.Quote) []bus.Quote {
	left := maxEarlierTotal
	first := len(earlier)
	for first > 0 {
		q := &earlier[first-1]
		if n := utf8.RuneCountInString(q.Text); n > maxEarlierMessage {
			q.Text = string([]rune(q.Text)[:maxEarlierMessage-len([]rune(cutMark))]) + cutMark
		}
		if left -= utf8.RuneCountInString(q.Text); left < 0 {
			break
		}
		first--
	}
	return slices.Clone(earlier[first:])
}
