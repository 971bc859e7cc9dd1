package transcript

import (
	"encoding/json"

	"parley/agent/llm"
	"parley/tools"
)

// BytesPerToken is a guess at how many bytes of text make one token. It is used until a provider has counted
// the tokens of a request.
const BytesPerToken = 4

// isClearable reports whether emptying a result would save room.
func isClearable(content json.RawMessage) bool { return len(content) > 2*len(clearedResult) }

// Estimate estimates how many tokens a request has.
func Estimate(r *llm.Request) int {
	r.Restore()
	n := len(r.System)
	for _, t := range r.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return n/BytesPerToken + EstimateMessages(r.Messages)
}

// EstimateMessages returns roughly how many tokens messages have, based on their length in bytes plus a fixed
// amount for each picture. It doesn't know the model; package estimate corrects for that.
func EstimateMessages(messages []llm.Message) int {
	n := 0
	for _, m := range messages {
		for _, b := range m.Blocks {
			n += len(b.Text) + len(b.Args) + len(b.Content) + len(b.Provider) + 16
			if b.Kind == llm.BlockPicture {
				n += pictureTokens * BytesPerToken
			}
		}
	}
	return n / BytesPerToken
}

// TruncateResults shortens messages that together have more than limit tokens: it cuts each tool result that has
// more than a quarter of limit. A limit of 0 means none. The same messages and limit give the same bytes.
func TruncateResults(messages []llm.Message, limit int) {
	if limit <= 0 || EstimateMessages(messages) <= limit {
		return
	}
	most := limit * BytesPerToken / 4
	for _, m := range messages {
		for i, b := range m.Blocks {
			if b.Kind == llm.BlockToolResult && len(b.Content) > most {
				m.Blocks[i].Content, _ = tools.Truncate(b.Content, most, "")
			}
		}
	}
}
