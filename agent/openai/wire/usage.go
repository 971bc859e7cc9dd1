package wire

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"parley/agent/llm"
)

// A Usage is the field "usage" of an answer, in either of OpenAI's protocols.
type Usage struct {
	Prompt     Tokens         `json:"prompt_tokens"`
	Completion Tokens         `json:"completion_tokens"`
	Total      Tokens         `json:"total_tokens"`
	CacheHit   Tokens         `json:"prompt_cache_hit_tokens"`
	CacheRead  Tokens         `json:"cached_tokens"` // Moonshot
	Details    *promptDetails `json:"prompt_tokens_details"`
	Completed  *outputDetails `json:"completion_tokens_details"`
	// The Responses API has different names for the same numbers.
	Input         Tokens         `json:"input_tokens"`
	Output        Tokens         `json:"output_tokens"`
	InputDetails  *promptDetails `json:"input_tokens_details"`
	OutputDetails *outputDetails `json:"output_tokens_details"`
	// Cost is what some providers charge: a number of dollars, or an object with the total. In other providers'
	// answers this field is a text or something else.
	Cost json.RawMessage `json:"cost"`
	// OwnKey is "true" if OpenRouter used the account's own key for the provider behind it. Then that provider's
	// charge is reported in addition to Cost.
	OwnKey  String `json:"is_byok"`
	Charges *struct {
		Upstream json.RawMessage `json:"upstream_inference_cost"`
	} `json:"cost_details"`
	// Ticks is what xAI charges; 10,000 ticks are a micro-dollar.
	Ticks json.RawMessage `json:"cost_in_usd_ticks"`
}

// Tokens is a number of tokens.
type Tokens float64

// UnmarshalJSON reads a number, which some servers write in quotes. Integers, which nearly all servers send,
// are parsed here: parsing them as floats takes 1 KB more of the stack, at the deepest place of a turn.
func (t *Tokens) UnmarshalJSON(b []byte) error {
	if n, err := strconv.ParseInt(string(b), 10, 53); err == nil {
		*t = Tokens(n)
		return nil
	}
	if text := Unquoted(b); text != "" {
		return json.Unmarshal([]byte(text), (*float64)(t))
	}
	return nil
}

// promptDetails is the part of a Usage that says how many tokens of the prompt came from the provider's cache.
type promptDetails struct {
	Cached Tokens `json:"cached_tokens"`
}

// outputDetails is the part of a Usage that says how many of the answer's tokens are thinking.
type outputDetails struct {
	Reasoning Tokens `json:"reasoning_tokens"`
}

// UsageOf returns the numbers of tokens that the server counted. If it counted none, UsageOf estimates them as
// one for every four bytes of the request and of the answer.
func UsageOf(report *Usage, requestSize, answerSize int) llm.Usage {
	if report == nil {
		report = &Usage{}
	}
	u := report.inOneForm()
	if u.Prompt <= 0 && u.Completion <= 0 {
		return llm.Usage{Input: int64(requestSize+3) / 4, Output: int64(answerSize+3) / 4, Estimated: true}
	}
	cached := max(u.CacheHit, u.CacheRead)
	if u.Details != nil && u.Details.Cached > 0 {
		cached = u.Details.Cached
	}
	use := llm.Usage{
		Input:  int64(max(0, u.Prompt)),
		Cached: int64(max(0, min(cached, u.Prompt))),
		Output: int64(max(0, u.Completion) + u.uncountedReasoning()),
	}
	use.Reasoning = int64(u.uncountedReasoning())
	if u.Completed != nil {
		use.Reasoning = min(int64(max(0, u.Completed.Reasoning)), use.Output)
	}
	use.Cost, use.Priced = u.cost()
	return use
}

// Void returns the usage of a broken-off answer, as an answer without blocks: what the server counted, or else
// an estimate for the part that had arrived. It returns nil if the server counted nothing and nothing had
// arrived: then there may be nothing to pay for.
func Void(report *Usage, requestSize, answerSize int) *llm.Answer {
	if report == nil && answerSize == 0 {
		return nil
	}
	return &llm.Answer{Usage: UsageOf(report, requestSize, answerSize)}
}

// inOneForm returns the report with the names of the Responses API replaced by those of chat completions.
func (u *Usage) inOneForm() *Usage {
	one := *u
	if u.Prompt == 0 && u.Completion == 0 {
		one.Prompt, one.Completion = u.Input, u.Output
	}
	if u.Details == nil {
		one.Details = u.InputDetails
	}
	if u.Completed == nil {
		one.Completed = u.OutputDetails
	}
	return &one
}

// maxDollars limits the cost of one answer. A larger number is not a price.
const maxDollars = 10_000

// cost returns what the provider charges for the answer, in micro-dollars; false if it states nothing that can
// be read.
func (u *Usage) cost() (micro int64, ok bool) {
	dollars, ok := parseNumber(u.Cost)
	if upstream, own := u.upstreamCost(); ok && own {
		dollars += upstream
	}
	if !ok {
		var sum struct {
			Total json.RawMessage `json:"total_cost"`
		}
		if json.Unmarshal(u.Cost, &sum) == nil {
			dollars, ok = parseNumber(sum.Total)
		}
	}
	if !ok {
		var ticks float64
		ticks, ok = parseNumber(u.Ticks)
		dollars = ticks / 1e10
	}
	if !ok || dollars < 0 || dollars > maxDollars {
		return 0, false
	}
	return int64(math.Ceil(dollars*1e6 - 1e-6)), true // subtracting 1e-6 makes up for floating-point errors
}

// upstreamCost returns what the provider behind OpenRouter charges the account directly, in dollars; false if
// there is no such charge.
func (u *Usage) upstreamCost() (float64, bool) {
	if u.OwnKey != "true" || u.Charges == nil {
		return 0, false
	}
	return parseNumber(u.Charges.Upstream)
}

// parseNumber reads a number, which may be in quotes; false if raw is not a number.
func parseNumber(raw json.RawMessage) (float64, bool) {
	text := strings.Trim(strings.TrimSpace(string(raw)), `"`)
	var n json.Number
	if text == "" || json.Unmarshal([]byte(text), &n) != nil {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

// uncountedReasoning returns how many tokens of reasoning are missing from the server's count for the answer:
// xAI counts them separately, and Gemini includes them only in the total.
func (u *Usage) uncountedReasoning() Tokens {
	reasoning := Tokens(0)
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
