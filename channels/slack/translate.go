package slack

import (
	"cmp"
	"context"
	"html"
	"strings"
	"unicode"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/channels/slack/files"
)

// maxNames bounds how many users that a text mentions are looked up.
const maxNames = 10

// at is where the answer to a message goes. In a channel that is the message's
// thread; the answer begins one if there is none.
func (c *Channel) at(m *message) bus.Address {
	at := bus.Address{Channel: c.name, Chat: m.Channel}
	switch {
	case m.isReply():
		at.Thread = m.ThreadTS
	case m.isGroup():
		at.Thread = m.TS
	}
	return at
}

// id names a message for good. Event ids do not: Slack sends several events for one
// message.
func (c *Channel) id(m *message, me Account) string {
	return c.name + ":" + me.Team + ":" + m.Channel + ":" + m.TS
}

// inbound makes the bus's message of a Slack message; false if it is not meant for
// the bot. Its error means that the book cannot tell now whether it is.
func (c *Channel) inbound(ctx context.Context, m *message, me Account) (bus.Inbound, bool, error) {
	in := bus.Inbound{
		ID: c.id(m, me), Kind: bus.Said, At: c.at(m), Group: m.isGroup(), ReplyTo: m.TS, SentAt: moment(m.TS),
		From: bus.Person{ID: c.name + ":" + m.User},
	}
	called := m.mentions(me.User)
	holds := channels.MentionNever
	if in.Group {
		holds = c.mention.In(m.Channel)
	}
	in.Mentioned = called || holds == channels.MentionNever
	if !in.Mentioned {
		since, joined, err := c.joins.Joined(ctx, in.At)
		// Replies from before the bot joined the thread were said among people.
		if err != nil || !joined || in.SentAt.Before(since) {
			return bus.Inbound{}, false, err
		}
		if in.Mentioned = holds == channels.MentionThreads; !in.Mentioned && !strings.HasPrefix(m.Text, commandPrefix) {
			return bus.Inbound{}, false, nil // a command may still be for it: to stop, or to answer what it asks
		}
	}
	in.From.Name = cmp.Or(c.people.name(ctx, m.User), m.User) // the id, so that the model can tell two people apart
	in.Text = c.words(ctx, m, me, called)
	in.Quotes = c.quotes(ctx, m, me)
	in.Attachments = files.Attachments(m.Files)
	for _, a := range m.Attachments {
		if a.isMessage() {
			in.Attachments = append(in.Attachments, files.Attachments(a.Files)...)
		}
	}
	return in, true, nil
}

// author is who wrote a message; apps that have no user have no id either.
func (c *Channel) author(ctx context.Context, m *message) bus.Person {
	if m.User == "" {
		return bus.Person{}
	}
	return bus.Person{ID: c.name + ":" + m.User, Name: cmp.Or(c.people.name(ctx, m.User), m.User)}
}

// changed is the news of a change, for the session in which the message was said.
func (c *Channel) changed(ctx context.Context, what change, me Account) bus.Inbound {
	m := what.of
	of := c.id(m, me)
	in := bus.Inbound{
		ID: of + "#" + what.kind + "/" + what.id, Kind: what.kind, Of: of, At: c.at(m), Group: m.isGroup(), Mentioned: true, ReplyTo: m.TS,
		From: bus.Person{ID: c.name + ":" + m.User}, SentAt: moment(what.id),
	}
	if what.kind == bus.Edited {
		in.From.Name = cmp.Or(c.people.name(ctx, m.User), m.User)
		in.Text = c.words(ctx, m, me, m.mentions(me.User))
		in.Quotes, in.Attachments = c.quotes(ctx, m, me), files.Attachments(m.Files)
	}
	return in
}

// words is a message's text as a person would have typed it.
func (c *Channel) words(ctx context.Context, m *message, me Account, called bool) string {
	text := uncalled(m.Text, me.User)
	text = strings.TrimSpace(markup.WithEmoji(c.plain(ctx, text, me)))
	text = command(text, called)
	if text == "" && len(m.Files) == 0 && !m.shares() {
		text = "@" + me.Username
	}
	return strings.TrimSpace(named(m.Files) + " " + text)
}

// named lists the names of files.
func named(shared []files.File) string {
	var all []string
	for _, f := range shared {
		name := cmp.Or(markup.OneLine(f.Name, 200), markup.OneLine(f.Title, 200))
		if name == "" {
			all = append(all, "[file]")
			continue
		}
		all = append(all, "[file: "+name+"]")
	}
	return strings.Join(all, " ")
}

