// Package charset converts texts that are not in UTF-8, such as old files, to UTF-8.
package charset

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// Decode converts a text in an unknown encoding to UTF-8. The note tells the model which encoding
// was guessed; it is "" if nothing had to be guessed.
func Decode(content []byte) (text, note string) {
	switch {
	case bytes.HasPrefix(content, []byte("\xef\xbb\xbf")):
		content = content[3:]
	case bytes.HasPrefix(content, []byte("\xff\xfe")):
		return decodeUTF16(content[2:], false), ""
	case bytes.HasPrefix(content, []byte("\xfe\xff")):
		return decodeUTF16(content[2:], true), ""
	}
	if utf8.Valid(content) && bytes.IndexByte(content[:min(len(content), 1024)], 0) < 0 {
		return string(content), ""
	}
	if big, ok := looksUTF16(content); ok {
		return decodeUTF16(content, big), ""
	}
	for _, name := range []string{"shift_jis", "euc-jp", "gb18030", "euc-kr", "big5"} {
		if text, ok := decodeEastAsian(content, name); ok {
			return text, "its charset is not UTF-8 and was taken for " + name
		}
	}
	encoding, _ := charset.Lookup("windows-1252")
	decoded, err := encoding.NewDecoder().Bytes(content)
	if err != nil {
		decoded = content
	}
	return strings.ToValidUTF8(string(decoded), "\uFFFD"), "its charset is not UTF-8 and was taken for windows-1252"
}

// decodeUTF16 decodes UTF-16; big says that the high byte comes first.
func decodeUTF16(content []byte, big bool) string {
	units := make([]uint16, len(content)/2)
	for i := range units {
		a, b := uint16(content[2*i]), uint16(content[2*i+1])
		if big {
			a, b = b, a
		}
		units[i] = a | b<<8
	}
	return string(utf16.Decode(units))
}

// looksUTF16 reports whether a text without a byte order mark is UTF-16, and whether the high
// byte of each character comes first (big). In such a text, if it has Latin letters, every other
// byte is zero.
func looksUTF16(content []byte) (big, ok bool) {
	start := content[:min(len(content), 1024)&^1]
	zeros := [2]int{}
	for i, c := range start {
		if c == 0 {
			zeros[i%2]++
		}
	}
	enough := len(start) / 5
	switch {
	case zeros[1] > enough && zeros[0] == 0:
		return false, true
	case zeros[0] > enough && zeros[1] == 0:
		return true, true
	}
	return false, false
}

// decodeEastAsian decodes a text in an East Asian charset. It returns false unless all of it is
// valid in that charset and most characters beyond ASCII are letters that people write there.
func decodeEastAsian(content []byte, name string) (string, bool) {
	encoding, _ := charset.Lookup(name)
	decoded, err := encoding.NewDecoder().Bytes(content)
	if err != nil || bytes.Contains(decoded, []byte("\uFFFD")) {
		return "", false
	}
	letters, usual := 0, 0
	for _, r := range string(decoded) {
		if r < 0x80 {
			continue
		}
		letters++
		if r >= 0x3040 && r <= 0x30FF || r >= 0x4E00 && r <= 0x9FFF || r >= 0xAC00 && r <= 0xD7A3 || r >= 0x3000 && r <= 0x3020 || r >= 0xFF01 && r <= 0xFF60 {
			usual++
		}
	}
	return string(decoded), letters >= 4 && usual*10 >= letters*9 && !hasLoneBytes(content)
}

// hasLoneBytes reports whether most bytes beyond ASCII are surrounded by ASCII bytes, as accented
// letters in European texts are. In East Asian texts they come in pairs.
func hasLoneBytes(content []byte) bool {
	alone, runs := 0, 0
	for i := 0; i < len(content); {
		if content[i] < 0x80 {
			i++
			continue
		}
		from := i
		for i < len(content) && content[i] >= 0x80 {
			i++
		}
		runs++
		if i-from == 1 {
			alone++
		}
	}
	return alone*2 > runs
}

// Reader returns a reader that converts what it reads from the charset named label to UTF-8. It fails if it does not
// know that charset.
func Reader(label string, from io.Reader) (io.Reader, error) {
	return charset.NewReaderLabel(label, from)
}
