package transcript

import (
	"encoding/json"

	"parley/agent/llm"
	"parley/tools"
)

// BytesPerToken is a cautious guess where no provider has counted.
const BytesPerToken = 4

// clearable tells whether it saves something to empty a result.
func clearable(content json.RawMessage) bool { return len(content) > 2*len(clearedResult) }

// Estimate is about how many tokens a request has.
func Estimate(r llm.Request) int {
	n := len(r.System)
	for _, t := range r.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return n/BytesPerToken + EstimateMessages(r.Messages)
}

// EstimateMessages is about how many tokens messages have.
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

// TruncateResults cuts results that are longer than a quarter of limit, in tokens, if the
// messages do not fit into it. The same log and limit give the same bytes.
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
