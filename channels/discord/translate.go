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

const maxQuote = 4096 // the maximum length of a quoted text, in bytes

// A translator translates what Discord delivers into messages for the agent.
type translator struct {
	name        string // the channel's name
	book        Book
	mention     channels.MentionIn
	unaddressed *channels.Unaddressed // is told of messages that are not passed on
	markPattern *regexp.Regexp        // finds Discord's marks, such as <@id>, in a text
	directory   *directory
}

// messageInbound translates a message into what the agent gets. It returns false if the message is not meant for
// the bot; then only its id and address matter. What looks like a command is returned even if it isn't meant for the
// bot, with Mentioned false. It fails if that can't be found out now.
func (t *translator) messageInbound(ctx context.Context, m *message) (bus.Inbound, bool, error) {
	me := t.directory.botUser()
	p, err := t.directory.findPlace(ctx, m.Channel)
	if err != nil {
		return bus.Inbound{}, false, err
	}
	in := bus.Inbound{
		ID: t.messageID(me.ID, m.Channel, m.ID), Kind: bus.Said, At: t.replyAddress(p), Group: p.isGroup(), SentAt: snowflakeTime(m.ID),
		From: bus.Person{ID: t.personID(m.Author.ID), Name: displayName(m.Author, m.Member)},
	}
	called := t.directory.mentionsBot(m)
	concerns := true
	if in.Group {
		in.ReplyTo = m.ID
		in.Mentioned, concerns, err = t.concernsBot(ctx, m, in, called)
	} else {
		in.Mentioned = true
	}
	if err != nil || !concerns {
		return in, false, err
	}
	in.Text, in.Called = t.typedText(m, called), called && t.withoutOwnName(m.Content) != m.Content
	if m.RepliedTo != nil && m.Reference != nil {
		in.Answers = m.Reference.Message
	}
	in.Quotes = t.quotes(m)
	in.Attachments = attachments(m)
	return in, true, nil
}

// concernsBot judges a message that others can read too: mentioned is true if the message is addressed to the bot,
// concerns if it must be passed on at all.
func (t *translator) concernsBot(ctx context.Context, m *message, in bus.Inbound, called bool) (mentioned, concerns bool, err error) {
	switch holds := t.mention.In(in.At.Chat); {
	case holds == channels.MentionNowhere:
		return false, false, nil
	case called || holds == channels.MentionNever:
		return true, true, nil
	case in.At.Thread != "" && holds == channels.MentionThreads:
		since, joined, err := t.book.TalkedSince(ctx, in.At)
		// Messages from before the bot joined the thread were meant for people.
		if err != nil || joined && !in.SentAt.Before(since) {
			return true, true, err //nolint:wrapcheck // the book's own error says enough
		}
	}
	// A command may still be meant for the bot: to stop it, or to answer its question.
	return false, strings.HasPrefix(m.Content, "/"), nil
}

// typedText returns a message's text as the person would have typed it: with names instead of ids and, if the
// message calls the bot (called), without the bot's name at the beginning. Stickers and polls are put into words.
func (t *translator) typedText(m *message, called bool) string {
	text := m.Content
	if called {
		text = t.withoutOwnName(text)
	}
	text = asCommand(strings.TrimSpace(t.resolveMarks(text, m)), called)
	text = strings.TrimSpace(describeExtras(m) + " " + text)
	if text == "" && called && !m.isForward() && len(m.Attachments) == 0 {
		return "@" + t.directory.botUser().Username
	}
	return text
}

// withoutOwnName removes a mention of the bot, and the punctuation after it, from the beginning of a text.
func (t *translator) withoutOwnName(text string) string {
	rest := strings.TrimLeftFunc(text, unicode.IsSpace)
	found := t.markPattern.FindStringSubmatchIndex(rest)
	if found == nil || found[0] != 0 {
		return text
	}
	kind, id := rest[found[2]:found[3]], rest[found[4]:found[5]]
	own := (kind == "@" || kind == "@!") && id == t.directory.botUser().ID || kind == "@&" && t.directory.isBotRole(id)
	if !own {
		return text
	}
	return strings.TrimLeft(rest[found[1]:], ",:; \t\n")
}

// asCommand turns a word such as "stop", alone after the bot's name, into the "/stop" that the gateway reads. It
// returns other texts unchanged. called says that the text had the bot's name in front.
func asCommand(text string, called bool) string {
	if !called {
		return text
	}
	switch word := strings.ToLower(text); word {
	case "stop", "status", "new", "help":
		return "/" + word
	}
	return text
}

// newMarkPattern returns the pattern of the marks that Discord uses for a person, a role, a channel, a server's own
// emoji, a time, or a command.
func newMarkPattern() *regexp.Regexp {
	return regexp.MustCompile(`<(@!?|@&|#|a?:\w+:|t:|/[^:<>]+:)(-?\d+)(?::[tTdDfFRsS])?>`)
}