// uncalled removes the bot's name from the beginning of a text.
func uncalled(text, me string) string {
	rest := strings.TrimLeftFunc(text, unicode.IsSpace)
	after, ok := strings.CutPrefix(rest, "<@"+me)
	if !ok {
		return text
	}
	end := strings.IndexByte(after, '>')
	if end != 0 && !strings.HasPrefix(after, "|") {
		return text
	}
	return strings.TrimLeft(after[end+1:], ",:; \t\n")
}

// CommandPrefix implements channels.Prefixer.
func (*Channel) CommandPrefix() string { return commandPrefix }

const commandPrefix = "!"

// command turns "!stop", and "stop" alone behind the bot's name, into the "/stop"
// that the Gateway reads. Slack takes messages that begin with a slash for its own
// commands.
func command(text string, called bool) string {
	word, rest := text, ""
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		word, rest = text[:i], text[i:]
	}
	marked := strings.HasPrefix(word, commandPrefix)
	word = strings.ToLower(strings.TrimPrefix(word, commandPrefix))
	if !marked && (!called || rest != "") {
		return text
	}
	switch word {
	case "stop", "status", "new", "help":
		return "/" + word + rest
	case "approve", "deny", "answer", "forget", "export", "memory", "link", "undo", "usage", "compact", "context": // are words that people say, too
		if marked {
			return "/" + word + rest
		}
	case "start": // comes before an owner's code
		if marked {
			return "/" + word + rest
		}
	}
	return text
}

// plain resolves Slack's <…> references and HTML entities.
func (c *Channel) plain(ctx context.Context, text string, me Account) string {
	var b strings.Builder
	for names := 0; ; {
		i := strings.IndexByte(text, '<')
		if i < 0 {
			break
		}
		end := strings.IndexByte(text[i:], '>')
		if end < 0 {
			break
		}
		b.WriteString(html.UnescapeString(text[:i]))
		ref := text[i+1 : i+end]
		if strings.HasPrefix(ref, "@") && !strings.Contains(ref, "|") {
			if names++; names > maxNames {
				ref += "|" + ref[1:] // labelled with the id, so that it is not looked up
			}
		}
		b.WriteString(c.reference(ctx, ref, me))
		text = text[i+end+1:]
	}
	b.WriteString(html.UnescapeString(text))
	return b.String()
}

// reference turns what Slack wrote between < and > into what people see.
func (c *Channel) reference(ctx context.Context, ref string, me Account) string {
	what, label, _ := strings.Cut(ref, "|")
	label = html.UnescapeString(label)
	switch {
	case what == "":
		return ""
	case what[0] == '@':
		user := what[1:]
		if user == me.User {
			return "@" + me.Username
		}
		if label == "" {
			label = c.people.name(ctx, user)
		}
		if label == "" {
			label = user
		}
		return "@" + strings.TrimPrefix(label, "@")
	case what[0] == '#':
		if label == "" {
			label = what[1:]
		}
		return "#" + label
	case what[0] == '!':
		if label != "" {
			return label
		}
		special, about, _ := strings.Cut(what[1:], "^")
		if special == "subteam" && about != "" {
			return "@" + about // a user group's id: the message has no name for it
		}
		return "@" + special
	}
	url := html.UnescapeString(what)
	bare := strings.TrimPrefix(strings.TrimPrefix(url, "mailto:"), "tel:")
	if label == "" || label == bare || "http://"+label == url || "https://"+label == url {
		return bare
	}
	return label + " (" + url + ")"
}

// maxQuotes bounds how many forwarded messages of one message are passed on.
const maxQuotes = 10

// quotes returns the messages that m forwards.
func (c *Channel) quotes(ctx context.Context, m *message, me Account) []bus.Quote {
	var all []bus.Quote
	for _, a := range m.Attachments {
		if !a.isMessage() || len(all) == maxQuotes {
			continue
		}
		q := bus.Quote{
			Kind: bus.Forwarded, Chat: markup.OneLine(cmp.Or(a.ChannelName, a.ChannelID), maxName), At: moment(a.TS),
			Text: strings.TrimSpace(named(a.Files) + " " + markup.WithEmoji(c.plain(ctx, cmp.Or(a.Text, a.Fallback), me))),
		}
		q.From.Name = markup.OneLine(a.AuthorName, maxName)
		if a.AuthorID != "" {
			q.From.ID = c.name + ":" + a.AuthorID
			q.From.Name = cmp.Or(q.From.Name, c.people.name(ctx, a.AuthorID))
		}
		all = append(all, q)
	}
	return all
}
