package openai

import (
	"net/http"
	"slices"
	"strings"

	"parley/agent/llm"
)

// A dialect is what a server was found to understand of the protocol.
type dialect struct {
	limit      limit // how the length of an answer is bounded
	noUsage    bool  // it does not take stream_options, which ask for usage
	noChoice   bool  // it does not take tool_choice, which forbids calls
	noEcho     bool  // it does not take back what the model thought
	wantsEcho  bool  // it requires what the model thought with each of the model's messages
	bridges    bool  // people may not speak right after a tool: Mistral
	noThinking bool  // with tools, the model must not reason
	shortIDs   bool  // ids of calls are nine letters and digits: Mistral
	noPictures bool  // its model sees none
	noTools    bool  // its model takes none
	noEffort   bool  // it does not take reasoning_effort
	cacheKey   bool  // prompt_cache_key says which requests begin alike: OpenAI
	cacheMarks bool  // cache_control says up to where a request is worth keeping: Anthropic's models
}

// A limit is the parameter that bounds an answer's length.
type limit int

const (
	limitOld  limit = iota // max_tokens, which every other server knows
	limitNew               // max_completion_tokens, which OpenAI wants
	limitNone              // neither
)

// A lesson is what a refusal teaches.
type lesson struct {
	dialect dialect // to ask again in
	about   string  // for the log
	// once says that the refusal is about the content of one conversation. Then the
	// dialect is used for this request only.
	once bool
}

// learn is what a refusal teaches. It returns false if that is nothing new.
func (d dialect) learn(r *refusal) (lesson, bool) {
	next := d
	if !d.bridges && r.ordersMessages() {
		next.bridges = true
		return lesson{dialect: next, about: "user after tool"}, true
	}
	if !d.noPictures && r.refusesPictures() {
		next.noPictures = true
		return lesson{dialect: next, about: "pictures"}, true
	}
	if !d.noTools && r.refusesTools() {
		next.noTools = true
		return lesson{dialect: next, about: "tools"}, true
	}
	if r.status != http.StatusBadRequest && r.status != http.StatusUnprocessableEntity || r.fault() == llm.Overflow {
		return lesson{}, false
	}
	if l, ok := d.learnToEcho(r); ok {
		return l, true
	}
	about := ""
	switch {
	case !d.noUsage && r.names("stream_options", "include_usage"):
		next.noUsage, about = true, "stream_options"
	case d.limit == limitOld && r.names("max_tokens"):
		next.limit, about = limitNew, "max_tokens"
	case d.limit == limitNew && r.names("max_completion_tokens"):
		next.limit, about = limitNone, "max_completion_tokens"
	case d.cacheKey && r.names("prompt_cache_key"):
		next.cacheKey, about = false, "prompt_cache_key"
	case d.cacheMarks && r.names("cache_control"):
		next.cacheMarks, about = false, "cache_control"
	case !d.noEffort && r.names("reasoning_effort") && (d.noThinking || r.saysUnknown()):
		next.noEffort, about = true, "reasoning_effort is unknown"
	case !d.noThinking && r.names("reasoning_effort", "v1/responses"):
		next.noThinking, about = true, "reasoning_effort"
	case !d.noChoice && r.names("tool_choice"):
		next.noChoice, about = true, "tool_choice"
	case !d.shortIDs && r.names("tool call id", "tool_call_id", "tool_calls.id") && r.names("length of 9", "a-z, a-z, 0-9"):
		next.shortIDs, about = true, "tool_call_id"
	}
	return lesson{dialect: next, about: about}, about != ""
}

// learnToEcho learns whether to send back what the model thought. A server that does not
// know the field never gets it, and one that requires it always does. Any other
// complaint is about the content of this conversation alone.
func (d dialect) learnToEcho(r *refusal) (lesson, bool) {
	if !r.names("reasoning_content", "reasoning_details", "extra_content", "thought_signature", "`signature`") {
		return lesson{}, false
	}
	next := d
	switch {
	case r.mentions("passed back", "is missing", "missing reasoning", "is required", "must be provided"):
		next.wantsEcho, next.noEcho = true, false
		return lesson{dialect: next, about: "reasoning_content is wanted"}, next != d
	case r.saysUnknown():
		next.noEcho, next.wantsEcho = true, false
		return lesson{dialect: next, about: "reasoning_content is unknown"}, next != d
	}
	next.noEcho, next.wantsEcho = true, false
	return lesson{dialect: next, about: "reasoning_content of this conversation", once: true}, next != d
}

