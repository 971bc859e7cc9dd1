package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"parley/cmd/parley/api/exchange"
	"parley/sessions/bill"
)

// Usage knows how many tokens models have used, and what they cost.
type Usage struct {
	// Sums adds up what was used; see [bill.Table].
	Sums func(ctx context.Context, by bill.Grouping, from, to time.Time) ([]bill.Sum, error)
	// Caps returns how much of each cost cap is used; none if no price is known.
	Caps   func(ctx context.Context) ([]bill.CapState, error)
	Prices string // the date of the price list
}

// show answers with the tokens that models have used and their cost: by default those of this
// month, by day.
func (u Usage) show(w *exchange.Answer, r *http.Request) error {
	now := time.Now().UTC()
	from, err := exchange.Day(r, "from", time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		return err
	}
	to, err := exchange.Day(r, "to", now)
	if err != nil {
		return err
	}
	all, err := u.Sums(r.Context(), bill.Grouping(cmp.Or(r.URL.Query().Get("by"), string(bill.ByDay))), from, to)
	if errors.Is(err, bill.ErrUnknownGrouping) {
		return exchange.BadRequest("bad_query", `"by" must be hour, day, person, session, agent or model, or two of these, like day,model`)
	}
	if errors.Is(err, bill.ErrTooManySums) {
		return exchange.BadRequest("too_many", "that's more than %d totals: ask for fewer days", bill.MaxSums)
	}
	if err != nil {
		return err
	}
	caps, err := u.Caps(r.Context())
	if err != nil {
		return err
	}
	return w.JSON(http.StatusOK, struct {
		Usage  []bill.Sum      `json:"usage"`
		Caps   []bill.CapState `json:"caps"`
		Prices string          `json:"prices"`
	}{append([]bill.Sum{}, all...), append([]bill.CapState{}, caps...), u.Prices})
}
