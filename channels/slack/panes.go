package slack

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/slack/assistant"
)

// panes fills the places that Slack gives an app outside of messages: its home, its assistant panes, and the
// indicator that it is at work.
type panes struct {
	surfaces      *assistant.Surfaces
	conversations *conversations
	joinedThreads JoinedThreads
	log           *slog.Logger
}

// Typing shows in an answer's thread that the bot is at work, and returns how long Slack shows it. Outside of
// threads, and for apps made with an older manifest, Slack has no such indicator; Typing then returns an hour, so
// that it is not called again soon.
func (p *panes) Typing(ctx context.Context, to bus.Address) (fades time.Duration, err error) {
	const notSupported = time.Hour
	if to.Thread == "" {
		return notSupported, nil
	}
	chat, err := p.conversations.chatID(ctx, to)
	if err != nil {
		return 0, err
	}
	fades, err = p.surfaces.ShowWorking(ctx, chat, to.Thread)
	if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Fault == channels.Rejected {
		return notSupported, nil
	}
	return fades, err
}

// Welcome shows a person in the app's home what the bot can do for them, and in a pane what they can ask. A pane
// shows nothing to a person who is not admitted.
func (p *panes) Welcome(ctx context.Context, opened bus.Inbound, w channels.Welcome) error {
	_, user, _ := strings.Cut(opened.From.ID, ":")
	switch {
	case opened.At.Thread == "":
		return p.surfaces.ShowHome(ctx, user, w.Text)
	case !w.Admitted:
		return nil
	}
	prompts := suggestedPrompts()
	if name, takesPart, err := p.conversations.describeChat(ctx, opened.Args); err == nil && takesPart && name != "" {
		prompts = append(prompts, promptToWrite(name))
	}
	return p.surfaces.SuggestPrompts(ctx, opened.At.Chat, opened.At.Thread, textSuggestions, prompts)
}

// beginsPane reports whether a message is the first one in an assistant pane: nobody whom the gate admits has written
// there before. It returns false if the book can't tell.
func (p *panes) beginsPane(ctx context.Context, m *message, at bus.Address) bool {
	if m.isGroup() || at.Thread == "" {
		return false
	}
	_, joined, err := p.joinedThreads.TalkedSince(ctx, at)
	return err == nil && !joined
}

// nameConversation gives the conversation in an assistant pane a title, made from its first message, if the gate
// admitted the sender of that message.
func (p *panes) nameConversation(ctx context.Context, in bus.Inbound) {
	if _, joined, err := p.joinedThreads.TalkedSince(ctx, in.At); err != nil || !joined {
		return
	}
	if err := p.surfaces.SetTitle(ctx, in.At.Chat, in.At.Thread, in.Text); err != nil {
		p.log.LogAttrs(ctx, slog.LevelDebug, "a pane could not be named", slog.Any("error", err))
	}
}
