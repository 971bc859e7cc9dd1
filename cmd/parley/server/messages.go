package server

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"

	"parley/bus"
	"parley/channels/markup"
	"parley/cmd/parley/events"
	"parley/cmd/parley/handover"
	"parley/cmd/parley/heartbeat"
	"parley/cmd/parley/outbox"
	"parley/tools"
	"parley/tools/message"
)

// deliver sends a message for which the model has called the tool "message". The message may go
// to the conversation itself, the chat in which the person who asks was paired, and what the
// agent's may_message lists.
func (s *Server) deliver(ctx context.Context, l message.Letter) error {
	l.Content = s.guard.Load().redact.Text(l.Content)
	if markup.Blank(l.Content) && len(l.Files) == 0 {
		return tools.Errorf(tools.InvalidArgs, "nothing of the content can be seen: give a text that has something to read")
	}
	to, failed := s.addresses(l)
	if failed != nil {
		return failed
	}
	var reach []string
	err := retryUntilDone(ctx, func() (err error) {
		reach, err = s.allowedAddresses(ctx, l)
		return err
	})
	if err != nil {
		return err
	}
	for _, a := range to {
		if !slices.Contains(reach, a.String()) {
			return tools.Errorf(tools.PermissionDenied, "%s may not be messaged on behalf of %s. These may be: %s.", requestedPlace(l), l.Person, strings.Join(reach, ", "))
		}
	}
	outs := make([]bus.Outbound, len(to))
	for i, a := range to {
		id := l.ID
		if i > 0 {
			id = fmt.Sprintf("%s/%d", l.ID, i)
		}
		outs[i] = outboundFor(l, id, a)
	}
	if err := s.enclose(ctx, l, outs); err != nil {
		return err
	}
	for _, out := range outs {
		if err := s.publishOutbound(ctx, out); err != nil {
			return err
		}
	}
	if l.Attempt > 1 && len(l.Files) > 0 {
		if err := s.outgoing().ReleaseSent(ctx, s.home.Book, outs); err != nil {
			s.log.Warn("files that were sent already are removed later", slog.String("call", l.ID), slog.Any("error", err))
		}
	}
	return nil
}

// publishOutbound publishes a message. If the bus may have the message although it has returned
// an error, the error has the code OutcomeUnknown, which tells the model so.
func (s *Server) publishOutbound(ctx context.Context, out bus.Outbound) error {
	err := retryUntilDone(ctx, func() error { return bus.PublishOutbound(ctx, s.home.Bus, out) })
	if bus.IsRefusal(err) {
		return fmt.Errorf("%s cannot be messaged now: %w", out.To, err)
	}
	if err != nil { // the bus may have it
		return tools.Errorf(tools.OutcomeUnknown, "OUTCOME UNKNOWN: the message to %s may or may not be on its way. Do not send it again unless you know that it did not arrive.", out.To)
	}
	return nil
}

// outboundFor returns the message that one address gets. In another chat than the
// conversation itself the message names the person who asked for it and quotes their
// words, so that nobody takes these for the bot's own.
func outboundFor(l message.Letter, id string, to bus.Address) bus.Outbound {
	out := bus.Outbound{ID: id, To: to, Text: l.Content, Session: l.Session, Turn: l.Turn, At: time.Now()}
	if to.String() == l.From {
		return out
	}
	from, _ := bus.ParseAddress(l.From)
	who := bus.Person{ID: l.Person, Name: l.Called, Owner: l.Owner}
	if out.Text = onBehalf(who, from, "tell you"); markup.Blank(l.Content) {
		out.Text = onBehalf(who, from, "send you this")
	} else {
		out.Text += "\n\n" + quoteMarkdown(l.Content)
	}
	out.Told = &bus.Telling{For: who, At: from, Words: l.Content}
	return out
}

// onBehalf says, for the people who get a message, who has asked the bot to send it. Only the id
// proves who that is, so the name is written such that it can be taken neither for an id nor for
// words of the bot.
func onBehalf(who bus.Person, from bus.Address, what string) string {
	id := codeSpan(who.ID)
	if name := plainName(who.Name); name != "" {
		id = name + " (" + id + ")"
	}
	if who.ID == from.Channel+":"+from.Chat { // a chat of that person and the bot
		return id + " asks me to " + what + ":"
	}
	return id + " asks me, in " + codeSpan(bus.Address{Channel: from.Channel, Chat: from.Chat}.String()) + ", to " + what + ":"
}

