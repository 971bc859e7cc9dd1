package gateway

import (
	"context"
	"strconv"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

// verdict is what a reaction says of an answer; false if it says nothing of the kind.
// Thumbs come in colours.
func verdict(reaction string) (good, ok bool) {
	thumb := strings.TrimRight(reaction, "\U0001F3FB\U0001F3FC\U0001F3FD\U0001F3FE\U0001F3FF\uFE0F")
	return thumb == "👍", thumb == "👍" || thumb == "👎"
}

// A person's reactions other than thumbs are told of so many in a while.
const (
	mostReactions  = 5
	reactionsEvery = 10 * time.Minute
)

// takeReaction keeps what somebody who may talk to the bot thinks of an answer, and
// forgets it where they take it back; the session hears of it. Of other reactions it hears
// where that is set, and else they are passed over.
func (d *intake) takeReaction(ctx context.Context, in bus.Inbound) error {
	good, ok := verdict(in.Reaction)
	if d.Ratings == nil || !ok && (d.AllReactions == nil || !d.AllReactions()) {
		return nil
	}
	if _, admitted, err := d.Gate.admits(ctx, d.Channel, d.Pairings, in.From); err != nil || !admitted {
		return err
	}
	r := channels.Rating{
		Person: in.From.ID, At: bus.Address{Channel: in.At.Channel, Chat: in.At.Chat}, Message: in.Of[strings.LastIndexByte(in.Of, ':')+1:],
		Good: good, Rated: in.SentAt,
	}
	if !ok {
		return d.takeOtherReaction(ctx, in, r)
	}
	if in.Removed {
		return d.Ratings.Unrate(ctx, r)
	}
	if r.Rated.IsZero() {
		r.Rated = d.Now().UTC().Truncate(time.Microsecond)
	}
	kept, changed, err := d.Ratings.Rate(ctx, r)
	if err != nil || kept.Session == "" {
		return err
	}
	if changed && d.Rated != nil {
		d.Rated(good)
	}
	in.At = kept.At
	return d.tell(ctx, kept.Session, in)
}

// takeOtherReaction has the session of an answer hear of a reaction that is no thumb.
func (d *intake) takeOtherReaction(ctx context.Context, in bus.Inbound, r channels.Rating) error {
	answer, known, err := d.Ratings.Rated(ctx, r)
	if err != nil || !known {
		return err
	}
	for n := range mostReactions {
		if d.reacted.add(in.From.ID+" "+strconv.Itoa(n), d.Now()) {
			in.At, in.Reaction = answer.At, markup.OneLine(in.Reaction, mostReaction)
			return d.tell(ctx, answer.Session, in)
		}
	}
	return nil
}

// mostReaction bounds the name of an emoji, which people choose for their own.
const mostReaction = 40
