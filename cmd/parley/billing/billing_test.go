package billing_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/cmd/parley/billing"
	"parley/sessions/bill"
)

func TestUsageIsToldInWords(t *testing.T) {
	asked := 0 // whose accounts belong together
	reporter := &billing.UsageReporter{
		Usage: func(_ context.Context, by bill.Grouping, from, _ time.Time) ([]bill.Sum, error) {
			if by != bill.ByPerson {
				t.Errorf("asked by %s", by)
			}
			if from.Day() != time.Now().UTC().Day() || from.Hour()+from.Minute()+from.Second()+from.Nanosecond() == 0 { // the month
				return []bill.Sum{
					{Key: "slack:U1", Calls: 2, Input: 100, Output: 10, Microdollars: 1_234_567},
					{Key: "telegram:1", Calls: 1, Input: 5, Output: 1, Unpriced: 1},
					{Key: "telegram:2", Calls: 7, Input: 70, Output: 7, Microdollars: 20_000, Estimated: 3},
					{Key: "", Calls: 1, Input: 1, Microdollars: 1_000_000},
				}, nil
			}
			return []bill.Sum{{Key: "telegram:1", Calls: 1, Input: 5, Output: 1, Microdollars: 1500}}, nil
		},
		Linked: func(_ context.Context, person string) ([]string, error) {
			if asked++; person == "slack:U1" || person == "telegram:1" {
				return []string{"slack:U1", "telegram:1"}, nil
			}
			return nil, nil
		},
		Caps:   func() billing.Caps { return billing.Caps{UserDay: 2_000_000, Day: 20_000_000, Month: 200_000_000} },
		Prices: "2026-06-20",
	}
	said := func(in bus.Inbound) string {
		text, err := reporter.Answer(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	own := said(bus.Inbound{From: bus.Person{ID: "telegram:1"}})
	if asked != 1 {
		t.Errorf("for one answer it was asked %d times whose accounts belong together", asked)
	}
	for _, want := range []string{
		"you, today: 6 tokens in one call of a model, $0.0015, of at most $2.00\n",
		"you, this month: 116 tokens in 3 calls of models, $1.23 and what 1 calls of no known price cost\n",
		"2026-06-20",
	} {
		if !strings.Contains(own, want) {
			t.Errorf("%q is not in\n%s", want, own)
		}
	}
	if strings.Contains(own, "all,") {
		t.Errorf("somebody is told of all:\n%s", own)
	}
	if text := said(bus.Inbound{From: bus.Person{ID: "telegram:1", Owner: true}, Group: true}); strings.Contains(text, "all,") {
		t.Errorf("a group is told of all:\n%s", text)
	}
	owners := said(bus.Inbound{From: bus.Person{ID: "telegram:9", Owner: true}})
	for _, want := range []string{"you, today: nothing, of at most $2.00\n", "all, this month: 194 tokens in 11 calls of models, $2.25 and what 1 calls of no known price cost (3 estimated), of at most $200.00\n"} {
		if !strings.Contains(owners, want) {
			t.Errorf("%q is not in\n%s", want, owners)
		}
	}
}
