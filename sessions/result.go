package sessions

import (
	"cmp"
	"encoding/json"
)

// The values of Result.Status.
const (
	ResultOK    = "ok"
	ResultError = "error"
)

// The types of results whose tools don't say more.
const (
	mimeText = "text/plain"
	mimeJSON = "application/json"
)

// A Result is the result of a tool call in the form in which programs read it: the same for all tools. It is derived
// from what the log has.
type Result struct {
	ID     string `json:"id"` // the call's
	Status string `json:"status"`
	// Content is the text of the result; if it has no main text, the result as JSON; if the call failed, why.
	Content  string         `json:"content"`
	Metadata ResultMetadata `json:"metadata"`
	Reason   string         `json:"reason,omitempty"` // the code of the failure
}

// ResultMetadata describes the content of a Result.
type ResultMetadata struct {
	Bytes     int64  `json:"bytes"`     // before it was shortened for the model
	Truncated bool   `json:"truncated"` // it was shortened
	MIME      string `json:"mime"`
}

// Result returns the result of the call with that id.
func (r ToolResult) Result(call string) Result {
	result := Result{ID: call, Status: ResultOK, Reason: r.Code}
	if r.Code != "" {
		result.Status = ResultError
	}
	result.Content, result.Metadata.MIME = r.text()
	result.Metadata.Bytes, result.Metadata.Truncated = cmp.Or(r.Bytes, int64(len(result.Content))), r.Bytes > 0
	return result
}

// text returns the result's main text and its MIME type.
func (r ToolResult) text() (text, mime string) {
	if len(r.Content) > 0 && r.Content[0] == '"' && json.Unmarshal(r.Content, &text) == nil {
		return text, cmp.Or(r.MIME, mimeText)
	}
	if r.Code != "" {
		var failed struct{ Error struct{ Message string } }
		if json.Unmarshal(r.Content, &failed) == nil && failed.Error.Message != "" {
			return failed.Error.Message, mimeText
		}
	}
	if r.Field != "" {
		var fields map[string]json.RawMessage
		if json.Unmarshal(r.Content, &fields) == nil && len(fields[r.Field]) > 0 && json.Unmarshal(fields[r.Field], &text) == nil {
			return text, cmp.Or(r.MIME, mimeText)
		}
	}
	return string(r.Content), mimeJSON
}
