// Package frames puts each text that a model reads into a frame that says whose it is: the words of people,
// files, what an agent remembers, and what the system says. No text within a frame can forge one.
//
// A text is escaped when it is written for a model; it is stored as it was said. The same text always gives the
// same bytes, so that providers can reuse what they have cached.
package frames

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The tags of all frames. Only the functions of this package and their callers write these.
const (
	Message    = "message"
	Quote      = "quote"
	Attachment = "attachment"
	Notice     = "notice"
	Summary    = "summary"
	Past       = "past"       // around the model's own acts, in a text that retells them
	File       = "file"       // around a file in the prompt
	Remembered = "remembered" // around what the agent remembers
	Lately     = "lately"     // around what the agent did in turns that it no longer sees
	Judged     = "judged"     // around a call that a model judges
)

// tags returns the tags of all frames.
func tags() [10]string {
	return [...]string{Message, Quote, Attachment, Notice, Summary, Past, File, Remembered, Lately, Judged}
}

const (
	maxAttribute     = 100 // characters
	maxLongAttribute = 400
)

// WriteAttribute writes an attribute, unless its value is empty. It reduces the value to one line of at most
// maxAttribute visible characters, without those that could end the attribute or the tag.
func WriteAttribute(b *strings.Builder, name, value string) {
	writeUpTo(b, name, value, maxAttribute)
}

// WriteLongAttribute does the same as WriteAttribute with more room, for paths and descriptions of files.
func WriteLongAttribute(b *strings.Builder, name, value string) {
	writeUpTo(b, name, value, maxLongAttribute)
}

// writeUpTo does the same as WriteAttribute for at most most characters.
func writeUpTo(b *strings.Builder, name, value string, most int) {
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

// isPlain reports whether plain would certainly not change a value. It is fast, and true for nearly all values.
// That matters because each message of a log is framed whenever the model is asked.
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

// plain returns a value without the characters that are not allowed in an attribute.
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
	value, _ = Cut(value, most)
	return value
}

// Escape returns a text in which nothing can be read as one of our tags: it replaces the "<" of each by "&lt;".
func Escape(text string) string {
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

// looksLikeTag reports whether the text after a "<" could be read as one of our tags, even if it is written in
// capitals, with invisible characters, or in letters that look alike.
func looksLikeTag(text string) bool {
	const longest = 64 // characters looked at
	var word strings.Builder
	latin, foreign, hidden, ended := false, false, false, false
	seen := 0
	for _, r := range text {
		if seen++; seen > longest {
			break
		}
		switch {
		case word.Len() == 0 && (unicode.IsSpace(r) || strings.ContainsRune(`/\／∕⁄`, r)):
			continue
		case unicode.In(r, unicode.Cf, unicode.Mn), unicode.IsControl(r):
			hidden = true
			continue
		case r < utf8.RuneSelf && unicode.IsLetter(r):
			latin = true
		case unicode.IsLetter(r):
			foreign = true
			// These blocks hold variants of Latin letters.
			latin = latin || '\uFF21' <= r && r <= '\uFF5A' || 0x1D400 <= r && r <= 0x1D7FF
		default:
			ended = true
		}
		if ended {
			break
		}
		word.WriteRune(unicode.ToLower(r))
	}
	if latin && foreign || seen > longest { // too long for a word, but a word may hide in it
		return true
	}
	return isTag(word.String(), hidden)
}

// isTag reports whether a word could be read as one of our tags. Words that begin with a tag count too, except
// with File, because people write many such words in code, as in <filename>. hidden says that characters were
// left out of the word, which may have separated two words.
func isTag(word string, hidden bool) bool {
	for _, tag := range tags() {
		if strings.HasPrefix(word, tag) && (tag != File || word == tag || hidden) {
			return true
		}
	}
	return false
}

// Cut returns the first n characters of a text, and how many characters follow them.
func Cut(text string, n int) (string, int) {
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
