package openai

import (
	"net/http"
	"strconv"
	"strings"
)

// isOverflow reports whether the request was too long for the model. OpenAI has a code for that; for most other
// servers only the message says so. A limit on tokens in a period doesn't count, unless one request alone
// exceeds it (status 413).
func (r *refusal) isOverflow() bool {
	if len(r.toolPlaces()) > 0 { // a part of a tool is too long
		return false
	}
	if r.hasCode("context_length_exceeded", "context_window_exceeded", "model_context_window_exceeded", "exceed_context_size_error",
		"request_too_large", "string_above_max_length", "prompt_too_long", "input_too_long",
		"1261", "3051", // Z.ai and Mistral
		"outofcontexterror", "token_quantity_exceeded") { // Volcengine and watsonx
		return true
	}
	switch r.status {
	case http.StatusTooManyRequests, http.StatusUnauthorized, http.StatusPaymentRequired:
		return false
	case http.StatusRequestEntityTooLarge:
		if r.mentions("token") {
			return true
		}
	}
	if r.mentions("rate limit", "per minute", "per day", "daily", "monthly", "too many requests") {
		return false
	}
	return r.mentions(
		"maximum context length", "context length exceeded", "exceeds the context", "context window",
		"available context size", "context size has been exceeded", "configured context size",
		"prompt is too long", "input is too long", "maximum prompt length",
		"exceeds the maximum number of tokens", "maximum allowed input length", "reduce the length of the messages",
		"model's context length", "too many input tokens", "input length and `max_tokens` exceed",
		"`inputs` tokens + `max_new_tokens` must be", "`inputs` must have less than", // TGI
		"exceeded model token limit",                                  // Moonshot
		"range of input length should be",                             // DashScope
		"prompt exceeds max length",                                   // Z.ai
		"greater than the context length", "trying to keep the first", // LM Studio
		"too many tokens: ",                                        // Cohere
		"prompt too long; exceeded", "exceeded max context length", // Ollama
		"token limit reached",              // OpenRouter
		"prompt token count",               // GitHub
		"maximum model length",             // vLLM
		"exceed max message tokens",        // Volcengine
		"exceeds maximum input length",     // DeepInfra
		"because the input token count is", // Vertex
		"the total tokens limit",           // watsonx
		"greater than max_seq_len",         // TabbyAPI
	) || r.mentions("max tokens of ") && r.mentions(" exceeded") // Snowflake
}

// statedWindow returns how many tokens the model can read, according to the refusal; 0 if the refusal doesn't
// say.
func (r *refusal) statedWindow() int {
	if r.statedWindowSize > 0 {
		return r.statedWindowSize
	}
	text := strings.ToLower(r.message)
	for _, before := range []string{
		"context length is only ", "context length of only ", "context length is ", "maximum prompt length is ",
		"context length (", "context size (", "context size is ", "maximum number of tokens allowed (", "model token limit: ",
		"input length should be [1, ", "must be <= ", "must have less than ", "in the prompt cannot exceed ",
		"exceeds the limit of ", "input length of ", "maximum context length: ", "large for model with ", " tokens > ",
		"maximum model length of ", "exceeds maximum input length ", "model only supports up to ", "the model supports up to ",
		"the total tokens limit ", "max_seq_len ", "max tokens of ",
	} {
		if _, rest, ok := strings.Cut(text, before); ok {
			if n := leadingNumber(rest); n > 0 {
				return n
			}
		}
	}
	return 0
}

// leadingNumber returns the number at the beginning of a text, which may contain commas; 0 if there is none.
func leadingNumber(text string) int {
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != ',' })
	if end >= 0 {
		text = text[:end]
	}
	n, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	if err != nil {
		return 0
	}
	return n
}
