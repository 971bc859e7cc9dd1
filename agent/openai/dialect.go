package openai

import (
	"net/http"

	"parley/agent/llm"
	"parley/agent/openai/toollist"
)

// A dialect is the variant of the protocol that a server understands. It comes from the configuration and from what is
// known about the host, and changes with the server's refusals (see learn).
type dialect struct {
	limit       limit // how a request limits the length of the answer
	noUsage     bool  // the server refuses stream_options, which ask for usage
	noChoice    bool  // the server refuses tool_choice, which forbids calls
	noEcho      bool  // the server refuses to get the model's thinking back
	wantsEcho   bool  // the server requires the thinking with each message of the model
	needsBridge bool  // a tool's result and a person's message need a message of the model between them: Mistral
	noThinking  bool  // the model must not reason when it has tools
	shortIDs    bool  // ids of calls must be nine letters and digits: Mistral
	noPictures  bool  // the model sees no pictures
	noTools     bool  // the model can't use tools
	noEffort    bool  // the server refuses reasoning_effort
	cacheKey    bool  // requests that begin alike are marked with prompt_cache_key: OpenAI
	cacheMarks  bool  // cache_control marks how much of a request is worth caching: Anthropic's models

	native        bool // the server is Ollama, and is asked in its own protocol, in which a request can set the window
	noNative      bool // the server only resembles Ollama, and doesn't speak its protocol
	responses     bool // the server is asked through the Responses API
	noResponses   bool // the server has no Responses API, or none for this model
	apiConfigured bool // the configuration says which API to use
	noSummary     bool // the server refuses to summarize the model's reasoning
	noEncrypted   bool // the server refuses to send the model's reasoning encrypted

	maxDescription int // how many characters a tool's description may have; 0 means any number
	maxTools       int // how many tools the server accepts; 0 means as many as most servers
}

// A limit is the parameter by which a request limits the length of the answer.
type limit int

const (
	limitMaxTokens           limit = iota // max_tokens, which all servers except OpenAI's know
	limitMaxCompletionTokens              // max_completion_tokens, which OpenAI requires
	limitNone                             // no parameter: the server knows neither of them
)

// A lesson is what a server's refusal teaches about its dialect.
type lesson struct {
	dialect dialect // the dialect in which to ask again
	about   string  // what was learned, for the log
	// once reports that the refusal is only about the content of one conversation. Then the dialect is used for
	// this request only.
	once bool
}

// learn returns what a refusal teaches, and false if it teaches nothing new.
func (d dialect) learn(r *refusal) (lesson, bool) {
	for _, about := range []func(dialect, *refusal) (lesson, bool){dialect.learnBounds, dialect.learnAPI, dialect.learnAbilities} {
		if l, ok := about(d, r); ok {
			return l, true
		}
	}
	if r.status != http.StatusBadRequest && r.status != http.StatusUnprocessableEntity || r.fault() == llm.Overflow {
		return lesson{}, false
	}
	if l, ok := d.learnToEcho(r); ok {
		return l, true
	}
	if d.responses {
		if l, ok := d.learnReasoning(r); ok {
			return l, true
		}
	}
	return d.learnParameters(r)
}

// learnAbilities learns from a refusal what the model can't do at all, or that it needs a bridge. It returns false if
// the refusal is about something else, or says nothing new.
func (d dialect) learnAbilities(r *refusal) (lesson, bool) {
	next, about := d, ""
	switch {
	case !d.needsBridge && r.requiresMessageOrder():
		next.needsBridge, about = true, "user after tool"
	case !d.noPictures && r.refusesPictures():
		next.noPictures, about = true, "pictures"
	case !d.noTools && r.refusesTools():
		next.noTools, about = true, "tools"
	}
	return lesson{dialect: next, about: about}, about != ""
}

