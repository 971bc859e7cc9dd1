package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"

	"parley/bus"
	"parley/bus/trace"
	"parley/channels"
	"parley/channels/markup"
	"parley/tools/spelling"
)

// handlePress publishes the command of a button that somebody pressed, if they may talk to the bot; otherwise it
// returns channels.ErrNotAdmitted. In a group, a press needs no mention, because the button belongs to the bot.
// handlePress does not ask for admission, and does not record the chat as one in which people talk to the bot.
func (d *receiver) handlePress(ctx context.Context, in bus.Inbound) error {
	v, decides := readDecision(in)
	said, urgent := channels.AsCommand(in)
	if said.Kind != bus.Command && !decides {
		return nil // no button of this bot has such a text
	}
	who, ok, err := d.Gate.Judge(ctx, d.Channel, d.Pairings, in.From)
	if err != nil {
		return err
	}
	if !ok {
		d.reportRefusal(in, RuleStranger, "")
		return channels.ErrNotAdmitted
	}
	said.From = who
	if decides {
		if in.From = who; !who.Owner {
			d.explain(in, textOwnersOnly)
			return nil
		}
		return d.handleDecision(ctx, in, v)
	}
	if d.isOwnData(in, said) {
		return d.OwnData(ctx, said)
	}
	to, err := d.Route(ctx, in)
	if err == nil {
		err = d.publishTo(ctx, to, said, urgent)
		if err != nil && !bus.IsRefusal(err) {
			return err
		}
	}
	if errors.Is(err, ErrNotNow) {
		return err
	}
	if err != nil { // another attempt would fail the same way
		d.Log.Error("a press could not be taken", slog.String("channel", d.Name), slog.String("id", in.ID), slog.Any("error", err))
		d.toAdmitted.enqueueOnce(in.At.String(), explanationInterval, autoReply{key: in.ID + "#refused", to: in.At, replyTo: in.ReplyTo,
			compose: fixedText(textPressNotTaken)})
	}
	return nil
}

// handleUnaddressed handles a group message that is not addressed to the bot. If the sender may talk to the bot, it
// publishes /stop while the bot is at work there, and a command that answers an ask by its id; it ignores
// everything else.
func (d *receiver) handleUnaddressed(ctx context.Context, in bus.Inbound) error {
	said, _ := channels.AsCommand(in)
	stops, answers := said.Text == "stop" && said.Args == "", channels.AnswersAsk(said)
	if said.Kind != bus.Command || !stops && !answers {
		d.reportRefusal(in, RuleMention, "")
		return nil
	}
	who, meant, err := d.judgeUnaddressed(ctx, in, answers)
	if err != nil {
		return err
	}
	if !meant {
		d.reportRefusal(in, RuleMention, "")
		return nil
	}
	in.From = who
	return d.publish(ctx, in)
}

// judgeUnaddressed reports whether a command in a group is meant for the bot although it isn't addressed to it: its
// sender may talk to the bot, and either the bot is at work there or the command answers something that it has
// asked. It returns the sender with their rights.
func (d *receiver) judgeUnaddressed(ctx context.Context, in bus.Inbound, answers bool) (who bus.Person, meant bool, err error) {
	who, ok, err := d.Gate.Judge(ctx, d.Channel, d.Pairings, in.From)
	if err != nil || !ok {
		return who, false, err
	}
	to, err := d.Route(ctx, in)
	if errors.Is(err, ErrNotNow) {
		return who, false, err
	}
	if err != nil || answers {
		return who, err == nil, nil // without a session, the bot is not at work there
	}
	working, err := d.workingSessions(ctx, to)
	return who, len(working) > 0, err
}

// publish finds the session for an admitted person's message and puts the message on the bus; commands about a
// person's own data go to OwnData instead. If there is no session, or the bus refuses the message, the person is told
// why, and publish returns nil.
func (d *receiver) publish(ctx context.Context, in bus.Inbound) error {
	if said, _ := channels.AsCommand(in); d.isOwnData(in, said) {
		return d.OwnData(ctx, said)
	}
	to, err := d.Route(ctx, in)
	if errors.Is(err, ErrNotNow) {
		return err
	}
	if err != nil {
		d.Log.Error("message has no session", slog.String("channel", d.Name), slog.String("id", in.ID), slog.Any("error", err))
		d.reportRefusal(in, RuleNoSession, "")
		d.explain(in, textNoSession)
		return nil
	}
	if to.NamesAgent {
		in.Text = to.Text
	}
	said, urgent := channels.AsCommand(in)
	if d.isOwnData(in, said) {
		return d.OwnData(ctx, said)
	}
	if name := channels.UnknownCommand(said.Text); name != "" && !said.Group && said.Kind == bus.Said && len(said.Attachments) == 0 {
		return d.explainUnknownCommand(ctx, in, name)
	}
	d.introduce(ctx, in)
	said = d.addEarlier(ctx, said, to)
	said.Private = !said.Group
	err = d.publishTo(ctx, to, said, urgent)
	switch {
	case errors.Is(err, bus.ErrFull):
		d.reportRefusal(in, RuleFull, to.Session)
		d.explain(in, textTooManyWait(channels.CommandPrefix(d.Channel)))
		return nil
	case errors.Is(err, bus.ErrInvalid):
		d.Log.Warn("message was not valid", slog.String("channel", d.Name), slog.String("id", in.ID), slog.Any("error", err))
		d.reportRefusal(in, RuleTooLong, to.Session)
		d.explain(in, textTooLong)
		return nil
	case err != nil:
		return err
	}
	if err := d.noteChat(ctx, in, to); err != nil {
		return err
	}
	d.reactions.MarkSeen(said)
	return nil
}

