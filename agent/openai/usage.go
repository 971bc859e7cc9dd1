package openai

import "parley/agent/llm"

type usage struct {
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

// used is what the server counted, or else a guess: four bytes a token.
func (a *assembly) used(asked int) llm.Usage {
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
		Output: int64(max(0, u.Completion) + u.apart()),
	}
}

// apart are tokens of reasoning that a server does not count among those of the
// answer: xAI says how many they are, Gemini only has them in the sum.
func (u *usage) apart() float64 {
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