// codeSpan returns an id as Markdown code, so that it is shown as it is.
func codeSpan(id string) string {
	return "`" + strings.Map(func(r rune) rune {
		if r == '`' || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, id) + "`"
}

// longestName is how many characters of a person's name are shown.
const longestName = 40

// plainName removes from a person's name what could be read as Markdown, as a mention of
// somebody, or as more than a name.
func plainName(name string) string {
	kept := []rune(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsMark(r), unicode.IsDigit(r), strings.ContainsRune("'-.", r):
			return r
		case unicode.IsSpace(r), r == '_':
			return ' '
		}
		return -1
	}, name))
	shown := strings.Join(strings.Fields(string(kept[:min(len(kept), longestName)])), " ")
	return strings.TrimLeftFunc(shown, func(r rune) bool { return !unicode.IsLetter(r) })
}

// quoteMarkdown returns a text as a Markdown quote.
func quoteMarkdown(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimSpace(text))
	return "> " + strings.ReplaceAll(text, "\n", "\n> ")
}

// replySession returns the session to which a reply at an address would belong; "" where no
// agent listens.
func (s *Server) replySession(ctx context.Context, at bus.Address) (session string, err error) {
	if len(s.models) == 0 && s.settings.Load().Bus.URL == "" { // in a fleet the workers have the model
		return "", nil
	}
	if at.Channel == events.Name {
		session, _ = s.events.Session(at) // an address that none has
		return session, nil
	}
	if at.Channel == heartbeat.Name {
		session, _ = heartbeat.Session(at)
		return session, nil
	}
	for _, l := range s.channels {
		if l.name != at.Channel || !l.receive && l.config.Platform != "" {
			continue
		}
		return s.router(l).ReplySession(ctx, at)
	}
	return "", nil
}

// addresses returns the addresses for the place to which the model wants to send: a target, or a
// channel and a chat.
func (s *Server) addresses(l message.Letter) ([]bus.Address, *tools.Error) {
	c := s.settings.Load()
	directory := outbox.Directory{Targets: c.Targets}
	for _, known := range s.channels {
		directory.Channels = append(directory.Channels, known.name)
	}
	name := requestedPlace(l)
	if _, ok := c.Targets[l.Channel]; ok {
		name = l.Channel // whatever else was named
	}
	to, err := directory.Find(name)
	switch {
	case err == nil:
		return to, nil
	case slices.Contains(directory.Channels, l.Channel) && l.Chat == "":
		return nil, tools.Errorf(tools.InvalidArgs, "chat_id is missing: name the chat on %s.", l.Channel)
	case slices.Contains(directory.Channels, l.Channel):
		return nil, tools.Errorf(tools.InvalidArgs, "%v.", err)
	}
	names := directory.Channels
	for _, entry := range s.mayMessage(l.Session) {
		if _, ok := c.Targets[entry]; ok {
			names = append(names, entry)
		}
	}
	slices.Sort(names)
	return nil, tools.Errorf(tools.InvalidArgs, "there is no channel or target %q. There are: %s.", l.Channel, strings.Join(names, ", "))
}

// mayMessage returns the targets and addresses to which the agent of a session may send messages:
// if it is a sub-agent, only those to which the agent that handed it the task may send, too.
func (s *Server) mayMessage(session string) []string {
	agents := s.settings.Load().Agents
	own := agents[agentName(session)].MayMessage
	if !handover.IsSubAgent(session) {
		return own
	}
	above := agents[agentName(s.parentOf(session))].MayMessage
	return slices.DeleteFunc(slices.Clone(own), func(place string) bool { return !slices.Contains(above, place) })
}

// requestedPlace returns the place as the model gave it.
func requestedPlace(l message.Letter) string {
	if l.Chat == "" {
		return l.Channel
	}
	return l.Channel + ":" + l.Chat
}

// allowedAddresses lists the addresses that a turn may send to, its own first. Of the
// chats in which people were paired it has the one of the person who asks, and no other.
func (s *Server) allowedAddresses(ctx context.Context, l message.Letter) ([]string, error) {
	reach := []string{l.From}
	c := s.settings.Load()
	for _, entry := range s.mayMessage(l.Session) {
		if to, ok := c.Targets[entry]; ok {
			for _, a := range to {
				reach = append(reach, a.String())
			}
			continue
		}
		reach = append(reach, entry)
	}
	paired, ok, err := s.home.Book.Paired(ctx, l.Person)
	if err != nil {
		return nil, fmt.Errorf("look up who is paired: %w", err)
	}
	if ok && paired.Chat != "" {
		reach = append(reach, paired.Chat)
	}
	slices.Sort(reach[1:])
	return slices.Compact(reach), nil
}

// retryUntilDone repeats do until it succeeds, until the bus refuses it, or until ctx ends; so it
// outlasts an outage of the bus or the store. It returns the error of the last try; if ctx has
// ended, what do does may have happened all the same.
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
