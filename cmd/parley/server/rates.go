package server

import (
	"context"
	"errors"
	"time"

	"parley/sessions/rates"
	"parley/tools"
)

// countCall counts a call for its person, whom payer returns, under each rate in force that limits the tool. If the
// person has used up one of these rates, countCall returns the error for the model, and counts nothing.
func (g *guarding) countCall(ctx context.Context, call tools.Call, payer func(context.Context) (string, error)) (refused *tools.Error, err error) {
	limits := g.inForce.Load().RatesOf(g.nodes.ToolNames(call)...)
	if len(limits) == 0 {
		return nil, nil
	}
	person, err := payer(ctx)
	if err != nil {
		return nil, err
	}
	limiting := make([]rates.Rate, len(limits))
	for i, l := range limits {
		limiting[i] = rates.Rate{Tools: l.Tools(), Limit: l.MaxCalls, Window: l.Period}
	}
	err = g.home.Store.Rates().Count(ctx, person, call.Key, limiting...)
	if over, is := errors.AsType[*rates.OverError](err); is {
		return textOverRate(call.Name, over, time.Now()), nil
	}
	return nil, err
}
