package tools

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// SniffBytes is how many bytes at the start of a file decide whether it is text.
const SniffBytes = 8 << 10

// IsBinary reports whether a file that begins with start, at most SniffBytes, is not text. It allows for some
// invalid bytes: the last character may be cut off, and not every text is in UTF-8.
func IsBinary(start []byte) bool {
	if bytes.IndexByte(start, 0) >= 0 {
		return true
	}
	if utf8.Valid(start) {
		return false
	}
	broken := 0
	for i := 0; i < len(start); {
		r, size := utf8.DecodeRune(start[i:])
		if r == utf8.RuneError && size == 1 {
			broken++
		}
		i += size
	}
	return broken > 3 && broken*10 > len(start)*3
}

// ShortenLine returns a line of a file as valid UTF-8 for a model, and cuts it after at most `most` bytes.
func ShortenLine(line string, most int) string {
	return strings.ReplaceAll(strings.ToValidUTF8(Clip(line, most), "\uFFFD"), "\x00", "\uFFFD")
}
