package agenttest

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// Bare returns a response whose text begins with thinking that no tag begins: the model's template
// has written that tag, and the model only the one after its thinking.
func Bare(thought, text string) Response {
	return Reply(thought + "\n</think>\n\n" + text)
}

// Halves returns a response with a text of which each character beyond the first 65,536 comes in two
// events: the first ends with the escape of one half of a surrogate pair, and the next begins with
// that of the other.
func Halves(text string) Response {
	var chunks []string
	piece := ""
	flush := func() {
		chunks = append(chunks, `{"choices":[{"index":0,"delta":{"content":"`+piece+`"},"finish_reason":null}]}`)
		piece = ""
	}
	for _, r := range text {
		first, second := utf16.EncodeRune(r)
		if first == '\uFFFD' {
			escaped := quote(string(r))
			piece += escaped[1 : len(escaped)-1]
			continue
		}
		piece += fmt.Sprintf(`\u%04x`, first)
		flush()
		piece += fmt.Sprintf(`\u%04x`, second)
	}
	flush()
	return Stream(append(chunks, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, usageChunk, "[DONE]")...)
}

// WithUsageAsTexts returns the response with the numbers of its usage in quotes.
func (r Response) WithUsageAsTexts() Response {
	all := r.text()
	for _, number := range []string{"100", "10", "110"} {
		all = strings.ReplaceAll(all, `_tokens":`+number+`,`, `_tokens":"`+number+`",`)
		all = strings.ReplaceAll(all, `_tokens":`+number+`}`, `_tokens":"`+number+`"}`)
	}
	r.Parts = []Part{{Bytes: all}}
	return r
}

// BrokenAfterUsage returns a response with the beginning of an answer and its usage, after which the
// connection is reset.
func BrokenAfterUsage(text string) Response {
	return Stream(`{"choices":[{"index":0,"delta":{"role":"assistant","content":`+quote(text)+`},"finish_reason":null}]}`, usageChunk).Reset()
}
