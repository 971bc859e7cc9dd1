package openai

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"parley/agent/llm"
	"parley/agent/openai/wire"
	"parley/tools/plainjson"
)

// The body of a request. The library's own types leave out empty and zero fields that servers need, and lack
// fields that some providers want back.
type (
	wireRequest struct {
		Model    string
		Messages []wireMessage
		wireOptions
	}
	// wireOptions follow the messages in the body.
	wireOptions struct {
		ToolChoice          string         `json:"tool_choice,omitempty"`
		Stream              bool           `json:"stream"`
		StreamOptions       *streamOptions `json:"stream_options,omitempty"`
		MaxTokens           int            `json:"max_tokens,omitempty"`
		MaxCompletionTokens int            `json:"max_completion_tokens,omitempty"`
		ReasoningEffort     string         `json:"reasoning_effort,omitempty"`
		PromptCacheKey      string         `json:"prompt_cache_key,omitempty"`
	}
	streamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	}
	wireMessage struct {
		Role             string          `json:"role"`
		Content          wireContent     `json:"-"`       // empty if there are only tool calls
		Written          any             `json:"content"` // the JSON form of Content; null if there are only tool calls
		ReasoningContent string          `json:"reasoning_content,omitempty"`
		ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"`
		ExtraContent     json.RawMessage `json:"extra_content,omitempty"`
		ToolCalls        []wireCall      `json:"tool_calls,omitempty"`
		ToolCallID       string          `json:"tool_call_id,omitempty"`
	}
	wireCall struct {
		ID       string       `json:"id"`
		Type     string       `json:"type"`
		Function wireFunction `json:"function"`
		callExtra
	}
	wireFunction struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
)

// callExtra holds the fields that a provider wants back with a tool call, unchanged.
type callExtra struct {
	ExtraContent     json.RawMessage `json:"extra_content,omitempty"`
	ThoughtSignature json.RawMessage `json:"thought_signature,omitempty"`
}

// A savedCall is the content of a tool use's Provider field.
type savedCall struct {
	By string `json:"by"` // the host of the server that sent it; other servers don't understand it
	callExtra
}

// A savedThought is the content of a thinking block's Provider field.
type savedThought struct {
	By string `json:"by"`
	// Echo reports that the server wants the thinking itself back, as reasoning_content.
	Echo    bool            `json:"echo,omitempty"`
	Details json.RawMessage `json:"reasoning_details,omitempty"`
	Extra   json.RawMessage `json:"extra_content,omitempty"`
}

// A wireContent is the content of a message: a text, a list of texts and pictures, or nothing. A single text is
// written as a JSON string, which every server understands.
type wireContent struct {
	text  string
	parts []wirePart // used instead of text
}

type (
	wirePart struct {
		Type  string     `json:"type"` // text or image_url
		Text  string     `json:"text,omitempty"`
		Image *wireImage `json:"image_url,omitempty"`
		Cache *wireCache `json:"cache_control,omitempty"`
	}
	wireCache struct {
		Type string `json:"type"` // ephemeral
	}
	wireImage struct {
		URL string `json:"url"` // always a data: URL
	}
)

// jsonValue returns the value to encode as JSON: a string, a list of parts, or nil. With a MarshalJSON method,
// the content would be encoded twice.
func (c *wireContent) jsonValue() any {
	switch {
	case c.isNothing():
		return nil
	case len(c.parts) > 0:
		return c.parts
	}
	return c.text
}

// isNothing reports whether the content is empty.
func (c *wireContent) isNothing() bool { return c.text == "" && len(c.parts) == 0 }

// addText appends a text to the content.
func (c *wireContent) addText(text string) {
	switch n := len(c.parts); {
	case text == "":
	case n == 0 && c.text == "":
		c.text = text
	case n == 0:
		c.text += "\n\n" + text
	case c.parts[n-1].Type == "text":
		c.parts[n-1].Text += "\n\n" + text
	default:
		c.parts = append(c.parts, wirePart{Type: "text", Text: text})
	}
}

