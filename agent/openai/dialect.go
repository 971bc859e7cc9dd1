package openai

import (
	"net/http"
	"slices"
	"strings"

	"parley/agent/llm"
	"parley/agent/openai/toolcall"
)

// A dialect is the variant of the protocol that a server was found to understand.
type dialect struct {
	limit      limit // how the length of an answer is bounded
	noUsage    bool  // it refuses stream_options, which ask for usage
	noChoice   bool  // it refuses tool_choice, which forbids calls
	noEcho     bool  // it refuses to get the model's thinking back
	wantsEcho  bool  // it requires the thinking with each message of the model
	bridges    bool  // a message of the model has to stand between a tool's result and a person's message: Mistral
	noThinking bool  // the model must not reason when it has tools
	shortIDs   bool  // ids of calls must be nine letters and digits: Mistral
	noPictures bool  // the model sees no pictures
	noTools    bool  // the model takes no tools
	noEffort   bool  // it refuses reasoning_effort
	cacheKey   bool  // prompt_cache_key marks the requests that begin alike: OpenAI
	cacheMarks bool  // cache_control marks how much of a request is worth caching: Anthropic's models

	native      bool // it is Ollama, and asked in its own protocol, which lets a request set the window
	noNative    bool // it only resembles Ollama, and does not speak its protocol
	responses   bool // it is asked by the Responses API
	noResponses bool // it has no Responses API, or not for this model
	fixed       bool // the configuration says which API
	noSummary   bool // it refuses to sum up the model's reasoning
	noEncrypted bool // it refuses to send the model's reasoning encrypted
}

// A limit is the parameter by which a request bounds the answer's length.
type limit int

const (
	limitOld  limit = iota // max_tokens, which all servers but OpenAI's know
	limitNew               // max_completion_tokens, which OpenAI wants
	limitNone              // no parameter: the server knows neither
)

// A lesson is what a server's refusal teaches about its dialect.
type lesson struct {
	dialect dialect // the dialect in which to ask again
	about   string  // the subject, for the log
	// once reports that the refusal concerns the content of one conversation. Then the
	// dialect is used for this request only.
	once bool
}

// learn returns what a refusal teaches, and false if it teaches nothing new.
func (d dialect) learn(r *refusal) (lesson, bool) {
	next := d
	if l, ok := d.learnAPI(r); ok {
		return l, true
	}
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
	case !d.noUsage && r.blames("stream_options", "include_usage"):
		next.noUsage, about = true, "stream_options"
	case d.limit == limitOld && r.blames("max_tokens"):
		next.limit, about = limitNew, "max_tokens"
	case d.limit == limitNew && r.blames("max_completion_tokens"):
		next.limit, about = limitNone, "max_completion_tokens"
	case d.cacheKey && r.blames("prompt_cache_key"):
		next.cacheKey, about = false, "prompt_cache_key"
	case d.cacheMarks && r.blames("cache_control"):
		next.cacheMarks, about = false, "cache_control"
	case d.responses && !d.noSummary && r.blames("reasoning.summary"):
		next.noSummary, about = true, "reasoning.summary"
	case d.responses && !d.noEncrypted && (r.param == "include" || r.mentions("reasoning.encrypted_content", "encrypted content is not supported")):
		next.noEncrypted, about = true, "reasoning.encrypted_content"
	case d.responses && !d.noEffort && r.blames("reasoning.effort"):
		next.noEffort, about = true, "reasoning.effort"
	case d.responses && !(d.noEffort && d.noSummary) && (r.param == "reasoning" || r.mentions("'reasoning'", `"reasoning"`)) && r.saysUnknown():
		next.noEffort, next.noSummary, about = true, true, "reasoning"
	case d.native && !d.noEffort && r.mentions("does not support thinking"):
		next.noEffort, about = true, "think"
	case !d.noThinking && r.wantsResponses(): // which the server does not have, or must not be asked by
		next.noThinking, about = true, "reasoning beside tools"
	case !d.noEffort && r.blames("reasoning_effort") && (d.noThinking || r.saysUnknown()):
		next.noEffort, about = true, "reasoning_effort is unknown"
	case !d.noThinking && r.blames("reasoning_effort"):
		next.noThinking, about = true, "reasoning_effort"
	case !d.noChoice && r.blames("tool_choice"):
		next.noChoice, about = true, "tool_choice"
	case !d.shortIDs && r.blames("tool call id", "tool_call_id", "tool_calls.id") && r.blames("length of 9", "a-z, a-z, 0-9"):
		next.shortIDs, about = true, "tool_call_id"
	}
	return lesson{dialect: next, about: about}, about != ""
}

