package telegram

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"parley/channels/markup"

	"github.com/go-telegram/bot/models"
)

// maxName bounds what the model is shown as a person's name, in characters.
const maxName = 64

// A part is where a piece of a text begins and ends, in bytes.
type part struct{ from, to int }

// entities are the marks in a message's text.
func entities(m *models.Message) []models.MessageEntity {
	if m.Text != "" {
		return m.Entities
	}
	return m.CaptionEntities
}

// textWithLinks is a text as it would be typed: the address of each link is put in
// brackets behind its words. The part named out is left out.
func textWithLinks(text string, marks []models.MessageEntity, out part) string {
	type link struct {
		at  int
		url string
	}
	var links []link
	for _, e := range marks {
		if e.Type != models.MessageEntityTypeTextLink || e.URL == "" || e.Length <= 0 {
			continue
		}
		from, to := byteAt(text, e.Offset), byteAt(text, e.Offset+e.Length)
		to = from + len(strings.TrimRightFunc(text[from:to], unicode.IsSpace))
		if to > from && strings.TrimSuffix(e.URL, "/") != strings.TrimSuffix(text[from:to], "/") {
			links = append(links, link{max(to, out.to), e.URL})
		}
	}
	slices.SortStableFunc(links, func(a, b link) int { return a.at - b.at })
	var b strings.Builder
	b.WriteString(text[:out.from])
	done := out.to
	for _, l := range links {
		b.WriteString(text[done:l.at] + " (" + l.url + ")")
		done = l.at
	}
	b.WriteString(text[done:])
	return b.String()
}

// byteAt is the byte at which so many UTF-16 units of a text are over.
func byteAt(text string, units int) int {
	for i, r := range text {
		if units <= 0 {
			return i
		}
		units -= utf16.RuneLen(r)
	}
	return len(text)
}

// units is the length in UTF-16.
func units(s string) (n int) {
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// fullText describes what a message holds, its media in brackets before its text.
func fullText(m *models.Message) string {
	kind, _ := content(m)
	return strings.TrimSpace(kind + " " + textWithLinks(m.Text+m.Caption, entities(m), part{}))
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
	return rareContent(m)
}

// rareContent is what content is for the kinds that are seldom sent.
func rareContent(m *models.Message) (string, bool) {
	switch {
	case m.Venue != nil: // comes with a location
		return bracketed("venue", joinNonEmpty(m.Venue.Title, m.Venue.Address, coordinates(m.Venue.Location))), true
	case m.Location != nil:
		return "[location " + coordinates(*m.Location) + "]", true
	case m.Contact != nil:
		return bracketed("contact", joinNonEmpty(m.Contact.FirstName+" "+m.Contact.LastName, m.Contact.PhoneNumber)), true
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

// coordinates writes a place as latitude and longitude.
func coordinates(l models.Location) string { return fmt.Sprintf("%.5f, %.5f", l.Latitude, l.Longitude) }

// joinNonEmpty joins those of the texts that are not empty, with commas.
func joinNonEmpty(texts ...string) string {
	var some []string
	for _, t := range texts {
		if t = markup.OneLine(t, 200); t != "" {
			some = append(some, t)
		}
	}
	return strings.Join(some, ", ")
}

// bracketed is a kind with what it is called, on one line.
func bracketed(kind, called string) string {
	if called = markup.OneLine(called, 500); called == "" {
		return "[" + kind + "]"
	}
	return "[" + kind + ": " + called + "]"
}

// displayName is what a person calls themselves, fit to be shown.
func displayName(u *models.User) string {
	return markup.OneLine(u.FirstName+" "+u.LastName, maxName)
}
