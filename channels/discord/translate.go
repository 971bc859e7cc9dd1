package discord

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

const (
	maxName  = 64   // of what the model is shown as a name, in characters
	maxQuote = 4096 // of a quoted text, in bytes
)

// inbound is what a message says to the agent; false if it is not meant for the bot. Its
// error means that this cannot be told now.
func (c *Channel) inbound(ctx context.Context, m *message) (bus.Inbound, bool, error) {
	me := c.directory.self()
	p, err := c.directory.place(ctx, m.Channel)
	if err != nil {
		return bus.Inbound{}, false, err
	}
	in := bus.Inbound{
		ID: c.messageID(me.ID, m.Channel, m.ID), Kind: bus.Said, At: c.replyAddress(p), Group: p.group(), SentAt: momentOf(m.ID),
		From: bus.Person{ID: c.person(m.Author.ID), Name: displayName(m.Author, m.Member)},
	}
	called := c.directory.calls(m)
	concerns := true
	if in.Group {
		in.ReplyTo = m.ID
		in.Mentioned, concerns, err = c.concerns(ctx, m, in, called)
	} else {
		in.Mentioned = true
	}
	if err != nil || !concerns {
		return bus.Inbound{}, false, err
	}
	in.Text = c.words(m, called)
	in.Quotes = c.quotes(m)
	in.Attachments = attachments(m)
	return in, true, nil
}

// concerns tells whether what was said where others read along is said to the bot, and
// whether it is the bot's business at all.
func (c *Channel) concerns(ctx context.Context, m *message, in bus.Inbound, called bool) (mentioned, concerns bool, err error) {
	switch holds := c.mention.In(in.At.Chat); {
	case holds == channels.MentionNowhere:
		return false, false, nil
	case called || holds == channels.MentionNever:
		return true, true, nil
	case in.At.Thread != "" && holds == channels.MentionThreads:
		since, joined, err := c.book.Joined(ctx, in.At)
		// What was said before the bot joined the thread was said among people.
		if err != nil || joined && !in.SentAt.Before(since) {
			return true, true, err //nolint:wrapcheck // the book's own says enough
		}
	}
	// A command may be for it all the same: to stop, or to answer what it asks.
	return false, strings.HasPrefix(m.Content, "/"), nil
}

// reacted is what a reaction says to the agent.
func (c *Channel) reacted(ctx context.Context, n *news) (bus.Inbound, error) {
	r, me := n.reaction, c.directory.self().ID
	p, err := c.directory.place(ctx, r.Channel)
	if err != nil {
		return bus.Inbound{}, err
	}
	emoji, done := r.Emoji.Name, "added"
	if r.Emoji.ID != "" {
		emoji = ":" + r.Emoji.Name + ":"
	}
	if n.removed {
		done = "removed"
	}
	in := bus.Inbound{
		ID:   c.messageID(me, r.Channel, strings.Join([]string{"reaction", r.Message, r.User, emoji, done}, ":")),
		Kind: bus.Reacted, Of: c.messageID(me, r.Channel, r.Message), Reaction: emoji, Removed: n.removed, Mentioned: true,
		At: c.replyAddress(p), Group: r.Guild != "", From: bus.Person{ID: c.person(r.User)},
	}
	if r.Member != nil && r.Member.User != nil {
		in.From.Name = displayName(r.Member.User, &r.Member.member)
	}
	return in, nil
}

// words is a message's text as a person would have typed it.
func (c *Channel) words(m *message, called bool) string {
	text := m.Content
	if called {
		text = c.withoutOwnName(text)
	}
	text = command(strings.TrimSpace(c.readable(text, m)), called)
	text = strings.TrimSpace(content(m) + " " + text)
	if text == "" && called && !m.forwards() && len(m.Attachments) == 0 {
		return "@" + c.directory.self().Username
	}
	return text
}

// withoutOwnName removes the bot's name from the beginning of a text.
func (c *Channel) withoutOwnName(text string) string {
	rest := strings.TrimLeftFunc(text, unicode.IsSpace)
	found := c.marks.FindStringSubmatchIndex(rest)
	if found == nil || found[0] != 0 {
		return text
	}
	kind, id := rest[found[2]:found[3]], rest[found[4]:found[5]]
	own := (kind == "@" || kind == "@!") && id == c.directory.self().ID || kind == "@&" && c.directory.isOwnRole(id)
	if !own {
		return text
	}
	return strings.TrimLeft(rest[found[1]:], ",:; \t\n")
}

// command turns "stop" alone behind the bot's name into the "/stop" that the gateway
// reads.
func command(text string, called bool) string {
	if !called {
		return text
	}
	switch word := strings.ToLower(text); word {
	case "stop", "status", "new", "help":
		return "/" + word
	}
	return text
}

