// Package estimate estimates how many tokens requests have, using the numbers that providers report.
//
// Only a provider can count tokens: the same text may have four times as many tokens for one model as for
// another. The estimate for a request is the provider's number for the last request of the conversation, plus
// an estimate for the text that was added since. That estimate goes by the text's length, corrected by how far
// off such estimates were for the same model before.
package estimate

import (
	"sync"

	"parley/agent/llm"
)

const (
	// minLearned is the smallest request, in tokens, from which the ratio of a model is learned.
	minLearned = 1000
	// newestWeight is how much the newest ratio counts in a model's average, from 0 to 1.
	newestWeight = 0.3
	// Limits on a model's ratio of counted to estimated tokens. No model is further off than that: a provider
	// whose number lies outside counts something else.
	minRatio, maxRatio = 0.2, 6
	// implausibleFactor is how many times smaller than the estimate a provider's number may be. Some servers leave out
	// what they had in their cache.
	implausibleFactor = 8
)

// Ratios hold each model's ratio of counted to estimated tokens. They are safe for concurrent use.
type Ratios struct {
	mu     sync.Mutex
	ratios map[string]float64
	asked  map[string]int // by session: the estimated tokens of its last request
}

// maxSessions limits how many sessions' last requests Ratios remembers.
const maxSessions = 4096

// New makes empty Ratios.
func New() *Ratios { return &Ratios{ratios: make(map[string]float64), asked: make(map[string]int)} }

// NoteAsked remembers the estimated number of tokens in a session's last request.
func (t *Ratios) NoteAsked(session string, tokens int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.asked) >= maxSessions {
		clear(t.asked)
	}
	t.asked[session] = tokens
}

// Asked returns the estimated number of tokens in a session's last request; 0 if this process doesn't know it.
func (t *Ratios) Asked(session string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asked[session]
}

// Ratio returns the model's ratio of counted to estimated tokens, and whether it was learned. If not, the ratio
// is 1.
func (t *Ratios) Ratio(model string) (float64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r, ok := t.ratios[model]; ok {
		return r, true
	}
	return 1, false
}

// Learn updates a model's ratio with the number that a provider reported for a request. It ignores small requests,
// and a number that can't be for the whole request.
func (t *Ratios) Learn(model string, estimated int, counted int64) {
	if estimated < minLearned || !IsPlausible(estimated, counted) {
		return
	}
	now := min(max(float64(counted)/float64(estimated), minRatio), maxRatio)
	t.mu.Lock()
	defer t.mu.Unlock()
	if before, ok := t.ratios[model]; ok {
		now = (1-newestWeight)*before + newestWeight*now
	}
	t.ratios[model] = now
}

// RaiseRatio raises a model's ratio after a request with that estimate turned out to have more than the given number
// of tokens. It ignores small requests.
func (t *Ratios) RaiseRatio(model string, estimated int, tokens int) {
	if estimated < minLearned {
		return
	}
	least := min(float64(tokens)/float64(estimated), maxRatio)
	t.mu.Lock()
	defer t.mu.Unlock()
	before, ok := t.ratios[model]
	if !ok {
		before = 1
	}
	t.ratios[model] = max(before, least)
}

// IsPlausible reports whether a provider's number can be for the whole request with that estimate. A number
// that is too small covers only a part of it.
func IsPlausible(estimated int, counted int64) bool {
	return counted > 0 && counted >= int64(estimated/implausibleFactor)
}

// An Estimator estimates how many tokens the requests of one conversation have, from what providers have counted. It is not
// safe for concurrent use.
type Estimator struct {
	Ratios *Ratios

	model     string
	estimated int // the estimate of the last request that a provider counted
	// counted is the provider's number for that request.
	counted int64
}

// Add records how many tokens a provider counted in a request, along with our estimate. It ignores a number
// that can't be for the whole request.
func (c *Estimator) Add(model string, estimated int, use llm.Usage) {
	if use.Estimated || !IsPlausible(estimated, use.Input) {
		return
	}
	c.model, c.estimated, c.counted = model, estimated, use.Input
	c.Ratios.Learn(model, estimated, use.Input)
}

// Of returns how many tokens a request with that estimate is likely to have for a model.
func (c *Estimator) Of(model string, estimated int) int {
	ratio, _ := c.Ratios.Ratio(model)
	if c.counted == 0 || c.model != model {
		return int(float64(estimated) * ratio)
	}
	return max(0, int(float64(c.counted)+float64(estimated-c.estimated)*ratio))
}

// IsLearned reports whether the model's ratio was learned from what a provider said about its requests.
func (c *Estimator) IsLearned(model string) bool {
	_, known := c.Ratios.Ratio(model)
	return known
}
