package transcript

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/bus"
	"parley/sessions"
)

// What people and the system say reaches the model in frames:
//
//	<message from="slack:U1" name="Alex" at="2026-11-22 10:00 UTC">
//	can you translate this?
//	<attachment kind="document" name="a.pdf" type="application/pdf" bytes="1024" path="attachments/7-a.pdf"></attachment>
//	<quote kind="forwarded" from="slack:U2" name="Bob" chat="ops" at="2026-11-21 09:00 UTC">
//	…
//	</quote>
//	</message>
//
//	<notice>what the system says</notice>
//
// Only the agent writes these tags. Whatever else stands in a message, a quote, a
// notice or a summary cannot contain one: its "<" is written as "&lt;" there. So
// no words can pass for somebody else's, or for the system's.
const (
	tagMessage = "message"
	tagQuote   = "quote"
	tagFile    = "attachment"
	tagNotice  = "notice"
	tagSummary = "summary"
	tagPast    = "past" // what the model itself did, in text that retells it
)

// NoticeTold is the code of a notice of what the agent said here on behalf of
// somebody elsewhere.
const NoticeTold = "told"

// How much of what was quoted the model is shown, in characters.
const (
	maxQuote  = 8_000  // of one quote
	maxQuotes = 16_000 // of all that come with one message
)

// frameRoom is about how many bytes the frame of a message takes beside the text.
const frameRoom = 160

// frameMessage is what a person said, in a frame that tells who said it and when. It
// depends on the entry alone, so it is the same in every step.
func frameMessage(person string, u sessions.User, files []file) string {
	var b strings.Builder
	b.Grow(len(u.Text) + frameRoom)
	b.WriteString("<" + tagMessage)
	writeAttribute(&b, "from", cmp.Or(person, "unknown"))
	writeAttribute(&b, "name", u.Name)
	writeAttribute(&b, "schedule", u.Schedule)
	writeTime(&b, u.Sent)
	b.WriteString(">\n")
	if u.Deleted {
		b.WriteString("[deleted by the person who said it]\n")
	}
	writeLine(&b, escapeTags(u.Text))
	frameFiles(&b, files)
	frameQuotes(&b, u.Quotes)
	b.WriteString("</" + tagMessage + ">")
	return b.String()
}

// frameNotice is what the system says, in its frame.
func frameNotice(n sessions.Notice) string {
	if len(n.Quotes) == 0 {
		return "<" + tagNotice + ">" + escapeTags(n.Text) + "</" + tagNotice + ">"
	}
	var b strings.Builder
	b.WriteString("<" + tagNotice + ">\n")
	text := n.Text
	if text == "" && n.Code == NoticeTold {
		text = "You said this here, on behalf of somebody who asked you to in another conversation. An answer to it will come here."
	}
	writeLine(&b, escapeTags(text))
	frameQuotes(&b, n.Quotes)
	b.WriteString("</" + tagNotice + ">")
	return b.String()
}

// FrameSummary is a summary of what was said before, in its frame.
func FrameSummary(text string) string {
	return "<" + tagSummary + " of=\"what was said before; it may lack details, so look again where exact values matter\">\n" +
		escapeTags(text) + "\n</" + tagSummary + ">"
}

// frameQuotes adds quotes, as far as there is room, and says of each how much of it is
// left out.
func frameQuotes(b *strings.Builder, quotes []sessions.Quote) {
	left := maxQuotes
	for _, q := range quotes {
		text, cut := cutCharacters(q.Text, min(maxQuote, left))
		left -= utf8.RuneCountInString(text)
		b.WriteString("<" + tagQuote)
		writeAttribute(b, "kind", quoteKind(q.Kind))
		writeAttribute(b, "from", q.Person)
		writeAttribute(b, "name", q.Name)
		writeAttribute(b, "chat", q.Chat)
		writeTime(b, q.At)
		if cut > 0 {
			writeAttribute(b, "cut", fmt.Sprintf("the last %d characters are not shown", cut))
		}
		b.WriteString(">\n")
		writeLine(b, escapeTags(text))
		b.WriteString("</" + tagQuote + ">\n")
	}
}

func quoteKind(kind string) string {
	switch kind {
	case bus.Answered:
		return "replied-to"
	case bus.Told:
		return "said-here-on-behalf-of"
	}
	return kind
}

