// Package tally counts how many tokens requests have, with what providers have counted.
//
// Nobody but a provider can count: the same text is a quarter as many tokens for one
// model as for another. So a request is counted as the last one of the conversation, as
// the provider has counted that, and what was added since; the latter is estimated by its
// length, and by how far that was off for this model so far.
package tally

import (
	"sync"

	"parley/agent/llm"
)

const (
	// A figure says something about the model's tokens only of a request of some size.
	leastLearned = 1000
	// weight is that of the newest figure among all.
	weight = 0.3
	// Further off than this no model is; such a figure is of something else.
	leastRatio, mostRatio = 0.2, 6
	// implausible is how many times smaller than estimated a figure may be. Some servers
	// leave out what they had read before.
	implausible = 8
)

// A Tally knows how far estimates are off, by model. It may be used by many at once.
type Tally struct {
	mu     sync.Mutex
	ratios map[string]float64
}

// New makes a Tally that knows nothing.
func New() *Tally { return &Tally{ratios: make(map[string]float64)} }

// Ratio is how many tokens of the model an estimated one is, and whether that was learned.
func (t *Tally) Ratio(model string) (float64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r, ok := t.ratios[model]; ok {
		return r, true
	}
	return 1, false
}

// Learn takes in what a provider has counted of a request.
func (t *Tally) Learn(model string, estimated int, counted int64) {
	if estimated < leastLearned || !Plausible(estimated, counted) {
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

// AtLeast takes in that a request of that estimate had more than so many tokens.
func (t *Tally) AtLeast(model string, estimated int, tokens int) {
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

// Plausible tells whether a provider can have counted so few tokens of a request of that
// estimate. What it cannot have counted of a part, it cannot of the whole.
func Plausible(estimated int, counted int64) bool {
	return counted > 0 && counted >= int64(estimated/implausible)
}

// A Count counts the requests of one conversation.
type Count struct {
	Tally *Tally

	model     string
	estimated int // of the last request that was counted
	counted   int64
}

// Note takes in what the provider has counted of a request.
func (c *Count) Note(model string, estimated int, use llm.Usage) {
	if use.Estimated || !Plausible(estimated, use.Input) {
		return
	}
	c.model, c.estimated, c.counted = model, estimated, use.Input
	c.Tally.Learn(model, estimated, use.Input)
}

// Of is how many tokens a request of that estimate has for a model.
func (c *Count) Of(model string, estimated int) int {
	ratio, _ := c.Tally.Ratio(model)
	if c.counted == 0 || c.model != model {
		return int(float64(estimated) * ratio)
	}
	return max(0, int(float64(c.counted)+float64(estimated-c.estimated)*ratio))
}

// Counted tells whether a provider has counted requests of the model.
func (c *Count) Counted(model string) bool {
	_, known := c.Tally.Ratio(model)
	return known
}
