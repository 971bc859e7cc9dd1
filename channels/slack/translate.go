package slack

import (
	"cmp"
	"context"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/channels/slack/files"
	"parley/channels/slack/interaction"
)

// maxNames is the maximum number of users mentioned in one text that are looked up.
const maxNames = 10

// A translator translates what people write into what the agent gets.
type translator struct {
	name          string // the channel's configured name
	people        *people
	joinedThreads JoinedThreads
	mentionRule   channels.MentionIn
	// unaddressed is told of messages that are not passed on.
	unaddressed *channels.Unaddressed
}

// replyAddress returns the address that the answer to a message goes to. In a channel, that is the message's
// thread; if it has none, the answer begins one.
func (t *translator) replyAddress(m *message) bus.Address {
	at := bus.Address{Channel: t.name, Chat: m.Channel}
	switch {
	case m.isReply():
		at.Thread = m.ThreadTS
	case m.isGroup():
		at.Thread = m.TS
	}
	return at
}

// messageID returns a message's id on the bus, which never changes. An event's id can't be used, because Slack
// sends several events for one message.
func (t *translator) messageID(m *message, me Account) string {
	return t.name + ":" + me.Team + ":" + m.Channel + ":" + m.TS
}

// messageInbound translates a message into what the agent gets. It returns false if the message is not meant for
// the bot; then only its id and address matter. What looks like a command, in a thread that the bot is in, is returned
// even if it isn't meant for the bot, with Mentioned false. It fails if the book can't tell now whether the message is
// meant for the bot.
func (t *translator) messageInbound(ctx context.Context, m *message, me Account) (bus.Inbound, bool, error) {
	in := bus.Inbound{
		ID: t.messageID(m, me), Kind: bus.Said, At: t.replyAddress(m), Group: m.isGroup(), ReplyTo: m.TS, SentAt: interaction.ParseTS(m.TS),
		From: bus.Person{ID: t.name + ":" + m.User},
	}
	called := m.mentions(me.User)
	holds := channels.MentionNever
	if in.Group {
		holds = t.mentionRule.In(m.Channel)
	}
	in.Mentioned = called || holds == channels.MentionNever
	if !in.Mentioned {
		since, joined, err := t.joinedThreads.TalkedSince(ctx, in.At)
		// Replies from before the bot joined the thread were meant for people.
		if err != nil || !joined || in.SentAt.Before(since) {
			return in, false, err
		}
		if in.Mentioned = holds == channels.MentionThreads; !in.Mentioned && !strings.HasPrefix(m.Text, commandPrefix) {
			return in, false, nil // it may still be a command for the bot: to stop, or to answer what the bot has asked
		}
	}
	in.From.Name = cmp.Or(t.people.name(ctx, m.User), m.User) // the id as the name, so that the model can tell two people apart
	in.Text, in.Called = t.typedText(ctx, m, me, called), beginsWithName(m, me)
	in.Quotes = t.quotes(ctx, m, me)
	in.Attachments = files.Attachments(m.Files)
	for _, a := range m.Attachments {
		if a.isMessage() {
			in.Attachments = append(in.Attachments, files.Attachments(a.Files)...)
		}
	}
	return in, true, nil
}

// authorOf returns the person who wrote a message; the zero Person for an app without a user.
func (t *translator) authorOf(ctx context.Context, m *message) bus.Person {
	if m.User == "" {
		return bus.Person{}
	}
	return bus.Person{ID: t.name + ":" + m.User, Name: cmp.Or(t.people.name(ctx, m.User), m.User)}
}

// changeInbound translates an edit or a deletion into what the agent gets. It is addressed to the message's
// session.
func (t *translator) changeInbound(ctx context.Context, what change, me Account) bus.Inbound {
	m := what.message
	of := t.messageID(m, me)
	in := bus.Inbound{
		ID: of + "#" + what.kind + "/" + what.eventID, Kind: what.kind, Of: of, At: t.replyAddress(m), Group: m.isGroup(), Mentioned: true, ReplyTo: m.TS,
		From: bus.Person{ID: t.name + ":" + m.User}, SentAt: interaction.ParseTS(what.eventID),
	}
	if what.kind == bus.Edited {
		in.From.Name = cmp.Or(t.people.name(ctx, m.User), m.User)
		in.Text, in.Called = t.typedText(ctx, m, me, m.mentions(me.User)), beginsWithName(m, me)
		in.Quotes, in.Attachments = t.quotes(ctx, m, me), files.Attachments(m.Files)
	}
	return in
}

