// Package onbehalf sends messages for agents, on behalf of the people who asked for them.
//
// onbehalf.go sends them, places.go decides where they may go, and attribution.go writes who has asked for them.
package onbehalf

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/tools"
	"parley/tools/message"
)

// Config holds what a Sender needs.
type Config struct {
	Bus bus.Bus
	// Paired returns the admission of a person, with the chat in which they were admitted to the bot.
	Paired func(ctx context.Context, person string) (channels.Pairing, bool, error)
	// Targets returns the operator's names for addresses, as configured now.
	Targets func() map[string][]bus.Address
	// Channels are the names of the channels on which messages can be sent.
	Channels []string
	// MayMessage returns the targets and addresses that a session's agent may send messages to.
	MayMessage func(session string) []string
	// KnowsPeople reports whether everybody who talks to the bot on a channel was admitted by name, or as a member
	// of the workspace. If anybody may talk to it, they are strangers to the people who read their messages.
	KnowsPeople func(channel string) bool
	// Redact removes secrets from a text.
	Redact func(text string) string
	// AttachFiles attaches a request's files to its messages.
	AttachFiles func(ctx context.Context, r message.Request, outs []bus.Outbound) error
	// Release removes the files of messages that an earlier attempt has sent.
	Release func(ctx context.Context, outs []bus.Outbound) error
	Log     *slog.Logger
}

// A Sender sends messages to other chats for agents.
type Sender struct{ cfg Config }

// New makes a Sender.
func New(c Config) *Sender { return &Sender{c} }

// Send sends a message for which the model has called the tool "message". The message may go to the conversation
// itself, to the chat in which the person who asks was paired, and to the places that the agent's may_message lists.
// If the message may be on its way although Send failed, the error has the code tools.OutcomeUnknown.
func (s *Sender) Send(ctx context.Context, r message.Request) error {
	r.Content = s.cfg.Redact(r.Content)
	if markup.IsBlank(r.Content) && len(r.Files) == 0 {
		return tools.Errorf(tools.InvalidArgs, "nothing of the content can be seen: give a text that has something to read")
	}
	to, failed := s.addresses(r)
	if failed != nil {
		return failed
	}
	var reach []string
	err := retryUntilDone(ctx, func() (err error) {
		reach, err = s.allowedAddresses(ctx, r)
		return err
	})
	if err != nil {
		return err
	}
	for _, a := range to {
		if !slices.Contains(reach, a.String()) {
			return tools.Errorf(tools.PermissionDenied, "%s may not be messaged on behalf of %s. These may be: %s.", requestedPlace(r), r.Person, strings.Join(reach, ", "))
		}
	}
	own := !r.Untrusted && s.isKnownByName(r)
	outs := make([]bus.Outbound, len(to))
	for i, a := range to {
		id := r.ID
		if i > 0 {
			id = fmt.Sprintf("%s/%d", r.ID, i)
		}
		outs[i] = outboundFor(r, id, a, own)
	}
	if err := s.cfg.AttachFiles(ctx, r, outs); err != nil {
		return err
	}
	for _, out := range outs {
		if err := s.publish(ctx, out); err != nil {
			return err
		}
	}
	if r.Attempt > 1 && len(r.Files) > 0 {
		if err := s.cfg.Release(ctx, outs); err != nil {
			s.cfg.Log.Warn("files that were sent already are removed later", slog.String("call", r.ID), slog.Any("error", err))
		}
	}
	return nil
}

// isKnownByName reports whether the person who has a message sent owns the bot, or was admitted by name or as a
// member of the workspace. Anybody else is a stranger to the people who read the message.
func (s *Sender) isKnownByName(r message.Request) bool {
	channel, _, _ := strings.Cut(r.Person, ":")
	return r.Owner || s.cfg.KnowsPeople(channel)
}

// publish publishes a message. If the bus may have the message although it returned an error, the error has the
// code OutcomeUnknown, which tells the model so.
func (s *Sender) publish(ctx context.Context, out bus.Outbound) error {
	err := retryUntilDone(ctx, func() error { return bus.PublishOutbound(ctx, s.cfg.Bus, out) })
	if bus.IsRefusal(err) {
		return fmt.Errorf("%s cannot be messaged now: %w", out.To, err)
	}
	if err != nil { // the bus may have the message
		return tools.Errorf(tools.OutcomeUnknown, "OUTCOME UNKNOWN: the message to %s may or may not be on its way. Do not send it again unless you know that it did not arrive.", out.To)
	}
	return nil
}

// retryUntilDone repeats do until it succeeds, the bus refuses it, or ctx ends; so it outlasts an outage of the bus
// or the store. It returns the error from the last attempt; if ctx has ended, do may have had its effect
// nevertheless.
func retryUntilDone(ctx context.Context, do func() error) error {
	const longest = time.Second
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, longest) {
		err := do()
		if err == nil || bus.IsRefusal(err) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}
