package billing_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"parley/channels/billing"
	"parley/sessions/bill"
)

// Owners are warned of nearly used caps once in the day or month of each.
func TestOwnersAreWarnedOfNearlyUsedCaps(t *testing.T) {
	spent := map[string]int64{"": 15_999_999, "month": 3, bill.Agent("ops"): 400_000}
	caps := billing.Caps{UserDay: 1, Day: 20_000_000, Month: 200_000_000, Agents: map[string]int64{"ops": 500_000, "main": 0}, WarnPercent: 80}
	source := billing.Source(func(_ context.Context, c bill.Cap, _ time.Time) (int64, error) {
		if c.IsMonthly {
			return spent["month"], nil
		}
		return spent[c.Subject], nil
	}, func() billing.Caps { return caps }, func() bool { return true })
	look := func(open map[string]bool) map[string]string {
		t.Helper()
		all, err := source.FindConcerns(t.Context(), open)
		if err != nil {
			t.Fatal(err)
		}
		told := map[string]string{}
		for _, c := range all {
			if !strings.HasPrefix(c.ID, source.ID) {
				t.Errorf("the id %q is not the source's", c.ID)
			}
			told[c.ID] = c.Text
		}
		return told
	}
	told := look(nil)
	if len(told) != 1 {
		t.Errorf("told %v", told)
	}
	for id, text := range told {
		if !strings.Contains(id, "[agents.ops] day") || !strings.Contains(text, "$0.40 of the $0.50 that the agent ops can spend today") {
			t.Errorf("%s: %s", id, text)
		}
	}
	spent[""], spent["month"] = 16_000_000, 160_000_000
	told = look(nil)
	open := map[string]bool{}
	for id := range told {
		open[id] = true
	}
	if len(told) != 3 {
		t.Errorf("told %v", told)
	}
	spent[""], spent["month"], spent[bill.Agent("ops")] = 1, 1, 1 // what was reserved is given back
	if again := look(open); len(again) != 3 {
		t.Errorf("told %v, and before %v", again, told)
	}
	if text := source.EndText("budget/x"); text != "" {
		t.Errorf("a new day is told: %q", text)
	}
}
