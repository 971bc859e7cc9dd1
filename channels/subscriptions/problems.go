package subscriptions

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/channels/problems"
	"parley/sessions/subscriptions"
)

// namePrefix begins the ids of the concerns about subscriptions, and droppedSuffix ends the id of one about dropped events.
const (
	namePrefix    = "subscription/"
	droppedSuffix = "/dropped"
)

// droppedConcernTime is how long dropped events stay a concern: owners are told again only if more are dropped meanwhile.
const droppedConcernTime = 24 * time.Hour

// Source returns the problems.Source that watches for subscribers that accept nothing for longer than after, and for
// events that were dropped.
func Source(t *subscriptions.Table, judges func() bool, after time.Duration) problems.Source {
	failed, accepted := map[string]time.Time{}, map[string]time.Time{} // since when each failed, and when it accepted an event last
	return problems.Source{
		ID: namePrefix, IsResponsible: judges,
		FindConcerns: func(ctx context.Context, _ map[string]bool) (all []problems.Concern, err error) {
			for _, name := range t.Names() {
				s, err := t.State(ctx, name)
				if err != nil {
					return nil, err
				}
				if accepted[name] = s.Accepted; !s.Failing.IsZero() {
					failed[name] = s.Failing
				}
				all = append(all, concernsAbout(s, after)...)
			}
			return all, nil
		},
		EndText: func(id string) string {
			name := strings.TrimPrefix(id, namePrefix)
			if !slices.Contains(t.Names(), name) || !accepted[name].After(failed[name]) {
				return "" // it was removed; or what it refused was erased, or is about dropped events
			}
			return fmt.Sprintf(textRecovered, name)
		},
	}
}

// concernsAbout returns what owners need to know about a subscription.
func concernsAbout(s subscriptions.State, after time.Duration) (all []problems.Concern) {
	if !s.Failing.IsZero() {
		all = append(all, problems.Concern{
			ID: namePrefix + s.Name, TellAfter: after,
			Text: fmt.Sprintf(textFailing, s.Name, s.Failing.Format("2006-01-02 15:04 MST"), s.Problem, s.Waiting),
		})
	}
	if s.Dropped > 0 && time.Since(s.DroppedAt) < droppedConcernTime {
		all = append(all, problems.Concern{ID: namePrefix + s.Name + droppedSuffix, Count: int(s.Dropped), Text: fmt.Sprintf(textDropped, s.Name, s.Dropped)})
	}
	return all
}
