package wire

import (
	"strings"

	"parley/agent/llm"
)

// ReasonWord returns a server's reason in the form that StopOf and AnnouncesCalls expect: in lower case and
// without surrounding spaces.
func ReasonWord(reason String) string { return strings.ToLower(strings.TrimSpace(string(reason))) }

// StopOf translates a finish_reason. Servers have many words for the same reason. An unknown word doesn't count
// as the end of a complete answer.
func StopOf(reason string) llm.Stop {
	if AnnouncesCalls(reason) {
		return llm.StopWhole
	}
	switch reason {
	case "stop", "end_turn", "stop_sequence", "stop_token", "eos", "eos_token", "end", "complete", "completed", "finished", "done",
		"success", "normal", "null", "none", "unspecified", "finish_reason_unspecified", "finish_reason_stop", "load":
		return llm.StopWhole
	case "length", "max_tokens", "max_output_tokens", "max_new_tokens", "max_length", "token_limit":
		return llm.StopLength
	case "model_context_window_exceeded", "model_length", "context_length", "context_length_exceeded", "context_window_exceeded":
		return llm.StopWindow
	case "content_filter", "content_filtered", "content-filter", "sensitive", "safety", "recitation", "blocklist", "prohibited_content",
		"spii", "image_safety", "language", "refusal", "guardrail_intervened", "guardrails", "moderation", "filtered", "error_toxic":
		return llm.StopFiltered
	case "insufficient_system_resource", "network_error", "abort", "aborted", "cancelled", "canceled", "user_cancel", "timeout",
		"engine_error", "server_error", "internal_error", "overloaded", "malformed_function_call", "unexpected_tool_call", "malformed_tool_call":
		return llm.StopBroken
	}
	return llm.StopUnknown
}

// AnnouncesCalls reports whether a finish_reason says that the answer has tool calls.
func AnnouncesCalls(reason string) bool {
	switch reason {
	case "tool_calls", "tool_call", "tool_use", "function_call", "function_calls":
		return true
	}
	return false
}
