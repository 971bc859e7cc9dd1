package sqldb

import (
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"
)

// marked begins a text that is written in hexadecimal.
const marked = `\x`

// Text is s as any database can hold it. Ids come from elsewhere and are
// compared, so those with a NUL or with invalid UTF-8, which PostgreSQL refuses,
// are written in hexadecimal: no two of them become one.
func Text(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 && !strings.HasPrefix(s, marked) {
		return s
	}
	return marked + hex.EncodeToString([]byte(s))
}

// Untext is what Text was made of.
func Untext(s string) string {
	if after, ok := strings.CutPrefix(s, marked); ok {
		if b, err := hex.DecodeString(after); err == nil {
			return string(b)
		}
	}
	return s
}

// rebind writes a query's ? as PostgreSQL's $1, $2 and so on, but for those
// within quotes.
func rebind(query string) string {
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
