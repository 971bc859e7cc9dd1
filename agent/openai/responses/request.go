// Package responses writes requests to OpenAI's Responses API, and puts its answers
// together.
//
// The API can keep conversations on the server. Parley keeps them itself: each request contains the whole
// conversation and asks the server to store nothing. So the server sends a model's reasoning encrypted, and
// gets it back with the next request.
//
// request.go writes requests; event.go decodes what the server sends; answer.go and items.go put the answer
// together.
package responses

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/agent/llm"
	"parley/agent/openai/wire"
	"parley/tools/plainjson"
)

// Options say what a request contains besides the conversation, and what its server doesn't accept.
type Options struct {
	Host     string // the server's host: only what it has sent itself is sent back to it
	Model    string
	Effort   string // how much the model should reason; "" leaves that to the server
	CacheKey string // equal for requests that begin alike; "" sends none
	// Configured are the names of the fields that the configuration adds to each request. They replace those
	// that Encode would write.
	Configured []string

	NoSummary   bool // the server refuses to summarize the reasoning
	NoEncrypted bool // the server refuses to send the reasoning encrypted
	NoEffort    bool // the server refuses an effort
	NoChoice    bool // the server refuses tool_choice, which forbids calls
	NoEcho      bool // the server refuses to get the reasoning back
	NoPictures  bool // the model sees no pictures
}

// The body of a request, without the tools.
type (
	request struct {
		Model           string     `json:"model"`
		Instructions    string     `json:"instructions,omitempty"`
		Input           []any      `json:"input"`
		ToolChoice      string     `json:"tool_choice,omitempty"`
		Stream          bool       `json:"stream"`
		Store           *bool      `json:"store,omitempty"`
		Include         []string   `json:"include,omitempty"`
		MaxOutputTokens int        `json:"max_output_tokens,omitempty"`
		Reasoning       *reasoning `json:"reasoning,omitempty"`
		PromptCacheKey  string     `json:"prompt_cache_key,omitempty"`
	}
	reasoning struct {
		Effort  string `json:"effort,omitempty"`
		Summary string `json:"summary,omitempty"`
	}
	message struct {
		Type    string `json:"type"`
		Role    string `json:"role"`
		Phase   string `json:"phase,omitempty"`
		Content []part `json:"content"`
	}
	part struct {
		Type  string `json:"type"` // input_text, input_image, output_text
		Text  string `json:"text,omitempty"`
		Image string `json:"image_url,omitempty"` // always a data: URL
	}
	call struct {
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	result struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
		Output string `json:"output"`
	}
)

// A savedContent is the content of a block's Provider field: what the server wants back with the block.
type savedContent struct {
	By    string          `json:"by"`              // the host of the server that sent it; others don't understand it
	Item  json.RawMessage `json:"item,omitempty"`  // for a thinking block: the item of reasoning
	Phase string          `json:"phase,omitempty"` // for a text: whether it is an answer or a remark before one
}

// minOutput is the smallest limit on an answer, in tokens, that the API accepts.
const minOutput = 16

// Encode returns the body of a request as a JSON object. The caller adds the tools and the configured fields.
func Encode(r *llm.Request, o Options) ([]byte, error) {
	configured := func(name string) bool { return slices.Contains(o.Configured, name) }
	w := request{Model: o.Model, Instructions: r.System, Stream: true, PromptCacheKey: o.CacheKey}
	if !configured("store") {
		w.Store = new(bool)
	}
	if !o.NoEncrypted && !configured("include") {
		w.Include = []string{"reasoning.encrypted_content"}
	}
	if r.MaxTokens > 0 && !configured("max_output_tokens") {
		w.MaxOutputTokens = max(r.MaxTokens, minOutput)
	}
	if len(r.Tools) > 0 && r.NoCalls && !o.NoChoice {
		w.ToolChoice = "none"
	}
	if !configured("reasoning") {
		w.Reasoning = o.reasoning()
	}
	c := conversation{options: o, items: []any{}}
	for _, m := range r.Messages {
		if m.Role == llm.RoleAssistant {
			c.addAssistant(m.Blocks)
		} else {
			c.addUser(m.Blocks)
		}
	}
	w.Input = c.items
	var b bytes.Buffer
	if err := plainjson.NewEncoder(&b).Encode(w); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// reasoning returns what the request says about reasoning; nil if it says nothing.
func (o Options) reasoning() *reasoning {
	var r reasoning
	if !o.NoEffort {
		r.Effort = o.Effort
	}
	if !o.NoSummary {
		r.Summary = "auto"
	}
	if r == (reasoning{}) {
		return nil
	}
	return &r
}

// A conversation is the list of items of a request.
type conversation struct {
	options Options
	items   []any
	ids     wire.CallIDs
}

// add appends one item.
func (c *conversation) add(item any) { c.items = append(c.items, item) }

// addUser appends the results of tools, and then what people said.
func (c *conversation) addUser(blocks []llm.Block) {
	var said []part
	say := func(text string) {
		if text != "" {
			said = append(said, part{Type: "input_text", Text: text})
		}
	}
	for _, b := range blocks {
		switch {
		case b.Kind == llm.BlockToolResult:
			output := string(b.Content)
			if output == "" {
				output = "null"
			}
			c.add(result{Type: "function_call_output", CallID: c.ids.IDFor(b), Output: output})
		case b.Kind == llm.BlockText:
			say(b.Text)
		case b.Kind == llm.BlockPicture && c.options.NoPictures:
			say("[picture " + b.Picture.Path + ": you cannot see pictures]")
		case b.Kind == llm.BlockPicture:
			say("[picture " + b.Picture.Path + ":]")
			said = append(said, part{Type: "input_image", Image: "data:" + b.Picture.Type + ";base64," + base64.StdEncoding.EncodeToString(b.Picture.Data)})
		}
	}
	if len(said) > 0 {
		c.add(message{Type: "message", Role: "user", Content: said})
	}
}

// addAssistant appends what the model has answered. The API refuses reasoning that isn't followed by anything
// from the same answer, so such reasoning is left out.
func (c *conversation) addAssistant(blocks []llm.Block) {
	var thought []json.RawMessage // since the last text or call
	follow := func(item any) {
		for _, t := range thought {
			c.add(t)
		}
		thought = nil
		c.add(item)
	}
	for _, b := range blocks {
		var back savedContent
		if len(b.Provider) > 0 && (json.Unmarshal(b.Provider, &back) != nil || back.By != c.options.Host) {
			back = savedContent{}
		}
		switch b.Kind {
		case llm.BlockThinking:
			if len(back.Item) > 0 && !c.options.NoEcho {
				thought = append(thought, back.Item)
			}
		case llm.BlockText:
			if strings.TrimSpace(b.Text) != "" {
				follow(message{Type: "message", Role: "assistant", Phase: back.Phase, Content: []part{{Type: "output_text", Text: b.Text}}})
			}
		case llm.BlockToolUse:
			follow(call{Type: "function_call", CallID: c.ids.IDFor(b), Name: b.Name, Arguments: wire.WriteArgs(b.Args)})
		}
	}
}
