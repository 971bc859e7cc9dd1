package markup

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/channels/markup/document"
)

// longestName is the length of the longest inline code that is read aloud, in characters.
const longestName = 40

// emojiVariation follows a character that is shown as an emoji.
const emojiVariation = '\uFE0F'

// RenderAloud returns what is read aloud of a Markdown text: its words, without code, tables, and the addresses of links. Inline
// code is read if it is a name. The result has at most `most` characters; if that leaves something out, it ends with a
// whole sentence, and whole is false. It is "" if nothing can be read.
func (r *Renderer) RenderAloud(md string, most int) (words string, whole bool) {
	md = document.Clean(md)
	cut := len(md) > maxParsed
	if cut {
		md = strings.ToValidUTF8(md[:maxParsed], "")
	}
	// This matches what is left around words that are not read aloud: HTML tags, empty brackets, and space
	// before punctuation.
	emptied := regexp.MustCompile(`</?[a-zA-Z][^<>]*>|\(\s*\)|\[\s*\]|\s+([.,;:!?])`)
	var said []string
	for _, b := range r.parser.Parse(md) {
		switch b.Kind {
		case document.Paragraph, document.Heading:
			for line := range strings.Lines(spokenWords(b.Spans)) {
				if line = spokenSentence(emptied.ReplaceAllString(line, "$1")); line != "" {
					said = append(said, line)
				}
			}
		}
	}
	words = strings.Join(said, "\n")
	if n := utf8.RuneCountInString(words); n > most {
		return cutSentence(words, most), false
	}
	return words, !cut
}

// spokenWords returns the words of spans that are read aloud.
func spokenWords(spans []document.Span) string {
	var b strings.Builder
	for _, s := range spans {
		switch {
		case s.IsBare(), s.Emoji != "", s.Style&document.Strike != 0:
		case s.Style&document.Marker != 0 && !strings.ContainsFunc(s.Text, unicode.IsDigit):
		case s.Style&document.Code != 0 && !isName(s.Text):
		default:
			b.WriteString(s.Text)
		}
	}
	return b.String()
}

// isName reports whether inline code is a name that can be read aloud, such as a file's or a command's.
func isName(code string) bool {
	return utf8.RuneCountInString(code) <= longestName && !strings.Contains(code, "://") && strings.ContainsFunc(code, unicode.IsLetter) &&
		!strings.ContainsFunc(code, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-/ ", r)
		})
}

// spokenSentence returns a line as it is read aloud, with a mark at its end that makes a pause; "" if it has no words.
func spokenSentence(line string) string {
	line = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.So, r) && r != '°' || unicode.Is(unicode.Sk, r) || r == emojiVariation { // an emoji, for example
			return -1
		}
		return r
	}, line)), " ")
	if !strings.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return ""
	}
	if last, _ := utf8.DecodeLastRuneInString(line); !unicode.IsPunct(last) {
		line += "."
	}
	return line
}

// cutSentence returns the beginning of a text with at most `most` characters: as many whole sentences as possible, or else
// words.
func cutSentence(text string, most int) string {
	letters := []rune(text)[:most]
	space := 0
	for i := most - 1; i > 0; i-- {
		switch {
		case unicode.IsSpace(letters[i]) && strings.ContainsRune(".!?…", letters[i-1]), strings.ContainsRune("。！？", letters[i-1]):
			return strings.TrimSpace(string(letters[:i]))
		case unicode.IsSpace(letters[i]) && space == 0:
			space = i
		}
	}
	if space == 0 {
		space = most
	}
	return strings.TrimSpace(string(letters[:space]))
}
