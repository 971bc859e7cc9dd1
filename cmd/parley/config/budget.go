package config

import (
	"slices"

	"parley/cmd/parley/config/schema"
)

// Budget limits what models may cost, in micro-dollars.
type Budget struct {
	UserDay    int64  // limit for one person per day
	SessionDay int64  // limit for one conversation per day; 0 means no limit
	Day, Month int64  // limits for everybody together
	TellAt     int    // the percentage of a cap at which owners are warned
	Prices     string // the file that contains the price list; "" means the built-in list
	// Written says whether the operator has set a cap: here, for the heartbeat or for an agent.
	Written bool
}

// budgetSection declares the settings of what models may cost.
func budgetSection() section {
	return section{
		Section: schema.Section{Name: "budget", Settings: []schema.Setting{
			{Key: "user_day", Kind: schema.Money, Default: int64(2_000_000), Least: 1, Reload: schema.AtOnce, Fill: schema.Into(func(b *Budget) any { return &b.UserDay })},
			{Key: "session_day", Kind: schema.Money, Least: 1, Example: `1.0`, Reload: schema.AtOnce, Fill: schema.Into(func(b *Budget) any { return &b.SessionDay })},
			{Key: "day", Kind: schema.Money, Default: int64(20_000_000), Least: 1, Reload: schema.AtOnce, Fill: schema.Into(func(b *Budget) any { return &b.Day })},
			{Key: "month", Kind: schema.Money, Default: int64(200_000_000), Least: 1, Reload: schema.AtOnce, Fill: schema.Into(func(b *Budget) any { return &b.Month })},
			{Key: "tell_at", Kind: schema.Count, Default: int64(80), Least: 1, Reload: schema.AtOnce, Fill: schema.Into(func(b *Budget) any { return &b.TellAt })},
			{Key: "prices", Kind: schema.Path, Example: `"prices.json"`, Fill: schema.Into(func(b *Budget) any { return &b.Prices })},
		}},
		check: checkBudget,
	}
}

// checkBudget reports a warning percentage above 100, which would never be reached, so nobody would
// be told.
func checkBudget(l *loader) {
	if share, _ := l.Value("budget.tell_at").(int64); share > 100 {
		l.Report(l.At("budget.tell_at"), "budget.tell_at", "it's a percentage, so it can be at most 100", "write something like tell_at = 80")
	}
}

// hasCostCap reports whether the operator has set any limit on what models may cost.
func hasCostCap(s *schema.Settings) bool {
	for _, key := range []string{"user_day", "session_day", "day", "month"} {
		if s.IsSet("budget." + key) {
			return true
		}
	}
	if s.IsSet("heartbeat.day") {
		return true
	}
	return slices.ContainsFunc(s.Names("agents"), func(name string) bool { return s.IsSet("agents." + name + ".day") })
}
