package api

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"parley/cmd/parley/api/exchange"
	"parley/sessions/activity"
)

// Activity provides sums over time: how turns ended, how long people waited for answers, and how calls of tools went; see
// [activity.Table].
type Activity interface {
	Summary(ctx context.Context, by activity.Period, since time.Time) (activity.Summary, error)
}

// trendRoutes returns the route for the sums. Only callers who may read everything may use it, because the sums include
// everybody.
func trendRoutes(counts Activity) []exchange.Route {
	return []exchange.Route{{Pattern: "GET /v1/activity", May: exchange.Caller.MayReadAll, Serve: trends{counts}.show}}
}

// trends answers with the sums.
type trends struct{ counts Activity }

// show answers with the sums since a time, by hour or by day. By default it sums the last 24 hours by hour; if asked to
// sum by day, it takes the last 30 days.
func (s trends) show(w *exchange.Answer, r *http.Request) error {
	by := activity.Period(cmp.Or(r.URL.Query().Get("by"), string(activity.Hour)))
	if by != activity.Hour && by != activity.Day {
		return exchange.BadRequest("bad_query", `"by" must be hour or day`)
	}
	since, err := exchange.Moment(r, "since")
	if err != nil {
		return err
	}
	now := time.Now()
	if since.IsZero() {
		since = now.Add(-23 * time.Hour)
		if by == activity.Day {
			since = now.AddDate(0, 0, -29)
		}
	}
	if days := int(by.MaxSpan() / (24 * time.Hour)); since.Before(now.AddDate(0, 0, -days)) {
		return exchange.BadRequest("bad_query", `if "by" is %s, "since" must be at most %d days ago`, by, days)
	}
	all, err := s.counts.Summary(r.Context(), by, since)
	if err != nil {
		return err
	}
	return w.JSON(http.StatusOK, all)
}
