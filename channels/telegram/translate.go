package telegram

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-telegram/bot/models"

	"parley/bus"
	"parley/channels"
)

// A translator translates what Telegram delivers into messages for the agent.
type translator struct {
	*identity
	mention channels.MentionIn
	// unaddressed is told of messages in groups that are not among the channel's chats.
	unaddressed *channels.Unaddressed
	quoter      quoter
	moves       *movedGroups
	forums      *forums
}

// messageInbound translates a message into what the agent gets. It returns false if a person says nothing in it (a
// service message, another bot's, or a channel's post), or if it is in a group that is not among the channel's chats.
// A group's message that isn't meant for the bot is returned with Mentioned false. A message with an @name has to wait
// until the bot's own name is known. It fails only when ctx ends or the book fails.
func (t *translator) messageInbound(ctx context.Context, m *models.Message) (bus.Inbound, bool, error) {
	if m.From == nil || m.From.IsBot || m.IsAutomaticForward || m.Chat.Type == models.ChatTypeChannel {
		return bus.Inbound{}, false, nil
	}
	kind, ok := describeContent(m)
	if !ok {
		return bus.Inbound{}, false, nil
	}
	private := m.Chat.Type == models.ChatTypePrivate
	chat, message := strconv.FormatInt(m.Chat.ID, 10), strconv.Itoa(m.ID)
	everything := private
	if !private {
		mention, err := t.mentionIn(ctx, chat)
		if err != nil {
			return bus.Inbound{}, false, err
		}
		if mention == channels.MentionNowhere {
			t.unaddressed.Note(t.messageID(chat, message), bus.Address{Channel: t.name, Chat: chat})
			return bus.Inbound{}, false, nil
		}
		everything = mention == channels.MentionNever
	}
	in := t.inboundWithoutText(m)
	in.Mentioned = everything
	// The sender did not write what they forwarded or what another bot wrote: that text becomes a quote, and its
	// names and commands address nobody here.
	if !hasOthersWords(m) {
		text := m.Text + m.Caption // a message has only one of them
		call, own, err := t.findAddressee(ctx, text, private)
		if err != nil {
			return bus.Inbound{}, false, err
		}
		in.Mentioned = private || call == addresseeThisBot || (call == addresseeNobody && (everything || t.pointsAtBot(m)))
		in.Called = call == addresseeThisBot && own.from == 0 && own.to > 0
		in.Text = strings.TrimSpace(kind + " " + textWithLinks(text, textEntities(m), own))
	}
	if m.Chat.IsForum {
		t.forums.add(m.Chat.ID)
	}
	return in, true, nil
}

// inboundWithoutText translates everything in a message except its text, and does not decide whether it is meant
// for the bot.
func (t *translator) inboundWithoutText(m *models.Message) bus.Inbound {
	chat, message := strconv.FormatInt(m.Chat.ID, 10), strconv.Itoa(m.ID)
	in := bus.Inbound{
		ID:          t.messageID(chat, message),
		Kind:        bus.Said,
		From:        bus.Person{ID: t.personID(m.From.ID), Name: displayName(m.From)},
		At:          bus.Address{Channel: t.name, Chat: chat},
		Group:       m.Chat.Type != models.ChatTypePrivate,
		ChatName:    groupName(&m.Chat),
		SentAt:      unixTime(m.Date),
		Quotes:      t.quoter.quotes(m),
		More:        hasContinuation(m),
		Attachments: t.attachments(m),
	}
	if r := m.ReplyToMessage; r != nil && r.ForumTopicCreated == nil {
		in.Answers = strconv.Itoa(r.ID)
	}
	// Outside of forums, message_thread_id identifies a chain of replies.
	if m.IsTopicMessage && m.MessageThreadID != generalTopic && m.MessageThreadID != 0 {
		in.At.Thread = strconv.Itoa(m.MessageThreadID)
	}
	if in.Group {
		in.ReplyTo = message
	}
	return in
}

// messageID returns a message's id on the bus.
func (t *translator) messageID(chat, message string) string {
	return t.name + ":" + strconv.FormatInt(t.id, 10) + ":" + chat + ":" + message
}

// mentionIn returns which messages in a group are meant for the bot. The channel's list of chats may contain a
// group under the id that it had before it became a supergroup.
func (t *translator) mentionIn(ctx context.Context, chat string) (channels.Mention, error) {
	if mention := t.mention.In(chat); mention != channels.MentionNowhere {
		return mention, nil
	}
	old, err := t.moves.originalID(ctx, chat)
	if err != nil {
		return channels.MentionNowhere, err
	}
	return t.mention.In(old), nil
}

