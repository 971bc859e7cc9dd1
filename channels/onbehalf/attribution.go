package onbehalf

import (
	"strings"
	"time"
	"unicode"

	"parley/bus"
	"parley/channels/markup"
	"parley/tools/message"
)

// outboundFor returns the message for one address. Outside the conversation's own chat, the message names the
// person who asked for it and quotes their words, so that nobody thinks that the bot itself says them; own says
// that the words are that person's.
func outboundFor(r message.Request, id string, to bus.Address, own bool) bus.Outbound {
	out := bus.Outbound{ID: id, To: to, Text: r.Content, Session: r.Session, Turn: r.Turn, At: time.Now()}
	if to.String() == r.From {
		return out
	}
	from, _ := bus.ParseAddress(r.From)
	who := bus.Person{ID: r.Person, Name: r.Called, Owner: r.Owner}
	if out.Text = attributionText(who, from, "tell you"); markup.IsBlank(r.Content) {
		out.Text = attributionText(who, from, "send you this")
	} else {
		out.Text += "\n\n" + quoteMarkdown(r.Content)
	}
	out.Told = &bus.Telling{For: who, At: from, Words: r.Content, Own: own}
	return out
}

// attributionText returns words that tell the people who receive a message who asked the bot to send it. Only the
// id proves who that is, so the name is written in such a way that nobody can mistake it for an id or for words of
// the bot.
func attributionText(who bus.Person, from bus.Address, what string) string {
	id := codeSpan(who.ID)
	if name := plainName(who.Name); name != "" {
		id = name + " (" + id + ")"
	}
	if who.ID == from.Channel+":"+from.Chat { // that person's private chat with the bot
		return id + " asked me to " + what + ":"
	}
	return id + " asked me, in " + codeSpan(bus.Address{Channel: from.Channel, Chat: from.Chat}.String()) + ", to " + what + ":"
}

// codeSpan returns an id as Markdown code, so that it is shown literally.
func codeSpan(id string) string {
	return "`" + strings.Map(func(r rune) rune {
		if r == '`' || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, id) + "`"
}

// maxShownName is the maximum number of characters of a person's name that are shown.
const maxShownName = 40

// plainName removes from a person's name whatever could be read as Markdown, as a mention of somebody, or as more
// than a name; "" if nothing is left.
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
	shown := strings.Join(strings.Fields(string(kept[:min(len(kept), maxShownName)])), " ")
	return strings.TrimLeftFunc(shown, func(r rune) bool { return !unicode.IsLetter(r) })
}

// quoteMarkdown returns a text as a Markdown quote.
func quoteMarkdown(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimSpace(text))
	return "> " + strings.ReplaceAll(text, "\n", "\n> ")
}