// learnReasoning learns from a refusal of the Responses API which reasoning parameters the server doesn't
// accept. It returns false if the refusal is about something else, or says nothing new.
func (d dialect) learnReasoning(r *refusal) (lesson, bool) {
	next, about := d, ""
	switch {
	case !d.noSummary && r.blames("reasoning.summary"):
		next.noSummary, about = true, "reasoning.summary"
	case !d.noEncrypted && (r.param == "include" || r.mentions("reasoning.encrypted_content", "encrypted content is not supported")):
		next.noEncrypted, about = true, "reasoning.encrypted_content"
	case !d.noEffort && r.blames("reasoning.effort"):
		next.noEffort, about = true, "reasoning.effort"
	case !(d.noEffort && d.noSummary) && (r.param == "reasoning" || r.mentions("'reasoning'", `"reasoning"`)) && r.saysUnknown():
		next.noEffort, next.noSummary, about = true, true, "reasoning"
	}
	return lesson{dialect: next, about: about}, about != ""
}

// learnParameters learns from a refusal which parameters the server doesn't accept, or only in another form. It returns
// false if the refusal is about something else, or says nothing new.
func (d dialect) learnParameters(r *refusal) (lesson, bool) {
	next, about := d, ""
	switch {
	case !d.noUsage && r.blames("stream_options", "include_usage"):
		next.noUsage, about = true, "stream_options"
	case d.limit == limitMaxTokens && r.blames("max_tokens"):
		next.limit, about = limitMaxCompletionTokens, "max_tokens"
	case d.limit == limitMaxCompletionTokens && r.blames("max_completion_tokens"):
		next.limit, about = limitNone, "max_completion_tokens"
	case d.cacheKey && r.blames("prompt_cache_key"):
		next.cacheKey, about = false, "prompt_cache_key"
	case d.cacheMarks && r.blames("cache_control"):
		next.cacheMarks, about = false, "cache_control"
	case d.native && !d.noEffort && r.mentions("does not support thinking"):
		next.noEffort, about = true, "think"
	case !d.noThinking && r.wantsResponses(): // the server doesn't have it, or must not be asked through it
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

// learnAPI learns from a refusal in which of OpenAI's protocols a model has to be asked. It returns false if
// the refusal is about something else, or if the configuration says which one to use.
func (d dialect) learnAPI(r *refusal) (lesson, bool) {
	next := d
	switch {
	case d.apiConfigured:
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

// learnToEcho learns from a refusal whether to send the model's thinking back. A server that doesn't know the
// field never gets it again, and one that requires it always does. Any other complaint is only about the
// content of this conversation. learnToEcho returns false if the refusal is about something else, or says
// nothing new.
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

// toolForm returns the form in which the server accepts tools.
func (d dialect) toolForm() toollist.Form {
	return toollist.Form{Flat: d.responses, MaxDescription: d.maxDescription, MaxTools: d.maxTools}
}

// minDescription is the smallest limit on descriptions with which tools are still shown.
const minDescription = 100

// learnBounds learns from a refusal how long the descriptions of tools may be, or how many tools there may be.
// It returns false if the refusal is about something else, or says nothing new.
func (d dialect) learnBounds(r *refusal) (lesson, bool) {
	next := d
	n := r.statedMaximum()
	most := d.maxTools
	if most == 0 {
		most = toollist.DefaultMaxTools
	}
	switch {
	case n <= 0 || !r.mayConcernTool():
	case r.concerns("description") && (r.concerns("tools") || r.concerns("function")):
		if n >= minDescription && (d.maxDescription == 0 || n < d.maxDescription) {
			next.maxDescription = n
			return lesson{dialect: next, about: "descriptions of tools"}, true
		}
	case n < most && (r.param == "tools" || r.mentions("'tools'", "tools list", "number of tools", "too many tools", "number of functions", "too many functions")):
		next.maxTools = n
		return lesson{dialect: next, about: "the number of tools"}, true
	}
	return lesson{}, false
}
