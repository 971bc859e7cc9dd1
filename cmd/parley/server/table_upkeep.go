package server

import (
	"context"
	"time"

	"parley/sessions/search"
	"parley/sessions/stepwise"
)

const (
	// sumEvery is how often recent usage is added to the stored sums.
	sumEvery = 10 * time.Minute
	// sweepEvery is how often counted calls are removed that no rate needs anymore.
	sweepEvery = time.Hour
)

// tableUpkeep returns the parts that keep tables up to date in steps, as long as this process serves.
func tableUpkeep(on foundation, serves bool) []part {
	store := on.home.Store
	row := func(name string, every time.Duration, step func(context.Context) (bool, error)) part {
		return part{name, upkeep, serves, &stepwise.Work{Name: name, Step: step, Interval: every, Log: on.log}}
	}
	return []part{
		row("index", search.FillInterval, (&search.Filler{Index: store.Words(), Log: on.log}).Step),
		row("participants", 0, store.Participants().Fill),
		row("sums of usage", sumEvery, store.Bill().SumUp),
		row("counted calls", sweepEvery, store.Rates().Sweep),
	}
}
