// Package failover asks a chain of models, one after another, until one of them answers.
//
// This package does all retries of model calls: the caller of a Chain asks once. failover.go is the Chain, and
// decides which of its models to ask; try.go asks one model a few times; cooldown.go remembers, for the whole
// fleet, which models are left alone for a while.
package failover

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/agent/llm"
)

// A Link is one model of a chain.
type Link struct {
	// ID identifies the model in the Notes. A model with a different address, name or key has a different ID. It
	// contains no secret.
	ID    string
	Model llm.Model
}

// Config says which models a Chain asks, and who is told about it.
type Config struct {
	Links []Link // in the order in which they are asked; at least one
	// Notes tell all processes which models are left alone; if nil, each process finds that out for itself.
	Notes Notes
	// OnTry, if set, is called after each try.
	OnTry func(Try)
	// OnFailover, if set, is called when a request goes on from one model to the next.
	OnFailover func(from, to string)
	Log        *slog.Logger // nil: nothing is logged
}

// A Try is one finished request to one model.
type Try struct {
	Turn   string // of the request; "" for none
	Model  string
	Result string // "ok", or the llm.Fault
	Usage  llm.Usage
	Began  time.Time
	Took   time.Duration
	First  time.Duration // until the first piece of an answer arrived; 0 if none did
}

// A Chain is an llm.Model that asks several models one after another, until one answers.
type Chain struct {
	cfg       Config
	cooldowns cooldowns

	mu   sync.Mutex
	last map[string]lastAnswer // by session
}

// A lastAnswer says which link of a chain gave a session's last answer, and when.
type lastAnswer struct {
	link int
	at   time.Time
}

const (
	// stickyTime is how long a session stays with the model that last answered it, even if an earlier model of the
	// chain works again. For about that long a provider may still have the session's prompt in its cache.
	stickyTime = 10 * time.Minute
	// maxSessions limits for how many sessions a Chain remembers the link that answered.
	maxSessions = 4096
)

// New makes a Chain of the models in cfg.
func New(cfg Config) *Chain {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.OnTry == nil {
		cfg.OnTry = func(Try) {}
	}
	if cfg.OnFailover == nil {
		cfg.OnFailover = func(string, string) {}
	}
	return &Chain{
		cfg: cfg, last: make(map[string]lastAnswer),
		cooldowns: cooldowns{notes: cfg.Notes, log: cfg.Log, known: make(map[string]cooldown), probed: make(map[string]bool)},
	}
}

// Info describes the chain as if it were one model: it returns the Info of the first model, but with the
// highest of all prices. The price is known only if the price of every model is known, and the chain takes no
// tools only if none of its models does.
func (c *Chain) Info() llm.Info {
	info := c.cfg.Links[0].Model.Info()
	for _, l := range c.cfg.Links[1:] {
		other := l.Model.Info()
		info.Priced = info.Priced && other.Priced
		info.Toolless = info.Toolless && other.Toolless
		info.Price = llm.Price{
			Input: max(info.Price.Input, other.Price.Input), Cached: max(info.Price.Cached, other.Price.Cached),
			Output: max(info.Price.Output, other.Price.Output),
		}
	}
	return info
}

// PriceFor returns the price of the model that is likely to answer a session's next request: the one that
// answered it recently, or else the first. It is 0 if the price is not known.
func (c *Chain) PriceFor(session string) llm.Price {
	link, _ := c.rememberedLink(session)
	return c.cfg.Links[link].Model.Info().Price
}

// Generate asks the models of the chain one after another, until one answers. If none does, it returns the first of
// these that there is: an overflow error if the request was too long for one of them, so that the caller can send a
// shorter one; the last partial answer with text; the error of the first model that was merely busy; the error of
// the first model. When ctx ends, or r.Retry returns an error, it asks no further model.
func (c *Chain) Generate(ctx context.Context, r *llm.Request, emit func(llm.Delta)) (*llm.Answer, error) {
	a := &requestState{Chain: c, request: r, emit: emit}
	links, endProbes := c.chooseLinks(ctx, r.Session)
	defer endProbes()
	for _, link := range links {
		answer, err := a.askLink(ctx, link)
		if err == nil {
			c.remember(r.Session, link)
			return answer, nil
		}
		if err := a.afterFailure(err); err != nil {
			return nil, err
		}
	}
	if a.tooLong != nil {
		return nil, a.errorOf(a.tooLong)
	}
	if a.partialAnswer != nil {
		return a.lastPart(), nil
	}
	return nil, a.errorOf(a.failed)
}

// chooseLinks returns the links to ask, in order: first the one that answered the session recently, then the
// others, without those that are left alone. If all are left alone, it returns all of them, beginning with the
// one whose time is up first: somebody is waiting, asking costs little, and any of them may work again. The
// caller must call done after asking the links.
func (c *Chain) chooseLinks(ctx context.Context, session string) (links []int, done func()) {
	if len(c.cfg.Links) == 1 {
		return []int{0}, func() {}
	}
	order := make([]int, 0, len(c.cfg.Links)+1)
	if stayed, ok := c.rememberedLink(session); ok {
		order = append(order, stayed)
	}
	for i := range c.cfg.Links {
		if len(order) == 0 || order[0] != i {
			order = append(order, i)
		}
	}
	opens := make([]time.Time, len(c.cfg.Links)) // by link
	var probes []string
	for _, link := range order {
		id := c.cfg.Links[link].ID
		until, probe := c.cooldowns.leftAloneUntil(ctx, id)
		opens[link] = until
		if until.IsZero() {
			links = append(links, link)
		}
		if probe {
			probes = append(probes, id)
		}
	}
	if len(links) == 0 {
		links = order
		slices.SortStableFunc(links, func(a, b int) int { return opens[a].Compare(opens[b]) })
	}
	return links, func() { c.cooldowns.endProbes(probes) }
}

// remember records which link answered a session.
func (c *Chain) remember(session string, link int) {
	if session == "" || len(c.cfg.Links) == 1 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if link == 0 { // it is asked first anyway
		delete(c.last, session)
		return
	}
	if len(c.last) >= maxSessions {
		clear(c.last)
	}
	c.last[session] = lastAnswer{link, time.Now()}
}

// rememberedLink returns the link that answered a session recently; false if none did.
func (c *Chain) rememberedLink(session string) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.last[session]
	if !ok || time.Since(a.at) > stickyTime {
		delete(c.last, session)
		return 0, false
	}
	return a.link, true
}