// cutCharacters is the first n characters of a text, and how many it has beyond them.
func cutCharacters(text string, n int) (string, int) {
	count := utf8.RuneCountInString(text)
	if count <= n {
		return text, 0
	}
	at := 0
	for range n {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return text[:at], count - n
}

func writeLine(b *strings.Builder, text string) {
	if text != "" {
		b.WriteString(text)
		b.WriteByte('\n')
	}
}

func writeTime(b *strings.Builder, at time.Time) {
	if !at.IsZero() {
		var room [32]byte
		b.WriteString(` at="`)
		b.Write(at.UTC().AppendFormat(room[:0], "2006-01-02 15:04 UTC"))
		b.WriteByte('"')
	}
}

const (
	maxAttribute     = 100 // characters
	maxLongAttribute = 400
)

// writeAttribute adds an attribute, unless its value is empty. It makes the value one
// line of visible characters, without those that could end the attribute or the tag.
func writeAttribute(b *strings.Builder, name, value string) {
	writeAttributeUpTo(b, name, value, maxAttribute)
}

// writeLongAttribute is writeAttribute for paths, and for what is said of a file.
func writeLongAttribute(b *strings.Builder, name, value string) {
	writeAttributeUpTo(b, name, value, maxLongAttribute)
}

func writeAttributeUpTo(b *strings.Builder, name, value string, most int) {
	if !isPlain(value, most) {
		value = plain(value, most)
	}
	if value == "" {
		return
	}
	b.WriteByte(' ')
	b.WriteString(name)
	b.WriteString(`="`)
	b.WriteString(value)
	b.WriteByte('"')
}

// isPlain tells whether plain would leave a value as it is, of values that need little
// looking at: nearly all do. Each message of a log is framed whenever the model is asked.
func isPlain(value string, most int) bool {
	if len(value) > most {
		return false
	}
	space := true // before the first
	for i := range len(value) {
		c := value[i]
		if c < ' ' || c >= 0x7F || c == '"' || c == '<' || c == '>' || c == ' ' && space {
			return false
		}
		space = c == ' '
	}
	return value == "" || !space
}

// plain is a value as an attribute may hold it.
func plain(value string, most int) string {
	value = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(`"<>＂＜＞﹤﹥“”`, r):
			return '\''
		case unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp), unicode.IsControl(r):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(value, "\uFFFD"))), " ")
	value, _ = cutCharacters(value, most)
	return value
}

// escapeTags is a text in which nothing can be taken for one of our tags.
func escapeTags(text string) string {
	if !strings.ContainsAny(text, "<＜﹤") {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case (r == '<' || r == '＜' || r == '﹤') && looksLikeTag(text[i+utf8.RuneLen(r):]):
			b.WriteString("&lt;")
		case r == utf8.RuneError:
			b.WriteString("\uFFFD")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// looksLikeTag tells whether what follows a "<" could be read as one of our tags:
// in capitals, with invisible characters in it, or in letters that look alike.
func looksLikeTag(text string) bool {
	const longest = 64 // characters looked at
	var word strings.Builder
	latin, foreign := false, false
	seen := 0
	for _, r := range text {
		if seen++; seen > longest {
			break
		}
		switch {
		case unicode.In(r, unicode.Cf, unicode.Mn), unicode.IsControl(r),
			word.Len() == 0 && (unicode.IsSpace(r) || strings.ContainsRune(`/\／∕⁄`, r)):
			continue
		case r < utf8.RuneSelf && unicode.IsLetter(r):
			latin = true
		case unicode.IsLetter(r):
			foreign = true
			// Letters made to look like Latin ones.
			latin = latin || '\uFF21' <= r && r <= '\uFF5A' || 0x1D400 <= r && r <= 0x1D7FF
		default:
			seen = longest
			continue
		}
		word.WriteRune(unicode.ToLower(r))
	}
	if latin && foreign {
		return true
	}
	for _, tag := range []string{tagMessage, tagQuote, tagFile, tagNotice, tagSummary, tagPast} {
		if strings.HasPrefix(word.String(), tag) {
			return true
		}
	}
	return false
}

// Words extracts from a text with frames what people said themselves, message by message,
// without what they quoted.
func Words(text string) []string {
	const begin, end, quote, file = "<" + tagMessage + " ", "</" + tagMessage + ">", "<" + tagQuote + " ", "<" + tagFile + " "
	var said []string
	for {
		_, rest, found := strings.Cut(text, begin)
		if !found {
			return said
		}
		_, rest, _ = strings.Cut(rest, ">\n") // the tag's own end: attributes hold none
		words, after, _ := strings.Cut(rest, end)
		words, _, _ = strings.Cut(words, quote)
		words, _, _ = strings.Cut(words, file)
		said = append(said, strings.TrimSuffix(words, "\n"))
		text = after
	}
}
