package openai

import "parley/agent/llm"

// A wireUsage is what servers write about the tokens of an answer.
type wireUsage struct {
	Prompt     float64 `json:"prompt_tokens"`
	Completion float64 `json:"completion_tokens"`
	Total      float64 `json:"total_tokens"`
	CacheHit   float64 `json:"prompt_cache_hit_tokens"`
	Details    *struct {
		Cached float64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Completed *struct {
		Reasoning float64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// usageOf is the number of tokens that the server counted, or, if it counted none, a guess
// of four bytes a token. asked is the size of the request.
func (a *assembly) usageOf(asked int) llm.Usage {
	u := a.usage
	if u == nil || u.Prompt <= 0 && u.Completion <= 0 {
		return llm.Usage{Input: int64(asked+3) / 4, Output: int64(a.size+3) / 4, Estimated: true}
	}
	cached := u.CacheHit
	if u.Details != nil && u.Details.Cached > 0 {
		cached = u.Details.Cached
	}
	return llm.Usage{
		Input:  int64(max(0, u.Prompt)),
		Cached: int64(max(0, min(cached, u.Prompt))),
		Output: int64(max(0, u.Completion) + u.uncountedReasoning()),
	}
}

// uncountedReasoning is how many tokens of reasoning are missing in the server's count of
// the answer: xAI counts them apart, and Gemini includes them only in the total.
func (u *wireUsage) uncountedReasoning() float64 {
	reasoning := 0.0
	if u.Completed != nil {
		reasoning = max(0, u.Completed.Reasoning)
	}
	if u.Total <= 0 {
		if reasoning > u.Completion {
			return reasoning
		}
		return 0
	}
	beyond := max(0, u.Total-max(0, u.Prompt)-max(0, u.Completion))
	if u.Completed != nil {
		return min(beyond, reasoning)
	}
	return beyond
}