// learnAPI learns from a refusal which of OpenAI's protocols a model wants to be asked in.
// It returns false if the refusal is about something else, or the configuration says
// which.
func (d dialect) learnAPI(r *refusal) (lesson, bool) {
	next := d
	switch {
	case d.fixed:
		return lesson{}, false
	case !d.responses && !d.noResponses && r.wantsResponses():
		next.responses = true
		return lesson{dialect: next, about: "the model wants the Responses API"}, true
	case d.native && r.lacksAddress():
		next.native, next.noNative = false, true
		return lesson{dialect: next, about: "the server does not speak Ollama's own protocol"}, true
	case d.responses && r.lacksResponses():
		next.responses, next.noResponses = false, true
		return lesson{dialect: next, about: "the server has no Responses API for the model"}, true
	}
	return lesson{}, false
}

// wantsResponses reports whether a refusal says that the model has to be asked by the
// Responses API, at all or where it has tools.
func (r *refusal) wantsResponses() bool {
	return r.status >= http.StatusBadRequest && r.status < http.StatusInternalServerError &&
		r.mentions("v1/responses", "use the responses api", "only supported in the responses", "chatcompletion operation does not work") // the last is Azure's
}

// lacksResponses reports whether a refusal says that the server has no Responses API, or
// has none for this model.
func (r *refusal) lacksResponses() bool {
	return r.lacksAddress() || r.status >= http.StatusBadRequest &&
		r.mentions("not supported with the responses api", "does not support the responses api", "not supported in the v1/responses")
}

// lacksAddress reports whether a refusal says that the server does not know the address
// that was asked. It may know the address and not the model.
func (r *refusal) lacksAddress() bool {
	switch r.status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return !r.rejectsModel() && !r.refusesReasoning() && !r.mentions("model")
	}
	return false
}

// learnToEcho learns from a refusal whether to send the model's thinking back. A server
// that does not know the field never gets it, and one that requires it always does. Any
// other complaint concerns the content of this conversation alone. It returns false if
// the refusal is about something else or nothing new.
func (d dialect) learnToEcho(r *refusal) (lesson, bool) {
	if d.responses {
		next := d
		next.noEcho = true
		return lesson{dialect: next, about: "reasoning of this conversation", once: true}, !d.noEcho && r.refusesReasoning()
	}
	if !r.blames("reasoning_content", "reasoning_details", "extra_content", "thought_signature", "`signature`") {
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

// refusesReasoning reports whether a refusal is about an item of reasoning that was sent
// back to the Responses API: it cannot be decrypted, is not stored, or does not stand
// where it belongs.
func (r *refusal) refusesReasoning() bool {
	return r.hasCode("invalid_encrypted_content") || r.mentions(
		"encrypted content", "encrypted_content", "of type 'reasoning'", "required 'reasoning' item", "items are not persisted",
	) && !r.mentions("is not supported with this model")
}

// ordersMessages reports whether a refusal says that no person's message may follow a
// tool's result directly. Servers say that, and the templates of models, which fail with
// status 500.
func (r *refusal) ordersMessages() bool {
	return r.hasCode("3230", "invalid_request_message_order") || r.mentions("after role 'tool'", "after role \"tool\"", "roles must alternate")
}

// refusesPictures reports whether a refusal says that the model sees no pictures. A
// complaint about one picture, say that it is damaged or too large, does not count.
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

// refusesTools reports whether a refusal says that the model takes no tools, or that its
// server was started without passing tools on. A complaint about one tool does not
// count.
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

// saysUnknown reports whether a refusal calls a parameter unknown or unsupported.
func (r *refusal) saysUnknown() bool {
	return r.mentions("unsupported", "not supported", "unrecognized", "unknown", "not permitted", "unexpected", "additional propert", "not allowed")
}

// blames reports whether a refusal is about one of these parameters. Few servers name
// the parameter in a field; the others name it only in their message.
func (r *refusal) blames(parameters ...string) bool {
	text := strings.ToLower(r.message)
	return slices.ContainsFunc(parameters, func(p string) bool {
		return r.param == p || strings.Contains(text, p)
	})
}

// noTools is the text that is added to the instructions of a model that takes no tools.
const noTools = "\n\nThe server of this model takes no tools, so you have none now: you cannot read or write files, run commands, or look anything up. Where somebody asks for that, say that this model cannot use tools, and that whoever runs the bot can configure another."

// withoutTools returns a request as it is for a model that takes no tools. It tells earlier
// calls and their results in words.
func withoutTools(asked *llm.Request) *llm.Request {
	r := *asked
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
				b = llm.Block{Kind: llm.BlockText, Text: "[I called " + b.Name + " with " + toolcall.WriteArgs(b.Args) + "]"}
			case llm.BlockToolResult:
				b = llm.Block{Kind: llm.BlockText, Text: "[its result: " + strings.TrimSpace(string(b.Content)) + "]"}
			}
			messages[i].Blocks = append(messages[i].Blocks, b)
		}
	}
	r.Messages = messages
	return &r
}