// marks finds what Discord writes for a person, a role, a channel, an emoji of a
// server's, a moment, or a command.
func marks() *regexp.Regexp {
	return regexp.MustCompile(`<(@!?|@&|#|a?:\w+:|t:|/[^:<>]+:)(-?\d+)(?::[tTdDfFRsS])?>`)
}

// readable writes what Discord marks by ids as people see it.
func (c *Channel) readable(text string, m *message) string {
	if !strings.Contains(text, "<") {
		return text
	}
	return c.marks.ReplaceAllStringFunc(text, func(all string) string {
		parts := c.marks.FindStringSubmatch(all)
		kind, id := parts[1], parts[2]
		switch {
		case kind == "@" || kind == "@!":
			return "@" + c.nameOf(id, m)
		case kind == "@&":
			return "@" + cmp.Or(markup.OneLine(c.directory.roleName(id), maxName), id)
		case kind == "#":
			return "#" + cmp.Or(markup.OneLine(c.directory.placeName(id), maxName), id)
		case kind == "t:":
			seconds, err := strconv.ParseInt(id, 10, 64)
			if err != nil || seconds < -1e11 || seconds > 1e11 {
				return all
			}
			return time.Unix(seconds, 0).UTC().Format(time.RFC3339)
		case strings.HasPrefix(kind, "/"):
			return strings.TrimSuffix(kind, ":")
		}
		return kind[strings.Index(kind, ":"):] // :name: of an emoji
	})
}

// nameOf is the name of somebody whom a message mentions.
func (c *Channel) nameOf(id string, m *message) string {
	if me := c.directory.self(); id == me.ID {
		return me.Username
	}
	i := slices.IndexFunc(m.Mentions, func(u *user) bool { return u != nil && u.ID == id })
	if i < 0 {
		return id
	}
	return displayName(m.Mentions[i], m.Mentions[i].Member)
}

// displayName is what a person is called there, fit to be shown on one line.
func displayName(u *user, in *member) string {
	if in != nil {
		if name := markup.OneLine(in.Nick, maxName); name != "" {
			return name
		}
	}
	return cmp.Or(markup.OneLine(u.GlobalName, maxName), markup.OneLine(u.Username, maxName), u.ID)
}

// content names what a message holds beside text and files, in brackets.
func content(m *message) string {
	var all []string
	for _, s := range m.Stickers {
		all = append(all, bracketed("sticker", s.Name))
	}
	if m.Poll != nil {
		all = append(all, bracketed("poll", m.Poll.Question.Text))
	}
	return strings.Join(all, " ")
}

// bracketed is a kind with what it is called, on one line.
func bracketed(kind, called string) string {
	if called = markup.OneLine(called, 200); called == "" {
		return "[" + kind + "]"
	}
	return "[" + kind + ": " + called + "]"
}

// maxQuotes bounds how many forwarded messages of one message are passed on.
const maxQuotes = 10

// quotes are the words in a message that its sender did not write: what it passes on,
// and what it answers.
func (c *Channel) quotes(m *message) []bus.Quote {
	var all []bus.Quote
	for _, s := range m.Snapshots {
		if s.Message == nil || len(all) == maxQuotes {
			continue
		}
		// Discord does not tell who wrote it.
		q := bus.Quote{Kind: bus.Forwarded, At: s.Message.At, Text: c.quoted(s.Message)}
		if m.Reference != nil && m.Reference.Channel != m.Channel {
			q.Chat = markup.OneLine(c.directory.placeName(m.Reference.Channel), maxName)
		}
		all = append(all, q)
	}
	if a := m.Answers; a != nil {
		q := bus.Quote{Kind: bus.Answered, At: a.At, Text: c.quoted(a)}
		if a.Author != nil {
			q.From = bus.Person{ID: c.person(a.Author.ID), Name: displayName(a.Author, nil)}
		}
		if q.Text != "" {
			all = append(all, q)
		}
	}
	return all
}

// quoted is the text of a quoted message, cut where it is too long.
func (c *Channel) quoted(m *message) string {
	var files []string
	for _, a := range m.Attachments {
		if a != nil {
			files = append(files, bracketed("file", a.Filename))
		}
	}
	text := strings.TrimSpace(strings.Join(append(files, content(m), c.readable(m.Content, m)), " "))
	if len(text) <= maxQuote {
		return text
	}
	return strings.ToValidUTF8(text[:maxQuote], "") + "…"
}

// IsID tells the ids of Discord, of users and of channels, from names.
func IsID(id string) bool { return isID(id) }
