// Package failover asks a chain of models, one after another, until one of them answers.
//
// It owns all retrying of model calls: whoever asks a Chain asks once. failover.go is the
// Chain, and which of its models it asks; try.go asks one model a few times; cooldown.go
// remembers, for the whole fleet, which model is left alone for a while.
package failover

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"parley/agent/llm"
)

// A Link is a model of a chain.
type Link struct {
	// ID is by what the fleet knows the model when it is left alone: another address,
	// name or key is another ID. It holds no secret.
	ID    string
	Model llm.Model
}

// Config is what a Chain works with.
type Config struct {
	Links []Link // in the order in which they are asked; at least one
	// Notes keep for all processes which model is left alone; left out: each process
	// finds out for itself.
	Notes Notes
	// Observe, if set, is told of each try.
	Observe func(Try)
	// Moved, if set, is told that a model was asked in the place of another.
	Moved func(from, to string)
	Log   *slog.Logger // left out: nothing is logged
}

// A Try is a request of one model, once it is over.
type Try struct {
	Model  string
	Result string // "ok" or the fault
	Usage  llm.Usage
	Took   time.Duration
	First  time.Duration // until something of an answer came; 0 where nothing did
}

// A Chain is a model that consists of several.
type Chain struct {
	cfg       Config
	cooldowns cooldowns

	mu   sync.Mutex
	last map[string]answered // by session
}

// answered is which link has answered a session last, and when.
type answered struct {
	link int
	at   time.Time
}

const (
	// stays is how long a session stays with the model that has answered it, though an
	// earlier one of the chain is back: so long a provider may still keep its prompt.
	stays = 10 * time.Minute
	// mostRemembered bounds for how many sessions it is remembered who has answered.
	mostRemembered = 4096
)

// New makes a chain of models.
func New(cfg Config) *Chain {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Observe == nil {
		cfg.Observe = func(Try) {}
	}
	if cfg.Moved == nil {
		cfg.Moved = func(string, string) {}
	}
	return &Chain{
		cfg: cfg, last: make(map[string]answered),
		cooldowns: cooldowns{notes: cfg.Notes, log: cfg.Log, known: make(map[string]cooldown), probed: make(map[string]bool)},
	}
}

// Info implements llm.Model. It is the first model's, but for the price: that is the
// highest of all, and known where each is.
func (c *Chain) Info() llm.Info {
	info := c.cfg.Links[0].Model.Info()
	for _, l := range c.cfg.Links[1:] {
		other := l.Model.Info()
		info.Priced = info.Priced && other.Priced
		info.Price = llm.Price{
			Input: max(info.Price.Input, other.Price.Input), Cached: max(info.Price.Cached, other.Price.Cached),
			Output: max(info.Price.Output, other.Price.Output),
		}
	}
	return info
}

// Generate implements llm.Model: it asks the models of the chain until one answers. What
// it returns as an error is that of the model that may be asked again soonest.
func (c *Chain) Generate(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Answer, error) {
	a := &asking{Chain: c, request: r, emit: emit}
	links, probing := c.choose(ctx, r.Session)
	defer probing()
	for _, link := range links {
		answer, err := a.askLink(ctx, link)
		if err == nil {
			c.remember(r.Session, link)
			return answer, nil
		}
		fault, ok := errors.AsType[*llm.Error](err)
		if !ok {
			return llm.Answer{}, err // ctx's, or that of r.Retry
		}
		if fault.Fault == llm.Overflow { // whoever asks has to ask for less
			return llm.Answer{}, a.failure(fault)
		}
		if a.failed == nil || fault.Fault == llm.Busy && a.failed.Fault != llm.Busy {
			a.failed = fault
		}
	}
	if a.part != nil {
		return *a.part, nil
	}
	return llm.Answer{}, a.failure(a.failed)
}

// choose returns the links to ask, in order: the one that has answered the session
// lately, then the others, but none that is left alone. Where all are, it is the one whose
// time is over first: somebody waits, and to ask costs little. Done is to be called once
// they were asked.
func (c *Chain) choose(ctx context.Context, session string) (links []int, done func()) {
	if len(c.cfg.Links) == 1 {
		return []int{0}, func() {}
	}
	order := make([]int, 0, len(c.cfg.Links)+1)
	if stayed, ok := c.remembered(session); ok {
		order = append(order, stayed)
	}
	for i := range c.cfg.Links {
		if len(order) == 0 || order[0] != i {
			order = append(order, i)
		}
	}
	soonest, opens := order[0], time.Time{}
	var probes []string
	for _, link := range order {
		id := c.cfg.Links[link].ID
		until, probe := c.cooldowns.ask(ctx, id)
		if until.IsZero() {
			links = append(links, link)
			if probe {
				probes = append(probes, id)
			}
			continue
		}
		if opens.IsZero() || until.Before(opens) {
			soonest, opens = link, until
		}
	}
	if len(links) == 0 {
		links = []int{soonest}
	}
	return links, func() { c.cooldowns.probeEnds(probes) }
}

// remember notes that a link has answered a session.
func (c *Chain) remember(session string, link int) {
	if session == "" || len(c.cfg.Links) == 1 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if link == 0 { // which is asked first anyway
		delete(c.last, session)
		return
	}
	if len(c.last) >= mostRemembered {
		clear(c.last)
	}
	c.last[session] = answered{link, time.Now()}
}

// remembered is the link that has answered a session lately.
func (c *Chain) remembered(session string) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.last[session]
	if !ok || time.Since(a.at) > stays {
		delete(c.last, session)
		return 0, false
	}
	return a.link, true
}
