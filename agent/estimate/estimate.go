// Package estimate estimates how many tokens requests have, from the numbers that providers
// have counted.
//
// Only a provider can count tokens: the same text may be a quarter as many tokens for
// one model as for another. The estimate for a request is the provider's number for the
// last request of the conversation, plus the text that was added since. The added text
// is estimated by its length, corrected by how far such estimates were off for the same
// model before.
package estimate

import (
	"sync"

	"parley/agent/llm"
)

const (
	// leastLearned is the size of a request from which the ratio of a model can be
	// learned.
	leastLearned = 1000
	// weight says how much the newest ratio counts in a model's average, from 0 to 1.
	weight = 0.3
	// Bounds of a model's ratio of counted to estimated tokens. No model is further off: a
	// provider whose figure lies beyond counts something else.
	leastRatio, mostRatio = 0.2, 6
	// implausible is how many times smaller than the estimate a provider's number may be.
	// Some servers leave out what they had read before.
	implausible = 8
)

// Ratios hold, by model, the ratio of counted to estimated tokens. They are safe for
// concurrent use.
type Ratios struct {
	mu     sync.Mutex
	ratios map[string]float64
	asked  map[string]int // by session
}

// mostAsked bounds for how many sessions Ratios remembers the last request.
const mostAsked = 4096

// New makes Ratios of no model.
func New() *Ratios { return &Ratios{ratios: make(map[string]float64), asked: make(map[string]int)} }

// NoteAsked remembers how many tokens a session's last request had, by estimate.
func (t *Ratios) NoteAsked(session string, tokens int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.asked) >= mostAsked {
		clear(t.asked)
	}
	t.asked[session] = tokens
}

// Asked returns how many tokens a session's last request had; 0 if that is not known here.
func (t *Ratios) Asked(session string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asked[session]
}

// Ratio returns the model's ratio of counted to estimated tokens, and reports whether it
// was learned; otherwise it is 1.
func (t *Ratios) Ratio(model string) (float64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r, ok := t.ratios[model]; ok {
		return r, true
	}
	return 1, false
}

// Learn updates a model's ratio by a provider's number for a request.
func (t *Ratios) Learn(model string, estimated int, counted int64) {
	if estimated < leastLearned || !IsPlausible(estimated, counted) {
		return
	}
	now := min(max(float64(counted)/float64(estimated), leastRatio), mostRatio)
	t.mu.Lock()
	defer t.mu.Unlock()
	if before, ok := t.ratios[model]; ok {
		now = (1-weight)*before + weight*now
	}
	t.ratios[model] = now
}

// RaiseRatio raises a model's ratio: a request with that estimate had more than that many
// tokens.
func (t *Ratios) RaiseRatio(model string, estimated int, tokens int) {
	if estimated < leastLearned {
		return
	}
	least := min(float64(tokens)/float64(estimated), mostRatio)
	t.mu.Lock()
	defer t.mu.Unlock()
	before, ok := t.ratios[model]
	if !ok {
		before = 1
	}
	t.ratios[model] = max(before, least)
}

// IsPlausible reports whether a provider's number can be that of a whole request with that
// estimate. A number that is too small counts only a part.
func IsPlausible(estimated int, counted int64) bool {
	return counted > 0 && counted >= int64(estimated/implausible)
}

// A Count estimates the requests of one conversation.
type Count struct {
	Ratios *Ratios

	model     string
	estimated int // the estimate of the last request that a provider counted
	// the provider's number for that request
	counted int64
}

// Add records how many tokens the provider counted in a request, beside our estimate. It
// leaves out a number that cannot be that of the whole request.
func (c *Count) Add(model string, estimated int, use llm.Usage) {
	if use.Estimated || !IsPlausible(estimated, use.Input) {
		return
	}
	c.model, c.estimated, c.counted = model, estimated, use.Input
	c.Ratios.Learn(model, estimated, use.Input)
}

// Of returns how many tokens a request with that estimate has for a model.
func (c *Count) Of(model string, estimated int) int {
	ratio, _ := c.Ratios.Ratio(model)
	if c.counted == 0 || c.model != model {
		return int(float64(estimated) * ratio)
	}
	return max(0, int(float64(c.counted)+float64(estimated-c.estimated)*ratio))
}

// IsLearned reports whether a provider has counted requests of the model.
func (c *Count) IsLearned(model string) bool {
	_, known := c.Ratios.Ratio(model)
	return known
}
