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

// The words of people and of the system reach the model in frames:
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
// Only the agent writes these tags. No other text in a message, a quote, a notice or a
// summary can contain one: its "<" is replaced by "&lt;" there. Thus nobody's words can
// pass for somebody else's, or for the system's.
const (
	tagMessage = "message"
	tagQuote   = "quote"
	tagFile    = "attachment"
	tagNotice  = "notice"
	tagSummary = "summary"
	tagPast    = "past" // around the model's own acts, in a text that retells them
)

// NoticeTold is the code of a notice about what the agent said in this conversation on
// behalf of somebody in another.
const NoticeTold = "told"

// How many characters of quotes the model is shown.
const (
	maxQuote  = 8_000  // of one quote
	maxQuotes = 16_000 // of all quotes of one message
)

// frameRoom estimates how many bytes the frame of a message takes besides the text.
const frameRoom = 160

// frameMessage returns a person's message in a frame that names the person and the time.
// It depends on the entry and its files alone, and is therefore the same in every step.
func frameMessage(person string, u sessions.User, files []file) string {
	var b strings.Builder
	b.Grow(len(u.Text) + frameRoom)
	b.WriteString("<" + tagMessage)
	writeAttribute(&b, "from", cmp.Or(person, "unknown"))
	writeAttribute(&b, "name", u.Name)
	writeAttribute(&b, "chat", u.Chat)
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

// frameAnswer returns a person's answer to a question of the agent's, in the frame of a
// message that names the question.
func frameAnswer(person string, d sessions.AskEnded) string {
	var b strings.Builder
	b.WriteString("<" + tagMessage)
	writeAttribute(&b, "from", cmp.Or(person, "unknown"))
	writeAttribute(&b, "name", d.Name)
	writeLongAttribute(&b, "answers", d.Question)
	b.WriteString(">\n")
	writeLine(&b, escapeTags(d.Answer))
	b.WriteString("</" + tagMessage + ">")
	return b.String()
}

// frameNotice returns a notice of the system in its frame.
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

// FrameSummary returns a summary of the past in its frame.
func FrameSummary(text string) string {
	return "<" + tagSummary + " of=\"what was said before; it may lack details, so look again where exact values matter\">\n" +
		escapeTags(text) + "\n</" + tagSummary + ">"
}

// frameQuotes writes quotes for the model, each in a frame: lines that mark where another
// person's words begin and end. The frame of a quote that was shortened says how much is
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

// quoteKind returns the word for a kind of quote that the model is shown.
func quoteKind(kind string) string {
	switch kind {
	case bus.Answered:
		return "replied-to"
	case bus.Told:
		return "said-here-on-behalf-of"
	}
	return kind
}

// cutCharacters returns the first n characters of a text, and the number of characters
// after them.
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

// writeLine writes a text and a line's end, unless the text is empty.
func writeLine(b *strings.Builder, text string) {
	if text != "" {
		b.WriteString(text)
		b.WriteByte('\n')
	}
}

// writeTime writes the attribute at, unless the time is zero.
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

// writeAttribute writes an attribute, unless its value is empty. It makes the value one
// line of at most maxAttribute visible characters, without those that could end the
// attribute or the tag.
func writeAttribute(b *strings.Builder, name, value string) {
	writeAttributeUpTo(b, name, value, maxAttribute)
}

// writeLongAttribute is writeAttribute with more room, for paths and descriptions of
// files.
func writeLongAttribute(b *strings.Builder, name, value string) {
	writeAttributeUpTo(b, name, value, maxLongAttribute)
}

// writeAttributeUpTo does what writeAttribute does, with room for most characters.
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

// isPlain reports whether a value certainly needs no change by plain. It is cheap and
// true for nearly all values. That matters because each message of a log is framed
// whenever the model is asked.
func isPlain(value string, most int) bool {
	if len(value) > most {
		return false
	}
	space := true // the beginning counts as a space
	for i := range len(value) {
		c := value[i]
		if c < ' ' || c >= 0x7F || c == '"' || c == '<' || c == '>' || c == ' ' && space {
			return false
		}
		space = c == ' '
	}
	return value == "" || !space
}

// plain returns a value without the characters that an attribute must not have.
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

// escapeTags returns a text without anything that could be read as one of our tags.
func escapeTags(text string) string {
	if strings.IndexByte(text, '<') < 0 && !strings.Contains(text, "＜") && !strings.Contains(text, "﹤") { // fast, since it is done for each text of a log
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

// looksLikeTag reports whether the text after a "<" could be read as one of our tags,
// even if written in capitals, with invisible characters, or in letters that look alike.
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

// Words returns what people said themselves in a text with frames, message by message
// and without quotes and files.
func Words(text string) []string {
	const begin, end, quote, file = "<" + tagMessage + " ", "</" + tagMessage + ">", "<" + tagQuote + " ", "<" + tagFile + " "
	var said []string
	for {
		_, rest, found := strings.Cut(text, begin)
		if !found {
			return said
		}
		_, rest, _ = strings.Cut(rest, ">\n") // the end of the tag: attributes hold none
		words, after, _ := strings.Cut(rest, end)
		words, _, _ = strings.Cut(words, quote)
		words, _, _ = strings.Cut(words, file)
		said = append(said, strings.TrimSuffix(words, "\n"))
		text = after
	}
}
