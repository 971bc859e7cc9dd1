package openai

import (
	"net/http"
	"slices"
	"strings"

	"parley/agent"
)

// A dialect is what a server was found to understand of the protocol.
type dialect struct {
	limit      limit // how the length of an answer is bounded
	noUsage    bool  // usage cannot be asked for
	noChoice   bool  // tool calls cannot be forbidden
	noEcho     bool  // what the model thought is not wanted back
	noThinking bool  // with tools, the model must not reason
	shortIDs   bool  // ids of calls are nine letters and digits: Mistral
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

// learn gives the dialect without what was refused, and names that; the same
// dialect if nothing is to be learned.
func (d dialect) learn(r *refusal) (dialect, string) {
	if r.status != http.StatusBadRequest && r.status != http.StatusUnprocessableEntity || r.fault() == agent.ModelOverflow {
		return d, ""
	}
	next := d
	switch {
	case !d.noUsage && r.names("stream_options", "include_usage"):
		next.noUsage = true
		return next, "stream_options"
	case d.limit == limitOld && r.names("max_tokens"):
		next.limit = limitNew
		return next, "max_tokens"
	case d.limit == limitNew && r.names("max_completion_tokens"):
		next.limit = limitNone
		return next, "max_completion_tokens"
	case !d.noEcho && r.names("reasoning_content", "reasoning_details", "extra_content"):
		next.noEcho = true
		return next, "reasoning_content"
	case !d.noThinking && r.names("reasoning_effort", "v1/responses"):
		next.noThinking = true
		return next, "reasoning_effort"
	case !d.noChoice && r.names("tool_choice"):
		next.noChoice = true
		return next, "tool_choice"
	case !d.shortIDs && r.names("tool call id", "tool_call_id", "tool_calls.id") && r.names("length of 9", "a-z, a-z, 0-9"):
		next.shortIDs = true
		return next, "tool_call_id"
	}
	return d, ""
}

// names tells whether a refusal is about one of these parameters. Only few
// servers say so in a field; of the others there is only what they write.
func (r *refusal) names(parameters ...string) bool {
	text := strings.ToLower(r.message)
	return slices.ContainsFunc(parameters, func(p string) bool {
		return r.param == p || strings.Contains(text, p)
	})
}
