package telegram

import (
	"github.com/go-telegram/bot/models"

	"parley/bus"
	"parley/channels/markup"
)

// maxQuote bounds a quoted text, in characters. Telegram's own bound for a
// message is the same number of UTF-16 units; what is longer comes from
// somewhere else, or has many links.
const maxQuote = 4096

// quotes are what a message carries of words that its sender did not write in
// it: what it passes on, and what it answers.
func (c *Channel) quotes(m *models.Message) []bus.Quote {
	var all []bus.Quote
	if m.ForwardOrigin != nil {
		q := c.origin(m.ForwardOrigin)
		q.Kind, q.Text = bus.Forwarded, bounded(fullText(m))
		all = append(all, q)
	}
	if q := c.answered(m); q.Text != "" {
		q.Kind, q.Text = bus.Answered, bounded(q.Text)
		all = append(all, q)
	}
	return all
}

// answered is the message to which another replies, or the part of it that was
// marked; its text is empty if there is none. Service messages have no text, so
// the beginning of a forum's topic, which every message of the topic seems to
// answer, is none.
func (c *Channel) answered(m *models.Message) bus.Quote {
	var q bus.Quote
	switch {
	case m.ReplyToMessage != nil:
		q = c.author(m.ReplyToMessage)
		q.Text = fullText(m.ReplyToMessage)
	case m.ExternalReply != nil:
		e := m.ExternalReply
		q = c.origin(&e.Origin)
		if e.Chat != nil && e.Chat.ID != m.Chat.ID {
			q.Chat = chatName(e.Chat)
		}
		q.Text = fullText(externalMessage(e))
	}
	if m.Quote != nil && (m.Quote.IsManual || q.Text == "" || m.ReplyToMessage == nil) {
		q.Text = textWithLinks(m.Quote.Text, m.Quote.Entities, part{})
	}
	return q
}

// author is who wrote a message, and when.
func (c *Channel) author(m *models.Message) bus.Quote {
	if m.ForwardOrigin != nil {
		return c.origin(m.ForwardOrigin)
	}
	q := bus.Quote{At: date(m.Date)}
	switch {
	case m.SenderChat != nil && m.SenderChat.ID != m.Chat.ID: // in the name of a channel
		q.From.Name, q.Chat = markup.OneLine(m.AuthorSignature, maxName), chatName(m.SenderChat)
	case m.SenderChat != nil: // an admin who does not show who they are
		q.From.Name = chatName(m.SenderChat)
		if signed := markup.OneLine(m.AuthorSignature, maxName); signed != "" {
			q.From.Name = signed
		}
	case m.From != nil:
		q.From = bus.Person{ID: c.person(m.From.ID), Name: displayName(m.From)}
	}
	return q
}

// origin is where a message comes from.
func (c *Channel) origin(o *models.MessageOrigin) bus.Quote {
	var q bus.Quote
	switch {
	case o.MessageOriginUser != nil:
		u := o.MessageOriginUser
		q.From = bus.Person{ID: c.person(u.SenderUser.ID), Name: displayName(&u.SenderUser)}
		q.At = date(u.Date)
	case o.MessageOriginHiddenUser != nil:
		q.From.Name = markup.OneLine(o.MessageOriginHiddenUser.SenderUserName, maxName)
		q.At = date(o.MessageOriginHiddenUser.Date)
	case o.MessageOriginChat != nil:
		q = signed(&o.MessageOriginChat.SenderChat, o.MessageOriginChat.AuthorSignature)
		q.At = date(o.MessageOriginChat.Date)
	case o.MessageOriginChannel != nil:
		q = signed(&o.MessageOriginChannel.Chat, o.MessageOriginChannel.AuthorSignature)
		q.At = date(o.MessageOriginChannel.Date)
	}
	return q
}

// signed is what was written in the name of a chat.
func signed(chat *models.Chat, by *string) bus.Quote {
	q := bus.Quote{Chat: chatName(chat)}
	if by != nil {
		q.From.Name = markup.OneLine(*by, maxName)
	}
	return q
}

// chatName is what people call a chat.
func chatName(chat *models.Chat) string {
	if name := markup.OneLine(chat.Title, maxName); name != "" {
		return name
	}
	if chat.Username != "" {
		return "@" + markup.OneLine(chat.Username, maxName)
	}
	return markup.OneLine(chat.FirstName+" "+chat.LastName, maxName)
}

// externalMessage is the message of another chat that is answered, as far as Telegram
// shows it.
func externalMessage(e *models.ExternalReplyInfo) *models.Message {
	return &models.Message{
		Photo: e.Photo, Sticker: e.Sticker, Voice: e.Voice, Audio: e.Audio, VideoNote: e.VideoNote, Video: e.Video,
		Animation: e.Animation, Document: e.Document, Poll: e.Poll, Dice: e.Dice, Venue: e.Venue, Location: e.Location,
		Contact: e.Contact, Story: e.Story, PaidMedia: e.PaidMedia, Checklist: e.Checklist, Game: e.Game,
		Invoice: e.Invoice, Giveaway: e.Giveaway,
	}
}

// bounded is a quoted text, cut where it is too long.
func bounded(text string) string {
	if len(text) <= maxQuote {
		return text
	}
	n := 0
	for i := range text {
		if n++; n > maxQuote {
			return text[:i] + "…"
		}
	}
	return text
}
