package billing

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/channels/problems"
	"parley/sessions/bill"
)

// Caps says how much models may cost, in micro-dollars (millionths of a dollar); 0 means no limit.
type Caps struct {
	UserDay, SessionDay, Day, Month int64
	Agents                          map[string]int64 // how much each agent may cost in a day
	WarnPercent                     int              // the percentage of a cap at which owners are warned
}

// Spent returns how much of a cap has been spent, in micro-dollars, in the day or month that contains the time at.
// Amounts reserved for running turns don't count as spent.
type Spent func(ctx context.Context, c bill.Cap, at time.Time) (int64, error)

// Source returns the check that finds caps that are nearly used up: the cap on all agents together, and each
// agent's own. Owners are told once per day or month, even if some of the cost is given back later.
func Source(spent Spent, caps func() Caps, judges func() bool) problems.Source {
	const prefix = "budget/"
	return problems.Source{
		ID: prefix, IsResponsible: judges, EndText: func(string) string { return "" },
		FindConcerns: func(ctx context.Context, open map[string]bool) ([]problems.Concern, error) {
			now, set := time.Now(), caps()
			var all []problems.Concern
			for _, c := range set.watchedCaps() {
				id := prefix + c.of.NextPeriod(now).Format(time.DateOnly) + "/" + c.setting
				micro, err := spent(ctx, c.of, now)
				if err != nil {
					return nil, fmt.Errorf("find out what models have cost: %w", err)
				}
				if open[id] || micro*100 >= c.of.Limit*int64(set.WarnPercent) {
					all = append(all, problems.Concern{ID: id, Text: c.warningText(micro, now)})
				}
			}
			return all, nil
		},
	}
}

// A watchedCap is a cap that owners are told about.
type watchedCap struct {
	of      bill.Cap
	who     string
	setting string
}

// watchedCaps returns the caps that are set: those on all agents together, and those on each agent.
func (c Caps) watchedCaps() (all []watchedCap) {
	if c.Day > 0 {
		all = append(all, watchedCap{bill.Cap{Limit: c.Day}, "everyone together", "[budget] day"})
	}
	if c.Month > 0 {
		all = append(all, watchedCap{bill.Cap{IsMonthly: true, Limit: c.Month}, "everyone together", "[budget] month"})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		if c.Agents[name] > 0 {
			all = append(all, watchedCap{bill.Cap{Subject: bill.Agent(name), Limit: c.Agents[name]}, "the agent " + name, "[agents." + name + "] day"})
		}
	}
	return all
}

// warningText tells owners how much of the cap has been used; micro is that amount in micro-dollars.
func (c watchedCap) warningText(micro int64, now time.Time) string {
	span := "today"
	if c.of.IsMonthly {
		span = "this month"
	}
	return fmt.Sprintf(textNearCap,
		bill.Dollars(micro), bill.Dollars(c.of.Limit), c.who, span, c.setting, c.of.NextPeriod(now).Format("January 2, 15:04"))
}

// CapStates returns how much of each cap is used: of the caps on all agents together and on each agent, and of the
// caps on the people and sessions that something is reserved for now. There are none if no price is known.
func (d *UsageReporter) CapStates(ctx context.Context) ([]bill.CapState, error) {
	if d.Caps == nil {
		return nil, nil
	}
	now, caps := time.Now(), d.Caps()
	aside, err := d.Budget.SetAside(ctx)
	if err != nil {
		return nil, err
	}
	watched := caps.watchedCaps()
	subjects, err := aside.Subjects(now)
	if err != nil {
		return nil, err
	}
	for _, of := range subjects {
		switch {
		case caps.UserDay > 0 && strings.HasPrefix(of, bill.Person("")):
			watched = append(watched, watchedCap{of: bill.Cap{Subject: of, Limit: caps.UserDay}, setting: "[budget] user_day"})
		case caps.SessionDay > 0 && strings.HasPrefix(of, bill.Session("")):
			watched = append(watched, watchedCap{of: bill.Cap{Subject: of, Limit: caps.SessionDay}, setting: "[budget] session_day"})
		}
	}
	all := make([]bill.CapState, 0, len(watched))
	for _, c := range watched {
		state, err := d.Budget.CapState(ctx, aside, c.of, c.setting, now)
		if err != nil {
			return nil, err
		}
		all = append(all, state)
	}
	return all, nil
}
