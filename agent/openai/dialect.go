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
}

// A limit is the parameter that bounds an answer's length.
type limit int

const (
	limitOld  limit = iota // max_tokens, which every other server knows
	limitNew               // max_completion_tokens, which OpenAI wants
	limitNone              // neither
)

func firstDialect(base string) dialect {
	if base == DefaultURL {
		return dialect{limit: limitNew}
	}
	return dialect{}
}

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
	case r.mentions("unsupported", "not supported", "unrecognized", "unknown", "not permitted", "unexpected", "additional propert", "not allowed"):
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

// names tells whether a refusal is about one of these parameters. Few servers name it in
// a field; the others name it only in their message.
func (r *refusal) names(parameters ...string) bool {
	text := strings.ToLower(r.message)
	return slices.ContainsFunc(parameters, func(p string) bool {
		return r.param == p || strings.Contains(text, p)
	})
}