// addPicture appends a picture to the content, after a line with the picture's path.
func (c *wireContent) addPicture(p *llm.Picture) {
	c.addText("[picture " + p.Path + ":]")
	c.addImage(&wireImage{URL: "data:" + p.Type + ";base64," + base64.StdEncoding.EncodeToString(p.Data)})
}

// addImage appends a picture as a separate part.
func (c *wireContent) addImage(i *wireImage) {
	if len(c.parts) == 0 && c.text != "" {
		c.parts = []wirePart{{Type: "text", Text: c.text}}
		c.text = ""
	}
	c.parts = append(c.parts, wirePart{Type: "image_url", Image: i})
}

// addAll appends the content of the next message.
func (c *wireContent) addAll(next *wireContent) {
	c.addText(next.text)
	for _, p := range next.parts {
		if p.Type == "text" {
			c.addText(p.Text)
			continue
		}
		c.addImage(p.Image)
	}
}

// newWireRequest returns a request with these messages, in a dialect.
func newWireRequest(r *llm.Request, messages []wireMessage, cfg *Config, d dialect) wireRequest {
	w := wireRequest{Model: cfg.Name, Messages: messages, wireOptions: wireOptions{Stream: true}}
	if !d.noUsage {
		w.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	switch d.limit {
	case limitMaxTokens:
		w.MaxTokens = r.MaxTokens
	case limitMaxCompletionTokens:
		w.MaxCompletionTokens = r.MaxTokens
	case limitNone:
	}
	switch {
	case d.noEffort:
	case len(r.Tools) > 0 && d.noThinking:
		w.ReasoningEffort = "none"
	default:
		w.ReasoningEffort = cfg.Effort
	}
	if len(r.Tools) > 0 && r.NoCalls && !d.noChoice {
		w.ToolChoice = "none"
	}
	if d.cacheKey {
		w.PromptCacheKey = cacheKey(r)
	}
	if d.cacheMarks {
		markForCache(w.Messages)
	}
	return w
}

// encode returns the request as JSON, with the tools in toolList, which are already JSON, and the configured
// fields. It writes into room as long as that is large enough.
func (w *wireRequest) encode(room, toolList, configured []byte) ([]byte, error) {
	size := requestOverhead + len(configured) + len(toolList)
	for i := range w.Messages {
		size += w.Messages[i].size()
	}
	body := slices.Grow(room[:0], size)
	body = append(plainjson.AppendString(append(body, `{"model":`...), w.Model), `,"messages":[`...)
	var err error
	for i := range w.Messages {
		if i > 0 {
			body = append(body, ',')
		}
		if body, err = w.Messages[i].appendTo(body); err != nil {
			return nil, err
		}
	}
	body = append(body, ']')
	options := len(body)
	if body, err = appendJSON(body, w.wireOptions); err != nil {
		return nil, err
	}
	body[options] = ',' // replaces the brace, so that these become fields of the request
	return addFields(appendTools(body, toolList), configured), nil
}

// messagesOf returns the messages of a request to a host, in a dialect. It writes them into room as long as
// that is large enough.
func messagesOf(room []wireMessage, r *llm.Request, host string, d dialect) []wireMessage {
	t := transcript{host: host, dialect: d, ids: wire.CallIDs{Short: d.shortIDs}, messages: room[:0]}
	if r.System != "" {
		t.add(wireMessage{Role: "system", Content: wireContent{text: r.System}})
	}
	for _, m := range r.Messages {
		if m.Role == llm.RoleAssistant {
			t.addAssistant(m.Blocks)
		} else {
			t.addUser(m.Blocks)
		}
	}
	return t.messages
}

// A transcript is the list of messages of a request, in the dialect of its server.
type transcript struct {
	host     string
	dialect  dialect
	messages []wireMessage
	ids      wire.CallIDs
}

// add appends one message.
func (t *transcript) add(m wireMessage) { t.messages = append(t.messages, m) }

// addUser appends the results of tools, and then what people said, because nothing may come between a call and
// its result. Consecutive texts become one message, because many servers insist that user and assistant
// alternate.
func (t *transcript) addUser(blocks []llm.Block) {
	var said wireContent
	for _, b := range blocks {
		switch {
		case b.Kind == llm.BlockToolResult:
			content := string(b.Content)
			if content == "" {
				content = "null"
			}
			t.add(wireMessage{Role: "tool", ToolCallID: t.ids.IDFor(b), Content: wireContent{text: content}})
		case b.Kind == llm.BlockText:
			said.addText(b.Text)
		case b.Kind == llm.BlockPicture && t.dialect.noPictures:
			said.addText("[picture " + b.Picture.Path + ": you cannot see pictures]")
		case b.Kind == llm.BlockPicture:
			said.addPicture(b.Picture)
		}
	}
	if said.isNothing() {
		return
	}
	if n := len(t.messages); n > 0 && t.messages[n-1].Role == "user" {
		earlier := t.messages[n-1].Content
		earlier.addAll(&said)
		said, t.messages = earlier, t.messages[:n-1]
	}
	if n := len(t.messages); n > 0 && t.messages[n-1].Role == "tool" && t.dialect.needsBridge {
		t.addAssistant([]llm.Block{{Kind: llm.BlockText, Text: textBridge}})
	}
	t.add(wireMessage{Role: "user", Content: said})
}

// emptyThought is sent as the model's thinking if a server requires thinking and there is none. An empty text
// would count as missing.
const emptyThought = " "

// addAssistant appends a message of the model. It appends nothing if the message has neither text nor calls.
func (t *transcript) addAssistant(blocks []llm.Block) {
	m := wireMessage{Role: "assistant"}
	var said []string
	for _, b := range blocks {
		switch {
		case b.Kind == llm.BlockThinking:
			t.returnThought(&m, b)
		case b.Kind == llm.BlockText && b.Text != "":
			said = append(said, b.Text)
		case b.Kind == llm.BlockToolUse:
			m.ToolCalls = append(m.ToolCalls, t.wireCallOf(b))
		}
	}
	if len(said) == 0 && len(m.ToolCalls) == 0 {
		return // servers refuse an empty message
	}
	if len(said) > 0 {
		m.Content = wireContent{text: strings.Join(said, "\n\n")}
	}
	if t.dialect.wantsEcho && m.ReasoningContent == "" {
		m.ReasoningContent = emptyThought
	}
	t.add(m)
}

// returnThought adds to a message the thinking that the same provider sent and wants back, unless it has refused that.
func (t *transcript) returnThought(m *wireMessage, b llm.Block) {
	var saved savedThought
	if t.dialect.noEcho || len(b.Provider) == 0 || json.Unmarshal(b.Provider, &saved) != nil || saved.By != t.host {
		return
	}
	if saved.Echo {
		m.ReasoningContent += b.Text
	}
	if len(saved.Details) > 0 { // an answer has only one thinking block
		m.ReasoningDetails = saved.Details
	}
	if len(saved.Extra) > 0 {
		m.ExtraContent = saved.Extra
	}
}

// wireCallOf returns a tool call in the protocol's form, with the fields that the same provider wants back.
func (t *transcript) wireCallOf(b llm.Block) wireCall {
	c := wireCall{ID: t.ids.IDFor(b), Type: "function", Function: wireFunction{Name: b.Name, Arguments: wire.WriteArgs(b.Args)}}
	var saved savedCall
	if !t.dialect.noEcho && len(b.Provider) > 0 && json.Unmarshal(b.Provider, &saved) == nil && saved.By == t.host {
		c.callExtra = saved.callExtra
	}
	return c
}

// cacheKey returns a key that is equal for all requests that begin alike, as the requests of one conversation
// do until it is summarized.
func cacheKey(r *llm.Request) string {
	var text strings.Builder
	text.WriteString(r.System)
	if len(r.Messages) > 0 {
		for _, b := range r.Messages[0].Blocks {
			text.WriteString(b.Text)
		}
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:16])
}

