package gateway

import (
	"context"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
)

// verdict is what a reaction says of an answer; false if it says nothing of the kind.
// Thumbs come in colours.
func verdict(reaction string) (good, ok bool) {
	thumb := strings.TrimRight(reaction, "\U0001F3FB\U0001F3FC\U0001F3FD\U0001F3FE\U0001F3FF\uFE0F")
	return thumb == "👍", thumb == "👍" || thumb == "👎"
}

// takeReaction keeps what somebody who may talk to the bot thinks of an answer, and
// forgets it where they take it back; the session hears of it. Other reactions are passed over.
func (d *intake) takeReaction(ctx context.Context, in bus.Inbound) error {
	good, ok := verdict(in.Reaction)
	if !ok || d.Ratings == nil {
		return nil
	}
	if _, admitted, err := d.Gate.admits(ctx, d.Channel, d.Pairings, in.From); err != nil || !admitted {
		return err
	}
	r := channels.Rating{
		Person: in.From.ID, At: bus.Address{Channel: in.At.Channel, Chat: in.At.Chat}, Message: in.Of[strings.LastIndexByte(in.Of, ':')+1:],
		Good: good, Rated: in.SentAt,
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