// resolveMarks replaces Discord's marks, which contain ids, by the words that people see.
func (t *translator) resolveMarks(text string, m *message) string {
	if !strings.Contains(text, "<") {
		return text
	}
	return t.markPattern.ReplaceAllStringFunc(text, func(all string) string {
		parts := t.markPattern.FindStringSubmatch(all)
		kind, id := parts[1], parts[2]
		switch {
		case kind == "@" || kind == "@!":
			return "@" + t.mentionedName(id, m)
		case kind == "@&":
			return "@" + cmp.Or(markup.OneLine(t.directory.roleName(id), maxName), id)
		case kind == "#":
			return "#" + cmp.Or(markup.OneLine(t.directory.placeName(id), maxName), id)
		case kind == "t:":
			seconds, err := strconv.ParseInt(id, 10, 64)
			if err != nil || seconds < -1e11 || seconds > 1e11 {
				return all
			}
			return time.Unix(seconds, 0).UTC().Format(time.RFC3339)
		case strings.HasPrefix(kind, "/"):
			return strings.TrimSuffix(kind, ":")
		}
		return kind[strings.Index(kind, ":"):] // an emoji's :name:
	})
}

// mentionedName returns the name of a user that a message mentions; the id if the message does not contain the
// name.
func (t *translator) mentionedName(id string, m *message) string {
	if me := t.directory.botUser(); id == me.ID {
		return me.Username
	}
	i := slices.IndexFunc(m.Mentions, func(u *user) bool { return u != nil && u.ID == id })
	if i < 0 {
		return id
	}
	return displayName(m.Mentions[i], m.Mentions[i].Member)
}

// displayName returns the name that people see for a user, on one line; in is the user's membership in the server,
// nil outside of servers.
func displayName(u *user, in *member) string {
	if in != nil {
		if name := markup.OneLine(in.Nick, maxName); name != "" {
			return name
		}
	}
	return cmp.Or(markup.OneLine(u.GlobalName, maxName), markup.OneLine(u.Username, maxName), u.ID)
}

// describeExtras describes a message's stickers and poll, in brackets; "" if it has neither.
func describeExtras(m *message) string {
	var all []string
	for _, s := range m.Stickers {
		all = append(all, bracketed("sticker", s.Name))
	}
	if m.Poll != nil {
		all = append(all, bracketed("poll", m.Poll.Question.Text))
	}
	return strings.Join(all, " ")
}

// bracketed returns "[kind: called]" on one line, or "[kind]" if called is empty.
func bracketed(kind, called string) string {
	if called = markup.OneLine(called, 200); called == "" {
		return "[" + kind + "]"
	}
	return "[" + kind + ": " + called + "]"
}

// maxQuotes is the maximum number of forwarded messages in one message that reach the agent.
const maxQuotes = 10

// quotes returns what a message contains that its sender did not write: the messages that it forwards, but no more than
// maxQuotes, and the one that it replies to.
func (t *translator) quotes(m *message) []bus.Quote {
	var all []bus.Quote
	for _, s := range m.Snapshots {
		if s.Message == nil || len(all) == maxQuotes {
			continue
		}
		// Discord does not say who wrote a forwarded message.
		q := bus.Quote{Kind: bus.Forwarded, At: s.Message.At, Text: t.quotedText(s.Message)}
		if m.Reference != nil && m.Reference.Channel != m.Channel {
			q.Chat = markup.OneLine(t.directory.placeName(m.Reference.Channel), maxName)
		}
		all = append(all, q)
	}
	if a := m.RepliedTo; a != nil {
		q := bus.Quote{Kind: bus.Answered, At: a.At, Text: t.quotedText(a)}
		if a.Author != nil {
			q.From = bus.Person{ID: t.personID(a.Author.ID), Name: displayName(a.Author, nil)}
		}
		if q.Text != "" {
			all = append(all, q)
		}
	}
	return all
}

// quotedText returns what a quoted message contains: the names of its files, then its text. It is cut after
// maxQuote bytes.
func (t *translator) quotedText(m *message) string {
	var files []string
	for _, a := range m.Attachments {
		if a != nil {
			files = append(files, bracketed("file", a.Filename))
		}
	}
	text := strings.TrimSpace(strings.Join(append(files, describeExtras(m), t.resolveMarks(m.Content, m)), " "))
	if len(text) <= maxQuote {
		return text
	}
	return strings.ToValidUTF8(text[:maxQuote], "") + "…"
}

// messageID returns a message's id on the bus. It never changes, however often Discord delivers the message.
func (t *translator) messageID(me, channel, message string) string {
	return t.name + ":" + me + ":" + channel + ":" + message
}

// personID returns a Discord user's id on the bus: CHANNEL:USER.
func (t *translator) personID(user string) string { return t.name + ":" + user }

// replyAddress returns the address to which a reply to a message in that place goes. Discord treats a thread as a
// channel of its own; on the bus, it is a thread in its parent channel.
func (t *translator) replyAddress(p place) bus.Address {
	if p.isThread() && p.Parent != "" {
		return bus.Address{Channel: t.name, Chat: p.Parent, Thread: p.ID}
	}
	return bus.Address{Channel: t.name, Chat: p.ID}
}

// reactionInbound translates a person's reaction into what the agent gets.
func (t *translator) reactionInbound(ctx context.Context, n *laneItem) (bus.Inbound, error) {
	r, me := n.reaction, t.directory.botUser().ID
	p, err := t.directory.findPlace(ctx, r.Channel)
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
		ID:   t.messageID(me, r.Channel, strings.Join([]string{"reaction", r.Message, r.User, emoji, done}, ":")),
		Kind: bus.Reacted, Of: t.messageID(me, r.Channel, r.Message), Reaction: emoji, Removed: n.removed, Mentioned: true,
		At: t.replyAddress(p), Group: r.Guild != "", From: bus.Person{ID: t.personID(r.User)},
	}
	if r.Member != nil && r.Member.User != nil {
		in.From.Name = displayName(r.Member.User, &r.Member.member)
	}
	return in, nil
}