// markForCache marks the two places up to which a request is worth caching: the end of the instructions, with
// the tools before them, and the end of a person's last message.
func markForCache(messages []wireMessage) {
	mark := func(role string, from int) {
		for i := from; i >= 0 && i < len(messages); i-- {
			if m := &messages[i]; m.Role == role && !m.Content.isNothing() {
				m.Content.markEnd()
				return
			}
		}
	}
	mark("system", 0)
	mark("user", len(messages)-1)
}

// markEnd marks the content's last part for the cache.
func (c *wireContent) markEnd() {
	if len(c.parts) == 0 {
		c.parts, c.text = []wirePart{{Type: "text", Text: c.text}}, ""
	}
	c.parts[len(c.parts)-1].Cache = &wireCache{Type: "ephemeral"}
}

// isPlain reports whether a message contains only texts: nothing that is already JSON, and no pictures or cache
// marks.
func (m *wireMessage) isPlain() bool {
	if len(m.Content.parts)+len(m.ReasoningDetails)+len(m.ExtraContent) > 0 {
		return false
	}
	return !slices.ContainsFunc(m.ToolCalls, func(c wireCall) bool { return len(c.ExtraContent)+len(c.ThoughtSignature) > 0 })
}

// appendTo appends the message as JSON. Plain messages, of which a conversation has hundreds, are written
// without reflection; the bytes are the same.
func (m *wireMessage) appendTo(b []byte) ([]byte, error) {
	if !m.isPlain() {
		m.Written = m.Content.jsonValue()
		return appendJSON(b, m)
	}
	b = append(plainjson.AppendString(append(b, `{"role":`...), m.Role), `,"content":`...)
	if m.Content.isNothing() {
		b = append(b, "null"...)
	} else {
		b = plainjson.AppendString(b, m.Content.text)
	}
	if m.ReasoningContent != "" {
		b = plainjson.AppendString(append(b, `,"reasoning_content":`...), m.ReasoningContent)
	}
	for i := range m.ToolCalls {
		b = m.ToolCalls[i].appendTo(b, i == 0)
	}
	if len(m.ToolCalls) > 0 {
		b = append(b, ']')
	}
	if m.ToolCallID != "" {
		b = plainjson.AppendString(append(b, `,"tool_call_id":`...), m.ToolCallID)
	}
	return append(b, '}'), nil
}