// typedText returns a message's text as the person would have typed it: with names instead of ids, without the
// bot's name at the beginning, and with commands in the form that the gateway reads. If nothing else was said, it is
// the bot's name. called says that the message mentions the bot.
func (t *translator) typedText(ctx context.Context, m *message, me Account, called bool) string {
	text := withoutOwnName(m.Text, me.User)
	text = strings.TrimSpace(markup.WithEmoji(t.resolveReferences(ctx, text, me)))
	text = asCommand(text, called)
	if text == "" && len(m.Files) == 0 && !m.forwardsMessages() {
		text = "@" + me.Username
	}
	return strings.TrimSpace(describeFiles(m.Files) + " " + text)
}

// describeFiles returns the names of files, each in brackets; "" if there are none.
func describeFiles(shared []files.File) string {
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

// beginsWithName reports whether a message begins with the bot's name.
func beginsWithName(m *message, me Account) bool { return withoutOwnName(m.Text, me.User) != m.Text }

// withoutOwnName removes a mention of the bot, and the punctuation after it, from the beginning of a text.
func withoutOwnName(text, me string) string {
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

// commandPrefix is the character with which people begin a command in a message, because Slack treats messages that
// begin with a slash as its own commands.
const commandPrefix = "!"

// asCommand turns "!stop", and "stop" alone after the bot's name, into the "/stop" that the gateway reads. It
// returns other texts unchanged. called says that the text had the bot's name in front.
func asCommand(text string, called bool) string {
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
	case "approve", "deny", "answer", "forget", "export", "memory", "recall", "link", "ui", "undo", "usage", "compact", "context": // people also use these words in messages
		if marked {
			return "/" + word + rest
		}
	case "start": // followed by an owner's code
		if marked {
			return "/" + word + rest
		}
	}
	return text
}

// resolveReferences replaces Slack's <…> references and HTML entities by the words that people see.
func (t *translator) resolveReferences(ctx context.Context, text string, me Account) string {
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
				ref += "|" + ref[1:] // a label keeps the name from being looked up; the id serves as the label
			}
		}
		b.WriteString(t.resolveReference(ctx, ref, me))
		text = text[i+end+1:]
	}
	b.WriteString(html.UnescapeString(text))
	return b.String()
}

// resolveReference returns the words that people see for ref, the text between Slack's < and >.
func (t *translator) resolveReference(ctx context.Context, ref string, me Account) string {
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
			label = t.people.name(ctx, user)
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
			return "@" + about // a user group's id: the message doesn't contain its name
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

// maxQuotes is the maximum number of forwarded messages in one message that reach the agent.
const maxQuotes = 10

// quotes returns, as quotes, the messages that m forwards, but no more than maxQuotes.
func (t *translator) quotes(ctx context.Context, m *message, me Account) []bus.Quote {
	var all []bus.Quote
	for _, a := range m.Attachments {
		if !a.isMessage() || len(all) == maxQuotes {
			continue
		}
		q := bus.Quote{
			Kind: bus.Forwarded, Chat: markup.OneLine(cmp.Or(a.ChannelName, a.ChannelID), maxName), At: interaction.ParseTS(a.TS),
			Text: strings.TrimSpace(describeFiles(a.Files) + " " + markup.WithEmoji(t.resolveReferences(ctx, cmp.Or(a.Text, a.Fallback), me))),
		}
		q.From.Name = markup.OneLine(a.AuthorName, maxName)
		if a.AuthorID != "" {
			q.From.ID = t.name + ":" + a.AuthorID
			q.From.Name = cmp.Or(q.From.Name, t.people.name(ctx, a.AuthorID))
		}
		all = append(all, q)
	}
	return all
}

// lettersOnly reduces a text to the letters and digits that Slack leaves unchanged, for comparison. Slack rewrites
// emoji as names between colons, and formatting and links in its own way.
func lettersOnly(text string) string {
	var b strings.Builder
	for text != "" {
		r, n := utf8.DecodeRuneInString(text)
		if r == ':' {
			if end := strings.IndexFunc(text[1:], func(r rune) bool { return !isShortcodeRune(r) }); end > 0 && text[1+end] == ':' {
				text = text[end+2:]
				continue
			}
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(r)
		}
		text = text[n:]
	}
	return b.String()
}

// isShortcodeRune reports whether a character can occur in an emoji's name.
func isShortcodeRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("_+-'", r)
}
