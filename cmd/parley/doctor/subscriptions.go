package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/sessions/sqldb"
	"parley/sessions/subscriptions"
)

// checkSubscriptions returns a finding for each subscription, which says whether its events are accepted. It posts
// nothing, because only the server posts.
func checkSubscriptions(ctx context.Context, cfg *config.Config) (found []Finding) {
	names := slices.Sorted(maps.Keys(cfg.Subscriptions))
	if len(names) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	states := map[string]subscriptions.State{}
	err := home.WithTable(ctx, cfg, "subscription_events", func(db *sqldb.DB) (err error) {
		t := subscriptions.NewTable(db)
		for _, name := range names {
			if states[name], err = t.State(ctx, name); err != nil {
				return err
			}
		}
		return nil
	})
	for _, name := range names {
		f := judgeSubscription(name, states[name], time.Now())
		if err != nil {
			f = Finding{State: note, Detail: fmt.Sprintf(textSubscriptionUnknown, err)}
		}
		f.Part = "subscription " + name
		found = append(found, f)
	}
	return found
}

// judgeSubscription returns the finding about a subscription in that state.
func judgeSubscription(name string, s subscriptions.State, now time.Time) Finding {
	f := Finding{State: fine}
	switch {
	case !s.Failing.IsZero():
		f.State, f.Detail = wrong, fmt.Sprintf(textSubscriptionFailing, s.Failing.Format(time.RFC3339), s.Problem, s.Tries, s.Waiting)
		f.Remedy = fmt.Sprintf(textSubscriptionRemedy, name)
	case s.Accepted.IsZero() && s.Waiting == 0:
		f.Detail = textSubscriptionNew
	case s.Accepted.IsZero():
		f.State, f.Detail, f.Remedy = note, fmt.Sprintf(textSubscriptionWaits, s.Waiting), textSubscriptionServe
	default:
		f.Detail = fmt.Sprintf(textSubscriptionFine, s.Accepted.Format(time.RFC3339), s.Waiting)
		if s.Waiting > 0 && now.Sub(s.Accepted) > time.Hour {
			f.State, f.Remedy = note, textSubscriptionServe
		}
	}
	if s.Dropped > 0 {
		f.Detail += fmt.Sprintf(textSubscriptionDropped, s.Dropped, s.DroppedAt.Format(time.RFC3339))
	}
	return f
}
