package agenttest

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// BareThinking returns a response whose text begins with thinking that has no opening tag: the model's template wrote
// that tag, so the model writes only the closing one.
func BareThinking(thought, text string) Response {
	return Reply(thought + "\n</think>\n\n" + text)
}

// SplitSurrogates returns a response that sends each character beyond U+FFFF in two events: the first event ends with
// the escape of the character's high surrogate, and the next begins with the escape of its low surrogate.
func SplitSurrogates(text string) Response {
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

// WithUsageAsTexts returns the response with the numbers of its usage written as JSON strings.
func (r Response) WithUsageAsTexts() Response {
	all := r.text()
	for _, number := range []string{"100", "10", "110"} {
		all = strings.ReplaceAll(all, `_tokens":`+number+`,`, `_tokens":"`+number+`",`)
		all = strings.ReplaceAll(all, `_tokens":`+number+`}`, `_tokens":"`+number+`"}`)
	}
	r.Parts = []Part{{Bytes: all}}
	return r
}

// BrokenAfterUsage returns a response that sends the beginning of an answer and the usage, and then resets the
// connection.
func BrokenAfterUsage(text string) Response {
	return Stream(`{"choices":[{"index":0,"delta":{"role":"assistant","content":`+quote(text)+`},"finish_reason":null}]}`, usageChunk).Reset()
}
