package openai

import (
	"fmt"
	"strings"

	"parley/agent/llm"
)

// setFinishReason records an answer's finish_reason. Some servers send several; the
// first that says that the answer is not whole counts. It returns an error if the server
// reports a failure.
func (a *assembly) setFinishReason(reason string) error {
	if reason == "" {
		return nil
	}
	if reason == "error" {
		return fmt.Errorf("%w: by its server", errCut)
	}
	a.finished = true
	if a.stop != llm.StopWhole {
		return nil
	}
	a.stop = stopOf(reason)
	if wellFormed(reason) {
		a.reason = reason
	}
	a.announced = a.announced || announcesCalls(reason)
	return nil
}

// stopOf translates a finish_reason. Servers have many words for the same reason. An
// unknown word does not count as the end of a whole answer.
func stopOf(reason string) llm.Stop {
	if announcesCalls(reason) {
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

// announcesCalls reports whether a finish_reason says that the answer has tool calls.
func announcesCalls(reason string) bool {
	switch reason {
	case "tool_calls", "tool_call", "tool_use", "function_call", "function_calls":
		return true
	}
	return false
}

// stopReason returns why the answer ended. If the server announced tool calls and sent
// none, they were lost.
func (a *assembly) stopReason(calls int) llm.Stop {
	if a.stop == llm.StopWhole && a.announced && calls == 0 {
		return llm.StopLost
	}
	return a.stop
}

// reasonOf returns a finish_reason in the form in which stopOf compares it: in small
// letters.
func reasonOf(f flexible) string { return strings.ToLower(strings.TrimSpace(string(f))) }
