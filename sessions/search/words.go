package search

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A token is a word of a text, or a part of one, in the form in which words are compared.
type token struct {
	stemmed  string // without case, marks and endings
	exact    string // without case and marks
	from, to int    // where the word is in the text, in bytes
}

// Limits in bytes. A run of more than longestRun is no word but a key, or a picture as text. Words and compounds of more than
// longestToken are left out.
const (
	longestRun   = 128
	longestToken = 96
)

// tokens cuts a text into words, in their order. A compound such as foo_bar, a path or a number with
// separators comes as its parts and as a whole without separators; runs of scripts that have no spaces come as
// pairs of characters.
func tokens(text string) iter.Seq[token] {
	return func(yield func(token) bool) {
		c := cutter{text: text, emitToken: yield}
		for at := 0; at < len(text) && !c.stopped; {
			r, size := utf8.DecodeRuneInString(text[at:])
			switch {
			case isUnspaced(r):
				c.endCompound()
				at = c.cutRun(at)
			case isWordRune(r):
				at = c.cutWord(at)
			case isJoiner(r) && c.isJoined(at, size):
				at += size
			default:
				c.endCompound()
				at += size
			}
		}
		c.endCompound()
	}
}

// A cutter cuts one text. parts, whole, from and to describe the compound that it has reached.
type cutter struct {
	text      string
	emitToken func(token) bool
	stopped   bool // whether nobody wants more

	partCount int
	compound  strings.Builder // of the parts, as they are compared
	from, to  int
}

func (c *cutter) emit(exact string, from, to int) {
	if exact != "" && len(exact) <= longestToken && !c.stopped {
		c.stopped = !c.emitToken(token{stemmed: stem(exact), exact: exact, from: from, to: to})
	}
}

// isJoined reports whether the character at a place joins the words before and after it.
func (c *cutter) isJoined(at, size int) bool {
	if c.partCount == 0 || c.to != at {
		return false
	}
	next, _ := utf8.DecodeRuneInString(c.text[at+size:])
	if !isWordRune(next) || isUnspaced(next) {
		return false
	}
	return c.text[at] != ',' || isDigit(next) && isDigit(rune(c.text[at-1]))
}

// endCompound emits the compound as a whole if it has several parts.
func (c *cutter) endCompound() {
	if c.partCount > 1 && c.compound.Len() <= longestToken {
		c.emit(c.compound.String(), c.from, c.to)
	}
	c.partCount = 0
	c.compound.Reset()
}

// cutWord emits the word that begins at a place, and the parts of one like getUserName or 10kg. It returns where
// it ends.
func (c *cutter) cutWord(at int) (end int) {
	end = at
	var cuts []int
	var last rune
	for end < len(c.text) {
		r, size := utf8.DecodeRuneInString(c.text[end:])
		if !isWordRune(r) || isUnspaced(r) {
			break
		}
		if end > at && !unicode.Is(unicode.M, r) && (isDigit(last) != isDigit(r) || unicode.IsLower(last) && unicode.IsUpper(r)) {
			cuts = append(cuts, end)
		}
		last, end = r, end+size
	}
	if end-at > longestRun { // no word: a key, or a picture as text
		c.endCompound()
		return end
	}
	exact := Fold(c.text[at:end])
	if c.partCount == 0 {
		c.from = at
	}
	afterApostrophe := c.partCount > 0 && len(exact) == 1 && at > 0 && !isSeparator(c.text[at-1])
	if !afterApostrophe { // the s of Anna's
		c.emit(exact, at, end)
	}
	if len(cuts) > 0 && len(cuts) < 8 {
		from := at
		for _, to := range append(cuts, end) {
			if to-from > 1 {
				c.emit(Fold(c.text[from:to]), from, to)
			}
			from = to
		}
	}
	c.partCount++
	c.to = end
	c.compound.WriteString(exact)
	return end
}