// ordersMessages tells whether a server, or the template of its model, does not
// let people speak right after a tool. Templates fail with a status of 500.
func (r *refusal) ordersMessages() bool {
	return r.hasCode("3230", "invalid_request_message_order") || r.mentions("after role 'tool'", "after role \"tool\"", "roles must alternate")
}

// refusesPictures tells whether a server's model sees no pictures. A complaint about one
// picture, that it is damaged or too large, is none.
func (r *refusal) refusesPictures() bool {
	if r.status < http.StatusBadRequest || r.status == http.StatusUnauthorized || r.status == http.StatusTooManyRequests || r.fault() == llm.Overflow {
		return false
	}
	return r.mentions(
		"does not support image", "not support image", "support image input", "image input is not supported", "image_url is only supported", "images are not supported",
		"no endpoints found that support image", // OpenRouter
		"unknown variant `image_url`",           // DeepSeek
		"not a multimodal model", "multimodal data provided, but model does not support multimodal", "is not multimodal",
		"mmproj", // llama.cpp
		"vision is not supported", "does not support vision", "content must be a string", "invalid content type. image_url",
	)
}

// refusesTools tells whether a server's model takes no tools, or its server was started
// such that it passes none on. A complaint about one tool is none.
func (r *refusal) refusesTools() bool {
	if r.status < http.StatusBadRequest || r.status == http.StatusUnauthorized || r.status == http.StatusTooManyRequests || r.fault() == llm.Overflow {
		return false
	}
	return r.mentions(
		"does not support tools", "not support tool", "tools are not supported", "tool use is not supported", "tool calling is not supported",
		"does not support function calling", "function calling is not supported", "not support function", "function calling is not enabled",
		"no endpoints found that support tool use",  // OpenRouter
		"--enable-auto-tool-choice",                 // vLLM
		"tools param requires --jinja",              // llama.cpp
		"tool_calls is not supported by this model", // DeepSeek
	)
}

// saysUnknown tells whether a refusal is about a parameter that the server does not know.
func (r *refusal) saysUnknown() bool {
	return r.mentions("unsupported", "not supported", "unrecognized", "unknown", "not permitted", "unexpected", "additional propert", "not allowed")
}

// names tells whether a refusal is about one of these parameters. Few servers name it in
// a field; the others name it only in their message.
func (r *refusal) names(parameters ...string) bool {
	text := strings.ToLower(r.message)
	return slices.ContainsFunc(parameters, func(p string) bool {
		return r.param == p || strings.Contains(text, p)
	})
}

// noTools is what a model is told that takes none, behind its instructions.
const noTools = "\n\nThe server of this model takes no tools, so you have none now: you cannot read or write files, run commands, or look anything up. Where somebody asks for that, say that this model cannot use tools, and that whoever runs the bot can configure another."

// withoutTools is a request for a model that takes none. What was called before is told in
// words.
func withoutTools(r llm.Request) llm.Request {
	if len(r.Tools) > 0 {
		r.System += noTools
	}
	r.Tools, r.NoCalls = nil, false
	messages := make([]llm.Message, len(r.Messages))
	for i, m := range r.Messages {
		messages[i] = llm.Message{Role: m.Role}
		for _, b := range m.Blocks {
			switch b.Kind {
			case llm.BlockToolUse:
				b = llm.Block{Kind: llm.BlockText, Text: "[I called " + b.Name + " with " + argumentsOf(b.Args) + "]"}
			case llm.BlockToolResult:
				b = llm.Block{Kind: llm.BlockText, Text: "[its result: " + strings.TrimSpace(string(b.Content)) + "]"}
			}
			messages[i].Blocks = append(messages[i].Blocks, b)
		}
	}
	r.Messages = messages
	return r
}
