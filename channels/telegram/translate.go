package telegram

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-telegram/bot/models"

	"parley/bus"
)

// maxName bounds what the model is shown as a person's name, in characters.
const maxName = 64

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
	words, call, err := c.addressed(ctx, m.Text+m.Caption, private) // never both
	if err != nil {
		return bus.Inbound{}, false, err
	}
	chat, message := strconv.FormatInt(m.Chat.ID, 10), strconv.Itoa(m.ID)
	in := bus.Inbound{
		ID:        c.name + ":" + strconv.FormatInt(c.id, 10) + ":" + chat + ":" + message,
		Kind:      bus.Said,
		From:      bus.Person{ID: c.name + ":" + strconv.FormatInt(m.From.ID, 10), Name: displayName(m.From)},
		At:        bus.Address{Channel: c.name, Chat: chat},
		Group:     !private,
		Mentioned: private || call == byName || (call == nobody && c.pointedAt(m)),
		Text:      strings.TrimSpace(kind + " " + words),
		SentAt:    time.Unix(int64(m.Date), 0).UTC(),
	}
	// Outside of forums message_thread_id names a chain of replies.
	if m.IsTopicMessage && m.MessageThreadID != generalTopic && m.MessageThreadID != 0 {
		in.At.Thread = strconv.Itoa(m.MessageThreadID)
	}
	if in.Group {
		in.ReplyTo = message
	}
	return in, true, nil
}

// Whom a text calls by name.
type calls int

const (
	nobody calls = iota
	byName       // the bot
	other        // another bot, by a command
)

// addressed tells whether a text calls the bot, and takes the name off where it
// only calls: at the beginning, and in a command's /name@bot.
func (c *Channel) addressed(ctx context.Context, text string, private bool) (string, calls, error) {
	command, rest := text, ""
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		command, rest = text[:i], text[i:]
	}
	isCommand := strings.HasPrefix(text, "/")
	if !strings.Contains(text, "@") || (private && !(isCommand && strings.Contains(command, "@"))) {
		return text, nobody, nil
	}
	name, err := c.username(ctx)
	if err != nil {
		return "", nobody, err
	}
	if isCommand {
		if verb, whose, found := strings.Cut(command, "@"); found {
			if strings.EqualFold(whose, name) {
				return verb + rest, byName, nil
			}
			return text, other, nil
		}
	}
	at := mention(text, name)
	if at < 0 {
		return text, nobody, nil
	}
	if at == 0 {
		said := strings.TrimLeft(text[len(name)+1:], ",:; \t\n")
		if said != "" {
			text = said
		}
	}
	return text, byName, nil
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
			(start == 0 || !ofNames(text[start-1])) && (end == len(text) || !ofNames(text[end])) {
			return start
		}
		from = start + 1
	}
}

// ofNames tells the characters that usernames are made of.
func ofNames(b byte) bool {
	return b == '_' || (b >= '0' && b <= '9') || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z')
}

// pointedAt tells that a message is meant for the bot without naming it: it
// answers one of the bot's, or has a link to the bot.
func (c *Channel) pointedAt(m *models.Message) bool {
	// In a forum every message that answers nothing answers the topic's beginning.
	if r := m.ReplyToMessage; r != nil && r.From != nil && r.From.ID == c.id && r.ForumTopicCreated == nil {
		return true
	}
	for _, entities := range [][]models.MessageEntity{m.Entities, m.CaptionEntities} {
		for _, e := range entities {
			if e.Type == models.MessageEntityTypeTextMention && e.User != nil && e.User.ID == c.id {
				return true
			}
		}
	}
	return false
}

// content tells what a message holds beside text, in brackets; false if it is
// not something that a person said: joins, pins and the like.
func content(m *models.Message) (string, bool) {
	switch {
	case m.Text != "":
		return "", true
	case len(m.Photo) > 0:
		return "[photo]", true
	case m.Sticker != nil:
		return strings.TrimSpace("[sticker "+m.Sticker.Emoji) + "]", true
	case m.Voice != nil:
		return "[voice message]", true
	case m.Audio != nil:
		return "[audio]", true
	case m.VideoNote != nil:
		return "[video message]", true
	case m.Video != nil:
		return "[video]", true
	case m.Animation != nil: // comes with a document
		return "[animation]", true
	case m.Document != nil:
		return bracketed("file", m.Document.FileName), true
	case m.Poll != nil:
		return bracketed("poll", m.Poll.Question), true
	case m.Dice != nil:
		return "[dice: " + strconv.Itoa(m.Dice.Value) + "]", true
	}
	return rarer(m)
}

// rarer is content of kinds that are seldom met.
func rarer(m *models.Message) (string, bool) {
	switch {
	case m.Venue != nil: // comes with a location
		return bracketed("venue", m.Venue.Title), true
	case m.Location != nil:
		return fmt.Sprintf("[location %.5f, %.5f]", m.Location.Latitude, m.Location.Longitude), true
	case m.Contact != nil:
		return "[contact]", true
	case m.Story != nil:
		return "[story]", true
	case m.PaidMedia != nil:
		return "[paid media]", true
	case m.Checklist != nil:
		return "[checklist]", true
	case m.Game != nil:
		return "[game]", true
	case m.Invoice != nil:
		return "[invoice]", true
	case m.Giveaway != nil:
		return "[giveaway]", true
	}
	return "", false
}

// bracketed is a kind with what it is called, on one line.
func bracketed(kind, called string) string {
	if called = oneLine(called, 200); called == "" {
		return "[" + kind + "]"
	}
	return "[" + kind + ": " + called + "]"
}

// displayName is what a person calls themselves, fit to be shown.
func displayName(u *models.User) string {
	return oneLine(u.FirstName+" "+u.LastName, maxName)
}

// oneLine is a text without what moves the cursor or turns the direction of
// writing, its spaces single, and no longer than that many characters.
func oneLine(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, s)
	runes := []rune(strings.Join(strings.Fields(s), " "))
	return string(runes[:min(len(runes), most)])
}
