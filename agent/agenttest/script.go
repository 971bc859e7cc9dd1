package agenttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/agent/transcript"
)

// A Request is one request to the scripted model.
type Request struct {
	Path, Query string // of the requested URL
	N           int    // the number of the request, from 1
	Header      http.Header
	Body        []byte
}

// A Message is one message in a request.
type Message struct {
	Role    string
	Content string // its texts alone, joined by empty lines
	// Pictures are the data: URLs of the message's pictures.
	Pictures []string
	Calls    []ToolCall
	CallID   string // the id of the call that a tool message answers
	Raw      json.RawMessage
}

// A ToolCall is a call of a tool.
type ToolCall struct {
	ID   string // if empty, the response gets one
	Name string // the tool's name
	Args string // JSON; {} if empty
}

// Decode decodes the request's body.
func (r Request) Decode(v any) error { return json.Unmarshal(r.Body, v) }

// Messages returns all messages of the request; nil if the body cannot be read.
func (r Request) Messages() []Message {
	var body struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := r.Decode(&body); err != nil {
		return nil
	}
	out := make([]Message, 0, len(body.Messages))
	for _, raw := range body.Messages {
		out = append(out, messageOf(raw))
	}
	return out
}

// messageOf decodes one message of a request.
func messageOf(raw json.RawMessage) Message {
	var m struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		Calls   []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
		CallID string `json:"tool_call_id"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return Message{Raw: raw}
	}
	out := Message{Role: m.Role, CallID: m.CallID, Raw: raw}
	out.Content, out.Pictures = contentOf(m.Content)
	for _, c := range m.Calls {
		out.Calls = append(out.Calls, ToolCall{ID: c.ID, Name: c.Function.Name, Args: c.Function.Arguments})
	}
	return out
}

// contentOf returns the text and the pictures in a message's content.
func contentOf(raw json.RawMessage) (text string, pictures []string) {
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Text  string `json:"text"`
		Image struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", nil
	}
	var texts []string
	for _, p := range parts {
		if p.Image.URL != "" {
			pictures = append(pictures, p.Image.URL)
			continue
		}
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n\n"), pictures
}

// Said returns the text of the last user message, without the frame that the prompt puts around people's words,
// and without quotes of earlier messages.
func (r Request) Said() string {
	raw, _ := r.lastUserMessage()
	text := messageOf(raw).Content
	if said := transcript.Words(text); len(said) > 0 {
		return strings.Join(said, "\n\n")
	}
	return text
}

// Results returns the contents of the tool messages after the last user message.
func (r Request) Results() []string {
	var out []string
	_, rest := r.lastUserMessage()
	for len(rest) > 0 {
		at := bytes.Index(rest, []byte(`{"role":"tool"`))
		if at < 0 {
			break
		}
		raw := firstValue(rest[at:])
		out = append(out, messageOf(raw).Content)
		rest = rest[at+len(raw):]
	}
	return out
}

// Rounds returns how many times the model has called tools since the last user message.
func (r Request) Rounds() int {
	_, rest := r.lastUserMessage()
	return bytes.Count(rest, []byte(`{"role":"assistant"`))
}

// lastUserMessage returns the last user message, and the bytes that follow it. It searches the bytes instead of
// decoding the whole request, which would slow benchmarks down too much. The search can't match inside a text,
// because a message begins with its role and quotation marks in texts are escaped.
func (r Request) lastUserMessage() (message, rest []byte) {
	at := bytes.LastIndex(r.Body, []byte(`{"role":"user"`))
	if at < 0 {
		return nil, nil
	}
	message = firstValue(r.Body[at:])
	return message, r.Body[at+len(message):]
}

// firstValue returns the JSON value at the beginning of a text.
func firstValue(text []byte) json.RawMessage {
	var raw json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&raw); err != nil {
		return text
	}
	return raw
}

// A Tool is a tool that a request offers.
type Tool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  map[string]any `json:"parameters"`
}

// Tools returns the names of the tools that the request offers.
func (r Request) Tools() []string {
	var names []string
	for _, t := range r.Offered() {
		names = append(names, t.Name)
	}
	return names
}

// Offered returns the tools that the request offers.
func (r Request) Offered() []Tool {
	var body struct {
		Tools []struct {
			Tool           // the Responses API has the fields here
			Function *Tool `json:"function"`
		} `json:"tools"`
	}
	if err := r.Decode(&body); err != nil {
		return nil
	}
	var all []Tool
	for _, t := range body.Tools {
		if t.Function != nil {
			t.Tool = *t.Function
		}
		all = append(all, t.Tool)
	}
	return all
}

// ForbidsCalls reports whether the request forbids the model to call tools.
func (r Request) ForbidsCalls() bool {
	return slices.ContainsFunc([]string{`"tool_choice":"none"`, `"tool_choice": "none"`}, func(s string) bool {
		return bytes.Contains(r.Body, []byte(s))
	})
}

// Reply returns a response that streams a text in a few pieces.
func Reply(text string) Response {
	chunks := []string{`{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`}
	for _, piece := range strings.SplitAfterN(text, " ", 4) {
		chunks = append(chunks, `{"choices":[{"index":0,"delta":{"content":`+quote(piece)+`},"finish_reason":null}]}`)
	}
	return Stream(append(chunks, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, usageChunk, "[DONE]")...)
}

const usageChunk = `{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}}`

// Call returns a call of a tool, with its arguments as JSON.
func Call(name, args string) ToolCall { return ToolCall{Name: name, Args: args} }

// Calls returns a response with tool calls, streamed the way OpenAI does: each name first, then the arguments.
func Calls(calls ...ToolCall) Response {
	var chunks []string
	for i, c := range calls {
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%d", i+1)
		}
		if c.Args == "" {
			c.Args = "{}"
		}
		half := len(c.Args) / 2
		for !utf8.RuneStart(c.Args[half]) {
			half--
		}
		chunks = append(chunks,
			callChunk(fmt.Sprintf(`{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}`, i, quote(c.ID), quote(c.Name))),
			callChunk(fmt.Sprintf(`{"index":%d,"function":{"arguments":%s}}`, i, quote(c.Args[:half]))),
			callChunk(fmt.Sprintf(`{"index":%d,"function":{"arguments":%s}}`, i, quote(c.Args[half:]))))
	}
	return Stream(append(chunks, `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, usageChunk, "[DONE]")...)
}

// callChunk returns the data of an event that holds one part of a tool call.
func callChunk(call string) string {
	return `{"choices":[{"index":0,"delta":{"tool_calls":[` + call + `]},"finish_reason":null}]}`
}

// Stream returns a response that is a stream of events with the given data.
func Stream(data ...string) Response {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: ")
		b.WriteString(d)
		b.WriteString("\n\n")
	}
	return Raw(b.String())
}

// Raw returns a response with the given parts as its body.
func Raw(parts ...string) Response {
	var r Response
	for _, p := range parts {
		r.Parts = append(r.Parts, Part{Bytes: p})
	}
	return r
}

// Fail returns a response with an error status. headers alternates names and values.
func Fail(status int, body string, headers ...string) Response {
	r := Raw(body)
	r.Status = status
	r.Header = http.Header{"Content-Type": {"application/json"}}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// Rounds returns a script that plays responses in order within each conversation: the first when a person has
// said something, and the next one after each round of tool calls. It repeats the last response.
func Rounds(responses ...Response) Script {
	return func(r Request) Response {
		return responses[min(r.Rounds(), len(responses)-1)]
	}
}

// Always returns a script that always plays the same response.
func Always(r Response) Script { return func(Request) Response { return r } }

// Sequence returns a script that plays responses in the order of requests, regardless of the conversation. It
// repeats the last response.
func Sequence(responses ...Response) Script {
	return func(r Request) Response { return responses[min(r.N, len(responses))-1] }
}

// quote returns a text as a JSON string.
func quote(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always marshals
	}
	return string(raw)
}
