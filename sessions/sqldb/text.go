package sqldb

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// hexPrefix begins a text that Text has written in hexadecimal.
const hexPrefix = `\x`

// Text returns s in a form that any database can store. PostgreSQL refuses NUL and invalid UTF-8, so
// texts with these are written in hexadecimal. They are not just cleaned, because ids from outside are
// compared, and no two of them may become equal.
func Text(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 && !strings.HasPrefix(s, hexPrefix) {
		return s
	}
	return hexPrefix + hex.EncodeToString([]byte(s))
}

// FormatTime returns a time as tables store it: in UTC, to the microsecond, so that texts sort as times do.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// ParseTime returns the time that FormatTime has written.
func ParseTime(text string) (time.Time, error) { return time.Parse(time.RFC3339Nano, text) }

// Micros returns a time as tables store it that calculate with times: in microseconds since 1970; 0 for the zero time.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// FromMicros returns the time that Micros has written, in UTC.
func FromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// Untext returns the original of a text that Text has returned.
func Untext(s string) string {
	if after, ok := strings.CutPrefix(s, hexPrefix); ok {
		if b, err := hex.DecodeString(after); err == nil {
			return string(b)
		}
	}
	return s
}

// numberPlaceholders replaces each ? of a query by PostgreSQL's $1, $2, …, but not a ?
// that is in quotes.
func numberPlaceholders(query string) string {
	if !strings.Contains(query, "?") {
		return query
	}
	var b strings.Builder
	n, quote := 0, rune(0)
	for _, c := range query {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '?':
			n++
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(n))
			continue
		}
		b.WriteRune(c)
	}
	return b.String()
}