// splitLength is the length, in UTF-16 units, from which on a text is probably the beginning of a longer one:
// people's apps split a long text after at most 4,096 units, at a space or the end of a line if there is one
// nearby.
const splitLength = 4000

// hasContinuation reports whether more messages belong to this one, because it is part of an album or because the
// app has split a long text.
func hasContinuation(m *models.Message) bool {
	return m.MediaGroupID != "" || len(m.Text) >= splitLength && utf16Length(m.Text) >= splitLength
}

// An addressee says whom a text calls by name: this bot, another bot, or nobody.
type addressee int

const (
	addresseeNobody   addressee = iota
	addresseeThisBot            // this bot
	addresseeOtherBot           // another bot, by a command
)

// findAddressee returns whom a text calls by name, and the span of the text that only serves to call them: a name
// at the beginning, or the name in a command of the form /name@bot.
func (t *translator) findAddressee(ctx context.Context, text string, private bool) (addressee, textSpan, error) {
	command := text
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		command = text[:i]
	}
	isCommand := strings.HasPrefix(text, "/")
	if !strings.Contains(text, "@") || (private && !(isCommand && strings.Contains(command, "@"))) {
		return addresseeNobody, textSpan{}, nil
	}
	name, err := t.awaitUsername(ctx)
	if err != nil {
		return addresseeNobody, textSpan{}, err
	}
	if isCommand {
		if verb, whose, found := strings.Cut(command, "@"); found {
			if strings.EqualFold(whose, name) {
				return addresseeThisBot, textSpan{len(verb), len(command)}, nil
			}
			return addresseeOtherBot, textSpan{}, nil
		}
	}
	switch findMention(text, name) {
	case -1:
		return addresseeNobody, textSpan{}, nil
	case 0:
		if said := strings.TrimLeft(text[len(name)+1:], ",:; \t\n"); said != "" {
			return addresseeThisBot, textSpan{0, len(text) - len(said)}, nil
		}
	}
	return addresseeThisBot, textSpan{}, nil
}

// findMention returns where @name occurs in a text as a word of its own, in upper or lower case; -1 if nowhere.
// Names are ASCII.
func findMention(text, name string) int {
	for from := 0; ; {
		i := strings.IndexByte(text[from:], '@')
		if i < 0 || name == "" {
			return -1
		}
		start := from + i
		end := start + 1 + len(name)
		if end > len(text) {
			return -1
		}
		if strings.EqualFold(text[start+1:end], name) &&
			(start == 0 || !isNameByte(text[start-1])) && (end == len(text) || !isNameByte(text[end])) {
			return start
		}
		from = start + 1
	}
}

// isNameByte reports whether a username may contain this byte.
func isNameByte(b byte) bool {
	return b == '_' || (b >= '0' && b <= '9') || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z')
}

// pointsAtBot reports whether a message is meant for the bot without naming it: it replies to one of the bot's
// messages, or contains a link to the bot.
func (t *translator) pointsAtBot(m *models.Message) bool {
	// In a forum, every message that replies to nothing seems to reply to the topic's beginning.
	if r := m.ReplyToMessage; r != nil && r.From != nil && r.From.ID == t.id && r.ForumTopicCreated == nil {
		return true
	}
	for _, e := range textEntities(m) {
		if e.Type == models.MessageEntityTypeTextMention && e.User != nil && e.User.ID == t.id {
			return true
		}
	}
	return false
}

// asEdit turns the translation of a message into a report that the message was edited. Telegram gives the time of
// an edit only in whole seconds, so the id also contains a hash of the text.
func asEdit(in bus.Inbound, m *models.Message) bus.Inbound {
	sum := sha256.Sum256([]byte(in.Text))
	in.Kind, in.Of, in.More = bus.Edited, in.ID, false
	in.ID += fmt.Sprintf("#edit/%d-%x", m.EditDate, sum[:4])
	in.SentAt = unixTime(m.EditDate)
	return in
}

// attachments returns the files of a message. If it replies to a message that isn't the bot's, as in "what is in
// this picture?", it returns that message's files too.
func (t *translator) attachments(m *models.Message) []bus.Attachment {
	files := filesOf(m)
	if r := m.ReplyToMessage; r != nil && (r.From == nil || r.From.ID != t.id) {
		for _, f := range filesOf(r) {
			f.Quoted = true
			files = append(files, f)
		}
	}
	return files
}
