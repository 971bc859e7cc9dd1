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

// readThumb interprets a reaction as an opinion of an answer; ok is false if the reaction is not a thumb. Thumbs
// come in several skin colors.
func readThumb(reaction string) (good, ok bool) {
	thumb := strings.TrimRight(reaction, "\U0001F3FB\U0001F3FC\U0001F3FD\U0001F3FE\U0001F3FF\uFE0F")
	return thumb == "👍", thumb == "👍" || thumb == "👎"
}

// Sessions are told of at most maxReactions reactions (other than thumbs) by each person within reactionPeriod.
const (
	maxReactions   = 5
	reactionPeriod = 10 * time.Minute
)

// handleReaction stores the rating that a person gives an answer by a thumb, if they may talk to the bot, and tells
// the session. If the thumb is removed, it deletes the rating without telling the session. Of reactions other than
// thumbs, it only tells the session, and only if AllReactions allows that.
func (d *receiver) handleReaction(ctx context.Context, in bus.Inbound) error {
	good, ok := readThumb(in.Reaction)
	if d.Ratings == nil || !ok && (d.AllReactions == nil || !d.AllReactions()) {
		return nil
	}
	if _, admitted, err := d.Gate.Judge(ctx, d.Channel, d.Pairings, in.From); err != nil || !admitted {
		return err
	}
	r := channels.Rating{
		Person: in.From.ID, At: bus.Address{Channel: in.At.Channel, Chat: in.At.Chat}, Message: in.Of[strings.LastIndexByte(in.Of, ':')+1:],
		Good: good, Rated: in.SentAt,
	}
	if !ok {
		return d.handleOtherReaction(ctx, in, r)
	}
	if in.Removed {
		return d.Ratings.DeleteRating(ctx, r)
	}
	if r.Rated.IsZero() {
		r.Rated = d.Now().UTC().Truncate(time.Microsecond)
	}
	kept, changed, err := d.Ratings.Rate(ctx, r)
	if err != nil || kept.Session == "" {
		return err
	}
	if changed && d.OnRated != nil {
		d.OnRated(good)
	}
	in.At = kept.At
	return d.publishUpdate(ctx, kept.Session, in)
}

// handleOtherReaction tells the answer's session of a reaction that is not a thumb, unless sessions have just been
// told of maxReactions by the same person.
func (d *receiver) handleOtherReaction(ctx context.Context, in bus.Inbound, r channels.Rating) error {
	answer, known, err := d.Ratings.FindRatedAnswer(ctx, r)
	if err != nil || !known {
		return err
	}
	for n := range maxReactions {
		if d.recentReactions.add(in.From.ID+" "+strconv.Itoa(n), d.Now()) {
			in.At, in.Reaction = answer.At, markup.OneLine(in.Reaction, maxEmojiName)
			return d.publishUpdate(ctx, answer.Session, in)
		}
	}
	return nil
}

// maxEmojiName is the maximum length of an emoji's name in characters. There must be one because people choose the
// names of custom emojis.
const maxEmojiName = 40
