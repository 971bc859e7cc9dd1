package slack

import (
	"context"
	"strings"

	slackgo "github.com/slack-go/slack"

	"parley/bus"
)

// A reactor marks people's messages with reactions.
type reactor struct{ api *slackgo.Client }

// MarkSeen marks a person's message as received, with a reaction.
func (r *reactor) MarkSeen(ctx context.Context, at bus.Address, message string) error {
	return r.react(ctx, at, message, "eyes")
}

// MarkAnswered marks a person's message as answered.
func (r *reactor) MarkAnswered(ctx context.Context, at bus.Address, message string) error {
	return r.react(ctx, at, message, "white_check_mark")
}

// MarkFailed marks a person's message as one that won't be answered.
func (r *reactor) MarkFailed(ctx context.Context, at bus.Address, message string) error {
	return r.react(ctx, at, message, "warning")
}

// react adds the bot's reaction to a person's message, given its id on the bus. A slash command or a shortcut has
// no message, and gets no reaction.
func (r *reactor) react(ctx context.Context, at bus.Address, message, name string) error {
	ctx, t, done := startCall(ctx)
	defer done()
	// A message's id on the bus ends with its ts, which contains no colon.
	ts := message[strings.LastIndex(message, ":")+1:]
	if !isTS(ts) {
		return nil // it is a slash command or a shortcut, not a message
	}
	err := r.api.AddReactionContext(ctx, name, slackgo.NewRefToMessage(at.Chat, ts))
	if err == nil {
		return nil
	}
	e := asRepeatable(sendError(err, t))
	if e.Code == "already_reacted" {
		return nil
	}
	return e
}