// explainUnknownCommand tells a person that there is no command with that name.
func (d *receiver) explainUnknownCommand(ctx context.Context, in bus.Inbound, name string) error {
	prefix := channels.CommandPrefix(d.Channel)
	text := textUnknownCommand(markup.Verbatim(prefix + name))
	if near := spelling.Nearest(name, channels.Commands()); near != "" {
		text += textMeant(markup.Verbatim(prefix + near))
	}
	text += textSeeHelp(markup.Verbatim(prefix + "help"))
	return d.replyOwn(ctx, bus.Outbound{ID: bus.DerivedID(in.ID, "#unknown"), To: in.At, ReplyTo: in.ReplyTo, Text: text, At: d.Now()})
}

// isOwnData reports whether a message is a command for OwnData.
func (d *receiver) isOwnData(in, said bus.Inbound) bool {
	return d.OwnData != nil && (in.Kind == bus.Said || in.Kind == "") && channels.IsOwnData(said)
}

// publishTo publishes what somebody said to its session. /stop goes to every session that is at work in that place,
// unless it names an agent.
func (d *receiver) publishTo(ctx context.Context, to RouteResult, said bus.Inbound, urgent bool) error {
	keys := []string{to.Session}
	if said.Kind == bus.Command && said.Text == "stop" && !to.NamesAgent && len(to.OtherSessions) > 0 {
		working, err := d.workingSessions(ctx, to)
		if err != nil {
			return err
		}
		if len(working) > 0 {
			keys = working
		}
	}
	for _, key := range keys {
		if err := bus.PublishInbound(ctx, d.Bus, key, forSession(to, key, said), urgent); err != nil {
			return err
		}
	}
	if !said.Received.IsZero() {
		d.Trace.Record(trace.Received(said, to.Session, d.Now()))
	}
	return nil
}

// forSession returns a message in the form in which one of several sessions receives it. The bus accepts an id only
// once, so for any session other than the message's own, the id is changed.
func forSession(to RouteResult, key string, in bus.Inbound) bus.Inbound {
	if key != to.Session {
		in.ID = bus.DerivedID(in.ID, "#"+sessionHash(key))
	}
	return in
}

// sessionHash returns twelve hexadecimal digits that identify a session's key in the id of a bus message that goes to
// several sessions. The key itself can be longer than an id may be.
func sessionHash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:6])
}

// workingSessions returns the sessions of a place that have mail, or that work without any.
func (d *receiver) workingSessions(ctx context.Context, to RouteResult) (working []string, err error) {
	for _, key := range append([]string{to.Session}, to.OtherSessions...) {
		has, err := d.Bus.HasMail(ctx, bus.InboundTopic, key)
		if err != nil {
			return nil, fmt.Errorf("look whether a session is at work: %w", err)
		}
		if has || d.worksWithoutMail(ctx, key) {
			working = append(working, key)
		}
	}
	return working, nil
}

// noteChat records the address at which somebody talked to the bot, at most once an hour for each address. The
// message is already durable, so if that fails, the next message records the address. In a group's thread, however,
// this record is what allows later messages to do without a mention. So there noteChat returns the error, and the
// message is passed on again.
//
// A message that names its agent in a thread assigns the thread to that agent, until another one is named. That is
// recorded each time.
func (d *receiver) noteChat(ctx context.Context, in bus.Inbound, to RouteResult) error {
	at, assigns := in.At.String(), to.NamesAgent && in.At.Thread != ""
	if !d.notedChats.add(at, d.Now()) && !assigns {
		return nil
	}
	seen := in.SentAt
	if seen.IsZero() {
		seen = d.Now()
	}
	chat := channels.Chat{Address: in.At, Session: to.Session, Group: in.Group, Name: in.ChatName, Seen: seen}
	if !in.Group {
		chat.Person, chat.Name = in.From.ID, in.From.Name
		d.noteName(ctx, in.From)
	}
	note := d.Chats.RecordChat
	if assigns {
		note = d.Chats.AssignSession
	}
	err := note(ctx, chat)
	if err == nil {
		return nil
	}
	d.notedChats.forget(at)
	d.Log.Warn("chat was not noted", slog.String("channel", d.Name), slog.String("id", in.ID), slog.Any("error", err))
	if assigns || in.Group && in.At.Thread != "" {
		return fmt.Errorf("note the thread of message %s: %w", in.ID, err)
	}
	return nil
}
