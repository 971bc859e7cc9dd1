package telegram

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/go-telegram/bot/models"

	"parley/bus"
	"parley/channels"
)

// inbound is what a message says to the agent; false if nobody says anything to
// it. Its error is ctx's: where it matters, the bot's own name is waited for.
func (c *Channel) inbound(ctx context.Context, m *models.Message) (bus.Inbound, bool, error) {
	if m.From == nil || m.From.IsBot || m.IsAutomaticForward || m.Chat.Type == models.ChatTypeChannel {
		return bus.Inbound{}, false, nil
	}
	kind, ok := content(m)
	if !ok {
		return bus.Inbound{}, false, nil
	}
	private := m.Chat.Type == models.ChatTypePrivate
	chat, message := strconv.FormatInt(m.Chat.ID, 10), strconv.Itoa(m.ID)
	everything := private
	if !private {
		holds := c.mention.In(chat)
		if holds == channels.MentionNowhere {
			old, err := c.moves.origin(ctx, chat)
			if err != nil {
				return bus.Inbound{}, false, err
			}
			holds = c.mention.In(old)
		}
		if holds == channels.MentionNowhere {
			return bus.Inbound{}, false, nil
		}
		everything = holds == channels.MentionNever
	}
	in := bus.Inbound{
		ID:        c.name + ":" + strconv.FormatInt(c.id, 10) + ":" + chat + ":" + message,
		Kind:      bus.Said,
		From:      bus.Person{ID: c.person(m.From.ID), Name: displayName(m.From)},
		At:        bus.Address{Channel: c.name, Chat: chat},
		Group:     !private,
		Mentioned: everything,
		SentAt:    date(m.Date),
		Quotes:    c.quotes(m),
		More:      announcesMore(m),
	}
	in.Attachments = c.attachments(m)
	// What is passed on was said to somebody else: its text is a quote, and the
	// names and commands in it call nobody here.
	if m.ForwardOrigin == nil {
		text := m.Text + m.Caption // never both
		call, own, err := c.addressed(ctx, text, private)
		if err != nil {
			return bus.Inbound{}, false, err
		}
		in.Mentioned = private || call == byName || (call == nobody && (everything || c.pointedAt(m)))
		in.Text = strings.TrimSpace(kind + " " + textWithLinks(text, entities(m), own))
	}
	// Outside of forums message_thread_id names a chain of replies.
	if m.IsTopicMessage && m.MessageThreadID != generalTopic && m.MessageThreadID != 0 {
		in.At.Thread = strconv.Itoa(m.MessageThreadID)
	}
	if in.Group {
		in.ReplyTo = message
	}
	if m.Chat.IsForum {
		c.forums.note(m.Chat.ID)
	}
	return in, true, nil
}

// forums are the groups with topics of which this process has heard.
type forums struct {
	mu    sync.Mutex
	known map[int64]bool
}

// mostForums bounds those that are remembered.
const mostForums = 4096

func (f *forums) note(chat int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil || len(f.known) >= mostForums {
		f.known = map[int64]bool{}
	}
	f.known[chat] = true
}

func (f *forums) has(chat int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[chat]
}

// person is the id of one of Telegram's users.
func (c *Channel) person(user int64) string { return c.name + ":" + strconv.FormatInt(user, 10) }

// date is a moment as Telegram writes it.
func date(seconds int) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
}

// splitLength is from how many UTF-16 units on a text is probably the beginning
// of a longer one: people's apps split what they paste at 4,096, at a space or a
// line's end if there is one nearby.
const splitLength = 4000

// announcesMore tells that further messages belong to this one: it is one of an
// album, or the app has split a text.
func announcesMore(m *models.Message) bool {
	return m.MediaGroupID != "" || len(m.Text) >= splitLength && units(m.Text) >= splitLength
}

// Whom a text calls by name.
type calls int

const (
	nobody calls = iota
	byName       // the bot
	other        // another bot, by a command
)

// addressed reports whether a text calls the bot, and which part of it only does
// that: a name at the beginning, and that in a command's /name@bot.
func (c *Channel) addressed(ctx context.Context, text string, private bool) (calls, part, error) {
	command := text
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		command = text[:i]
	}
	isCommand := strings.HasPrefix(text, "/")
	if !strings.Contains(text, "@") || (private && !(isCommand && strings.Contains(command, "@"))) {
		return nobody, part{}, nil
	}
	name, err := c.username(ctx)
	if err != nil {
		return nobody, part{}, err
	}
	if isCommand {
		if verb, whose, found := strings.Cut(command, "@"); found {
			if strings.EqualFold(whose, name) {
				return byName, part{len(verb), len(command)}, nil
			}
			return other, part{}, nil
		}
	}
	switch mention(text, name) {
	case -1:
		return nobody, part{}, nil
	case 0:
		if said := strings.TrimLeft(text[len(name)+1:], ",:; \t\n"); said != "" {
			return byName, part{0, len(text) - len(said)}, nil
		}
	}
	return byName, part{}, nil
}

// mention finds @name standing by itself, in whatever case, or gives -1. Names
// are ASCII.
func mention(text, name string) int {
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

// isNameByte reports whether a username may have this character.
func isNameByte(b byte) bool {
	return b == '_' || (b >= '0' && b <= '9') || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z')
}

// pointedAt tells that a message is meant for the bot without naming it: it
// answers one of the bot's, or has a link to the bot.
func (c *Channel) pointedAt(m *models.Message) bool {
	// In a forum every message that answers nothing answers the topic's beginning.
	if r := m.ReplyToMessage; r != nil && r.From != nil && r.From.ID == c.id && r.ForumTopicCreated == nil {
		return true
	}
	for _, e := range entities(m) {
		if e.Type == models.MessageEntityTypeTextMention && e.User != nil && e.User.ID == c.id {
			return true
		}
	}
	return false
}

// IsGroupID tells the ids of groups, which are negative, from names and people.
func IsGroupID(id string) bool {
	n, err := strconv.ParseInt(id, 10, 64)
	return err == nil && n < 0
}

// IsUserID tells the ids of Telegram's users from names, and from groups' ids,
// which are negative.
func IsUserID(id string) bool {
	n, err := strconv.ParseInt(id, 10, 64)
	return err == nil && n > 0
}

// asEdit is the news that a message was edited: what it would say if it were said now.
// Telegram tells of an edit by the second, so the text is in its id too.
func asEdit(in bus.Inbound, m *models.Message) bus.Inbound {
	sum := sha256.Sum256([]byte(in.Text))
	in.Kind, in.Of, in.More = bus.Edited, in.ID, false
	in.ID += fmt.Sprintf("#edit/%d-%x", m.EditDate, sum[:4])
	in.SentAt = date(m.EditDate)
	return in
}