// cutRun emits the pairs of characters of a run without spaces, and each character of Han by itself. It
// returns where the run ends.
func (c *cutter) cutRun(at int) (end int) {
	before := -1 // where the character before begins
	end = at
	for end < len(c.text) {
		r, size := utf8.DecodeRuneInString(c.text[end:])
		if !isUnspaced(r) {
			break
		}
		if before >= 0 {
			c.emit(Fold(c.text[before:end+size]), before, end+size)
		}
		alone := before < 0 && !c.runContinues(end+size)
		if alone || unicode.Is(unicode.Han, r) {
			c.emit(Fold(c.text[end:end+size]), end, end+size)
		}
		before, end = end, end+size
	}
	return end
}

// runContinues reports whether a run without spaces goes on at a place.
func (c *cutter) runContinues(at int) bool {
	r, _ := utf8.DecodeRuneInString(c.text[at:])
	return at < len(c.text) && isUnspaced(r)
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' || r > unicode.MaxASCII && unicode.IsDigit(r) }

func isWordRune(r rune) bool {
	if r <= unicode.MaxASCII {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.M, r))
}

// isJoiner reports whether words with this character between them are one name or number.
func isJoiner(r rune) bool { return strings.ContainsRune("_-./:@'’\\,", r) }

// isSeparator reports whether a byte is a joiner other than an apostrophe.
func isSeparator(b byte) bool { return strings.IndexByte("_-./:@\\,", b) >= 0 }

// isUnspaced reports whether a character belongs to a script that is written without spaces between words, or in which
// a space doesn't separate every two words, as in Korean.
func isUnspaced(r rune) bool {
	const longVowel = 'ー' // of Katakana, which Unicode counts to several scripts
	return r >= 0x0E00 && (r == longVowel || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar))
}

// Fold returns a word without case and without the marks of letters: ZÜRICH and zürich are zurich.
func Fold(word string) string {
	ascii, lower := true, true
	for i := range len(word) {
		ascii = ascii && word[i] < utf8.RuneSelf
		lower = lower && (word[i] < 'A' || word[i] > 'Z')
	}
	switch {
	case ascii && lower:
		return word
	case ascii:
		return strings.ToLower(word)
	}
	var b strings.Builder
	for _, r := range norm.NFKD.String(strings.ToLower(word)) {
		switch {
		case isMark(r):
		case r == 'ß':
			b.WriteString("ss")
		case r == 'æ':
			b.WriteString("ae")
		case r == 'œ':
			b.WriteString("oe")
		case r == 'ø':
			b.WriteByte('o')
		case r == 'ł':
			b.WriteByte('l')
		case r == 'đ', r == 'ð':
			b.WriteByte('d')
		case r == 'ı':
			b.WriteByte('i')
		default:
			b.WriteRune(r)
		}
	}
	return norm.NFC.String(b.String())
}

// isMark reports whether a character only marks the letter before it: accents, and the vowel points of Arabic and
// Hebrew. Elsewhere such characters are vowels.
func isMark(r rune) bool {
	return 0x0300 <= r && r <= 0x036F || 0x0591 <= r && r <= 0x05C7 || 0x064B <= r && r <= 0x065F || r == 0x0670
}

// shortestStem is the fewest letters that stem leaves of a word.
const shortestStem = 3

