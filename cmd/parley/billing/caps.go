package billing

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/cmd/parley/watch"
	"parley/sessions/bill"
)

// Caps are what models may cost, in micro-dollars; 0 is not bounded.
type Caps struct {
	UserDay, Day, Month int64
	Agents              map[string]int64 // in a day
	TellAt              int              // percent at which owners are told
}

// Spent is what is spent and set aside of a cap in the day or month of a time.
type Spent func(ctx context.Context, c bill.Cap, at time.Time) (int64, error)

// Source looks whether models have nearly cost what all, or one agent, may cost. Owners
// are told once in a day or a month, whatever is given back later.
func Source(spent Spent, caps func() Caps, judges func() bool) watch.Source {
	const prefix = "budget/"
	return watch.Source{
		ID: prefix, Judges: judges, Over: func(string) string { return "" },
		Look: func(ctx context.Context, open map[string]bool) ([]watch.Concern, error) {
			now, set := time.Now(), caps()
			var all []watch.Concern
			for _, c := range set.watched() {
				id := prefix + c.of.Opens(now).Format(time.DateOnly) + "/" + c.setting
				micro, err := spent(ctx, c.of, now)
				if err != nil {
					return nil, fmt.Errorf("look what models have cost: %w", err)
				}
				if open[id] || micro*100 >= c.of.Most*int64(set.TellAt) {
					all = append(all, watch.Concern{ID: id, Text: c.words(micro, now)})
				}
			}
			return all, nil
		},
	}
}

// A watched cap is one that owners hear of.
type watched struct {
	of      bill.Cap
	who     string
	setting string
}

func (c Caps) watched() (all []watched) {
	if c.Day > 0 {
		all = append(all, watched{bill.Cap{Most: c.Day}, "all", "[budget] day"})
	}
	if c.Month > 0 {
		all = append(all, watched{bill.Cap{Month: true, Most: c.Month}, "all", "[budget] month"})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		if c.Agents[name] > 0 {
			all = append(all, watched{bill.Cap{Of: bill.Agent(name), Most: c.Agents[name]}, "the agent " + name, "[agents." + name + "] day"})
		}
	}
	return all
}

func (c watched) words(micro int64, now time.Time) string {
	span := "today"
	if c.of.Month {
		span = "this month"
	}
	return fmt.Sprintf("Models have cost %s of the %s that %s may cost %s (`%s`). When it is used up, nobody is answered until %s UTC.",
		bill.Dollars(micro), bill.Dollars(c.of.Most), c.who, span, c.setting, c.of.Opens(now).Format("2 January, 15:04"))
}

// DefaultWords says which caps hold though nobody has set them, and gives them as what the
// book may note of them. Set are the keys of [budget] that are set.
func DefaultWords(c Caps, set func(key string) bool) (words string, notes []string) {
	var caps, keys []string
	for _, one := range []struct {
		key, who string
		most     int64
	}{{"user_day", "for one person in a day", c.UserDay}, {"day", "for all in a day", c.Day}, {"month", "for all in a month", c.Month}} {
		if !set(one.key) {
			caps, keys = append(caps, bill.Dollars(one.most)+" "+one.who), append(keys, "`"+one.key+"`")
			notes = append(notes, one.key+"="+bill.Dollars(one.most))
		}
	}
	if len(caps) == 0 {
		return "", nil
	}
	return fmt.Sprintf("What models cost is bounded now, because nothing else is set: %s (days and months are UTC's). To change that, set %s in `[budget]`; `parley usage` says what they have cost.",
		strings.Join(caps, ", "), strings.Join(keys, ", ")), notes
}
