package telegram

import (
	"github.com/go-telegram/bot/models"

	"parley/bus"
	"parley/channels/markup"
)

// maxQuote is the maximum length of a quoted text, in characters. Telegram's own limit for a message is the same
// number of UTF-16 units; a longer text comes from elsewhere, or contains many links.
const maxQuote = 4096

// hasOthersWords reports whether somebody else wrote a message's content: its sender has forwarded it, or picked it
// from what a bot offered (via_bot).
func hasOthersWords(m *models.Message) bool { return m.ForwardOrigin != nil || m.ViaBot != nil }

// A quoter quotes the messages that a message refers to.
type quoter struct{ *identity }

// quotes returns what a message contains that its sender did not write in it: the message that it forwards or that
// a bot wrote for the sender, and the message that it replies to.
func (r *quoter) quotes(m *models.Message) []bus.Quote {
	var all []bus.Quote
	if hasOthersWords(m) {
		q := r.authorQuote(m)
		q.Kind, q.Text = bus.Forwarded, cutQuote(fullText(m))
		all = append(all, q)
	}
	if q := r.answeredQuote(m); q.Text != "" {
		q.Kind, q.Text = bus.Answered, cutQuote(q.Text)
		all = append(all, q)
	}
	return all
}

// answeredQuote returns the message that m replies to, or the part of it that m's sender has selected; the text is
// empty if there is none. Service messages have no text, so it is also empty for the service message that begins a
// forum's topic, to which every message in the topic seems to reply.
func (r *quoter) answeredQuote(m *models.Message) bus.Quote {
	var q bus.Quote
	switch {
	case m.ReplyToMessage != nil:
		q = r.authorQuote(m.ReplyToMessage)
		q.Text = fullText(m.ReplyToMessage)
	case m.ExternalReply != nil:
		e := m.ExternalReply
		q = r.originQuote(&e.Origin)
		if e.Chat != nil && e.Chat.ID != m.Chat.ID {
			q.Chat = chatName(e.Chat)
		}
		q.Text = fullText(externalMessage(e))
	}
	if m.Quote != nil && (m.Quote.IsManual || q.Text == "" || m.ReplyToMessage == nil) {
		q.Text = textWithLinks(m.Quote.Text, m.Quote.Entities, textSpan{})
	}
	return q
}

// authorQuote returns a quote with a message's author and date, but no text yet.
func (r *quoter) authorQuote(m *models.Message) bus.Quote {
	if m.ForwardOrigin != nil {
		return r.originQuote(m.ForwardOrigin)
	}
	q := bus.Quote{At: unixTime(m.Date)}
	switch {
	case m.ViaBot != nil: // written by a bot that the sender called
		q.From = bus.Person{ID: r.personID(m.ViaBot.ID), Name: displayName(m.ViaBot)}
	case m.SenderChat != nil && m.SenderChat.ID != m.Chat.ID: // written in the name of a channel
		q.From.Name, q.Chat = markup.OneLine(m.AuthorSignature, maxName), chatName(m.SenderChat)
	case m.SenderChat != nil: // written by an anonymous admin
		q.From.Name = chatName(m.SenderChat)
		if signed := markup.OneLine(m.AuthorSignature, maxName); signed != "" {
			q.From.Name = signed
		}
	case m.From != nil:
		q.From = bus.Person{ID: r.personID(m.From.ID), Name: displayName(m.From)}
	}
	return q
}

// originQuote returns a quote with the author and date of a forwarded message's original, but no text yet.
func (r *quoter) originQuote(o *models.MessageOrigin) bus.Quote {
	var q bus.Quote
	switch {
	case o.MessageOriginUser != nil:
		u := o.MessageOriginUser
		q.From = bus.Person{ID: r.personID(u.SenderUser.ID), Name: displayName(&u.SenderUser)}
		q.At = unixTime(u.Date)
	case o.MessageOriginHiddenUser != nil:
		q.From.Name = markup.OneLine(o.MessageOriginHiddenUser.SenderUserName, maxName)
		q.At = unixTime(o.MessageOriginHiddenUser.Date)
	case o.MessageOriginChat != nil:
		q = signedQuote(&o.MessageOriginChat.SenderChat, o.MessageOriginChat.AuthorSignature)
		q.At = unixTime(o.MessageOriginChat.Date)
	case o.MessageOriginChannel != nil:
		q = signedQuote(&o.MessageOriginChannel.Chat, o.MessageOriginChannel.AuthorSignature)
		q.At = unixTime(o.MessageOriginChannel.Date)
	}
	return q
}

// signedQuote returns a quote of a message that was written in the name of a chat; by is the name of the person who
// signed it, or nil.
func signedQuote(chat *models.Chat, by *string) bus.Quote {
	q := bus.Quote{Chat: chatName(chat)}
	if by != nil {
		q.From.Name = markup.OneLine(*by, maxName)
	}
	return q
}

// groupName returns the name that people see for a group; "" for a private chat.
func groupName(chat *models.Chat) string {
	if chat.Type == models.ChatTypePrivate {
		return ""
	}
	return chatName(chat)
}

// chatName returns the name that people see for a chat.
func chatName(chat *models.Chat) string {
	if name := markup.OneLine(chat.Title, maxName); name != "" {
		return name
	}
	if chat.Username != "" {
		return "@" + markup.OneLine(chat.Username, maxName)
	}
	return markup.OneLine(chat.FirstName+" "+chat.LastName, maxName)
}

// externalMessage returns a message in another chat that somebody replies to in this one, as far as Telegram
// describes it.
func externalMessage(e *models.ExternalReplyInfo) *models.Message {
	return &models.Message{
		Photo: e.Photo, Sticker: e.Sticker, Voice: e.Voice, Audio: e.Audio, VideoNote: e.VideoNote, Video: e.Video,
		Animation: e.Animation, Document: e.Document, Poll: e.Poll, Dice: e.Dice, Venue: e.Venue, Location: e.Location,
		Contact: e.Contact, Story: e.Story, PaidMedia: e.PaidMedia, Checklist: e.Checklist, Game: e.Game,
		Invoice: e.Invoice, Giveaway: e.Giveaway,
	}
}

// cutQuote cuts a quoted text after maxQuote characters.
func cutQuote(text string) string {
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