// stem cuts off the endings of plurals and cases, in English and German, and those of English verbs. It cuts
// little. Different words may get the same form; then exact matches count for more.
func stem(word string) string {
	if len(word) <= shortestStem || !isPlainWord(word) {
		return word
	}
	s := word
	if strings.HasSuffix(s, "s") && !strings.HasSuffix(s, "ss") && !strings.HasSuffix(s, "us") && !strings.HasSuffix(s, "is") && len(s) > shortestStem {
		s = s[:len(s)-1]
	}
	if len(s) > shortestStem+2 && (strings.HasSuffix(s, "ern") || strings.HasSuffix(s, "eln")) {
		s = s[:len(s)-1] // Kindern, Kartoffeln
	}
	for _, ending := range []string{"innen", "ing", "ed", "en", "er", "em", "es", "e"} {
		rest, cut := strings.CutSuffix(s, ending)
		if !cut || len(rest) < shortestStem || !hasVowel(rest) || ending == "ing" && len(rest) < shortestStem+1 && !isDoubled(rest) {
			continue
		}
		if ending == "innen" {
			rest += "in"
		}
		if s = rest; ending == "ing" || ending == "ed" {
			if isDoubled(s) && !strings.HasSuffix(s, "ss") && !strings.HasSuffix(s, "ll") {
				s = s[:len(s)-1]
			}
		}
		break
	}
	if len(s) > shortestStem && s[len(s)-1] == 'y' {
		s = s[:len(s)-1] + "i" // city, citi(es)
	}
	return s
}

// isDoubled reports whether a word ends with the same letter twice.
func isDoubled(s string) bool { return len(s) > 1 && s[len(s)-1] == s[len(s)-2] }

func hasVowel(s string) bool { return strings.ContainsAny(s, "aeiouy") }

func isPlainWord(word string) bool {
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return false
		}
	}
	return true
}

// A Word is a word of a query, with the forms in which texts may have it.
type Word struct {
	Exact string
	Forms []string
}

// WordsOf cuts a query into its words, at most MaxWords. The commonest words of English and German are left out
// if there are others.
func WordsOf(query string) []Word {
	var all, rare []Word
	for t := range tokens(query) {
		if slices.ContainsFunc(all, func(w Word) bool { return w.Forms[0] == t.stemmed }) {
			continue
		}
		w := Word{Exact: t.exact, Forms: formsOf(query[t.from:t.to], t)}
		if all = append(all, w); !isCommon(t.exact) {
			rare = append(rare, w)
		}
		if len(rare) == MaxWords || len(all) == 4*MaxWords {
			break
		}
	}
	if len(rare) > 0 {
		return rare
	}
	return all[:min(len(all), MaxWords)]
}

// formsOf returns the forms of a word: the word itself; if it has umlauts, the word with each of them as two
// letters (ü as ue); and if it has such pairs of letters, the word with each of them as one.
func formsOf(original string, t token) []string {
	forms := []string{t.stemmed}
	add := func(exact string) {
		if f := stem(exact); !slices.Contains(forms, f) {
			forms = append(forms, f)
		}
	}
	if lower := norm.NFC.String(strings.ToLower(original)); strings.ContainsAny(lower, "äöü") && Fold(lower) == t.exact {
		add(Fold(strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue").Replace(lower)))
	}
	if isPlainWord(t.exact) && (strings.Contains(t.exact, "ae") || strings.Contains(t.exact, "oe") || strings.Contains(t.exact, "ue")) {
		add(strings.NewReplacer("ae", "a", "oe", "o", "ue", "u").Replace(t.exact))
	}
	return forms
}

// commonWords has the words that nearly every text has, in English and in German.
const commonWords = " " +
	"a about am an and any are as at be been but by can could did do does for from had has have he her " +
	"him his how i if in into is it its let me my no not of on or our she should so some tell than that " +
	"the their them then there they this to us was we were what when where which who whom why will with " +
	"would you your aber als am an auch auf aus bei bin bis da das dass dein dem den der des dich die dir " +
	"doch du ein eine einem einen einer er es euch fur hab habe haben hast hat hatte hatten ich ihm ihn " +
	"ihr im in ist ja kann mal man mein meine meinem meinen meiner mich mir mit nach nein nicht noch nun " +
	"nur ob oder sein seine sich sie sind so uber um und uns unser unsere vom von vor wann war waren " +
	"warum was wegen weil welche welcher welches wem wen wenn wer werden wie wieder wir wird wo wurde zu " +
	"zum zur "

// isCommon reports whether a word as Fold returns it is one of the commonest.
func isCommon(exact string) bool { return strings.Contains(commonWords, " "+exact+" ") }