// appendTo appends a plain call, and before the first one also the beginning of the list of calls.
func (c *wireCall) appendTo(b []byte, first bool) []byte {
	before := ","
	if first {
		before = `,"tool_calls":[`
	}
	b = plainjson.AppendString(append(append(b, before...), `{"id":`...), c.ID)
	b = plainjson.AppendString(append(b, `,"type":`...), c.Type)
	b = plainjson.AppendString(append(b, `,"function":{"name":`...), c.Function.Name)
	b = plainjson.AppendString(append(b, `,"arguments":`...), c.Function.Arguments)
	return append(b, "}}"...)
}

// size estimates the length of a message as JSON, in bytes.
func (m *wireMessage) size() int {
	n := messageOverhead + len(m.ReasoningContent) + len(m.ReasoningDetails) + len(m.ExtraContent)
	n += len(m.Content.text) + len(m.Content.text)/16 // a sixteenth is for escapes
	for _, p := range m.Content.parts {
		n += messageOverhead + len(p.Text) + len(p.Text)/16
		if p.Image != nil {
			n += len(p.Image.URL)
		}
	}
	for _, c := range m.ToolCalls {
		n += messageOverhead + len(c.Function.Arguments) + len(c.Function.Arguments)/8 + len(c.ExtraContent) + len(c.ThoughtSignature)
	}
	return n
}
