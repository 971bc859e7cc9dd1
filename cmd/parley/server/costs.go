package server

import (
	"context"
	"log/slog"
	"time"

	"parley/agent/llm"
	"parley/channels/billing"
	"parley/channels/owners"
	"parley/cmd/parley/server/models"
	"parley/sessions/bill"
)

// costs knows what models have cost and what they may cost, and tells the people concerned.
type costs struct {
	foundation
	*billing.UsageReporter
	owners *owners.Owners
}

// newCosts returns the part that limits the cost of these models. No cap applies unless the price of some model is known.
func newCosts(on foundation, o *owners.Owners, of *modelChains) *costs {
	c := &costs{foundation: on, owners: o}
	c.UsageReporter = &billing.UsageReporter{Usage: on.home.Store.Bill().Usage, Linked: c.linked, Budget: on.home.Store.Money()}
	for _, model := range of.byAgent {
		if model.Info().Price != (llm.Price{}) {
			c.Caps = c.currentCaps
		}
	}
	return c
}

// Load reads the price list, to find out its date.
func (c *costs) Load(context.Context) error {
	list, err := models.Prices(c.settings.Load())
	c.Prices = list.Date
	return err
}

// Run announces, once, the caps that apply by default. No cap applies without known prices.
func (c *costs) Run(ctx context.Context) error {
	if c.Caps == nil {
		return nil
	}
	now := c.settings.Load()
	err := (&billing.DefaultCaps{
		Caps: c.currentCaps(), IsSet: func(key string) bool { return now.Origin("budget."+key) != "" }, Notes: c.home.Book, Tell: c.owners.NotifyOnce, Log: c.log,
		WasUsedBefore: func(ctx context.Context) (bool, error) {
			first, err := c.home.Store.List(ctx, "", 1)
			return len(first) > 0, err
		},
	}).Announce(ctx)
	if err != nil && ctx.Err() == nil {
		c.log.Warn("nobody may have been told which caps on models hold", slog.Any("error", err))
	}
	return nil
}

// currentCaps returns what models may cost, according to the current settings.
func (c *costs) currentCaps() billing.Caps {
	now := c.settings.Load()
	most := now.Budget
	caps := billing.Caps{UserDay: most.UserDay, SessionDay: most.SessionDay, Day: most.Day, Month: most.Month, WarnPercent: most.TellAt, Agents: map[string]int64{}}
	for name, a := range now.Agents {
		caps.Agents[name] = a.Day
	}
	return caps
}

// spent returns how much of a cap was spent, in millionths of a dollar, in the day or month that contains at. What is reserved
// does not count.
func (c *costs) spent(ctx context.Context, of bill.Cap, at time.Time) (micro int64, err error) {
	micro, _, err = c.home.Store.Money().State(ctx, of, at)
	return micro, err
}

// linked returns the ids of all accounts that are known to belong to the same person as this one.
func (c *costs) linked(ctx context.Context, person string) (all []string, err error) {
	links, err := c.home.Book.LinkedWith(ctx, person)
	for _, l := range links {
		all = append(all, l.Person)
	}
	return all, err
}

// newSweeper returns the sweeper that settles the cost of calls that nobody is working on any
// longer.
func (c *costs) newSweeper() *billing.Sweeper {
	return &billing.Sweeper{Bus: c.home.Bus, Settle: c.home.Store.SettleAbandoned, Log: c.log}
}
