package telegram

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/go-telegram/bot/models"

	"parley/channels/markup"
)

// maxName is the maximum length, in characters, of the name of a person that the model is shown.
const maxName = 64

// A textSpan is a piece of a text: the offsets of its first byte and of the byte after its last one.
type textSpan struct{ from, to int }

// textEntities returns the formatted pieces of a message's text or caption.
func textEntities(m *models.Message) []models.MessageEntity {
	if m.Text != "" {
		return m.Entities
	}
	return m.CaptionEntities
}

// textWithLinks returns a text with the address of each link in parentheses after the link's words, as somebody
// would type it. It leaves out the piece of the text at omit.
func textWithLinks(text string, marks []models.MessageEntity, omit textSpan) string {
	type link struct {
		at  int
		url string
	}
	var links []link
	for _, e := range marks {
		if e.Type != models.MessageEntityTypeTextLink || e.URL == "" || e.Length <= 0 {
			continue
		}
		from, to := byteOffset(text, e.Offset), byteOffset(text, e.Offset+e.Length)
		to = from + len(strings.TrimRightFunc(text[from:to], unicode.IsSpace))
		if to > from && strings.TrimSuffix(e.URL, "/") != strings.TrimSuffix(text[from:to], "/") {
			links = append(links, link{max(to, omit.to), e.URL})
		}
	}
	slices.SortStableFunc(links, func(a, b link) int { return a.at - b.at })
	var b strings.Builder
	b.WriteString(text[:omit.from])
	done := omit.to
	for _, l := range links {
		b.WriteString(text[done:l.at] + " (" + l.url + ")")
		done = l.at
	}
	b.WriteString(text[done:])
	return b.String()
}

// byteOffset converts an offset in UTF-16 units into an offset in bytes.
func byteOffset(text string, units int) int {
	for i, r := range text {
		if units <= 0 {
			return i
		}
		units -= utf16.RuneLen(r)
	}
	return len(text)
}

// utf16Length returns the length of a text in UTF-16 units.
func utf16Length(s string) (n int) {
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// fullText returns in brackets what a message contains besides text, such as a picture or a poll, followed by the text
// with the addresses of its links.
func fullText(m *models.Message) string {
	kind, _ := describeContent(m)
	return strings.TrimSpace(kind + " " + textWithLinks(m.Text+m.Caption, textEntities(m), textSpan{}))
}

// describeContent says in brackets what a message contains besides text; false if nobody says anything in the
// message, for example because somebody joins or pins something.
func describeContent(m *models.Message) (string, bool) {
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
	case m.Animation != nil: // such a message has a Document too
		return "[animation]", true
	case m.Document != nil:
		return bracketed("file", m.Document.FileName), true
	case m.Poll != nil:
		return bracketed("poll", m.Poll.Question), true
	case m.Dice != nil:
		return "[dice: " + strconv.Itoa(m.Dice.Value) + "]", true
	}
	return describeRareContent(m)
}

// describeRareContent does what describeContent does, for rarely sent kinds of content.
func describeRareContent(m *models.Message) (string, bool) {
	switch {
	case m.Venue != nil: // such a message has a Location too
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

// coordinates formats a location as latitude and longitude.
func coordinates(l models.Location) string { return fmt.Sprintf("%.5f, %.5f", l.Latitude, l.Longitude) }

// joinNonEmpty joins the texts that aren't empty with commas.
func joinNonEmpty(texts ...string) string {
	var some []string
	for _, t := range texts {
		if t = markup.OneLine(t, 200); t != "" {
			some = append(some, t)
		}
	}
	return strings.Join(some, ", ")
}

// bracketed returns "[kind: called]" on one line, or "[kind]" if called is empty.
func bracketed(kind, called string) string {
	if called = markup.OneLine(called, 500); called == "" {
		return "[" + kind + "]"
	}
	return "[" + kind + ": " + called + "]"
}

// displayName returns a person's first and last name, on one line.
func displayName(u *models.User) string {
	return markup.OneLine(u.FirstName+" "+u.LastName, maxName)
}

// unixTime converts Telegram's Unix seconds; it returns the zero time for 0.
func unixTime(seconds int) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
}
