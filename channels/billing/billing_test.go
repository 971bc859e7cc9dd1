package billing_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels/billing"
	"parley/sessions/bill"
	"parley/sessions/sqlstore"
)

// newBudget returns a budget in which amounts are reserved for two people.
func newBudget(t *testing.T) *bill.Budget {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for person, cost := range map[string]int64{"slack:U1": 147_400, "discord:1": 50_000} {
		r := bill.Reservation{ID: person + "#1.1.0", Session: "main:" + person, Cost: cost, At: time.Now(), Caps: []bill.Cap{
			{Subject: bill.Person(person), Limit: 2_000_000}, {Subject: bill.Session("main:" + person), Limit: 1_000_000}, {Limit: 20_000_000}, {IsMonthly: true, Limit: 200_000_000},
		}}
		if err := s.Money().Reserve(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	return s.Money()
}

// For caps on people and sessions, CapStates returns only those that something is reserved for now.
func TestCapStates(t *testing.T) {
	reporter := &billing.UsageReporter{Budget: newBudget(t), Caps: func() billing.Caps {
		return billing.Caps{UserDay: 2_000_000, SessionDay: 1_000_000, Day: 20_000_000, Month: 200_000_000, Agents: map[string]int64{"ops": 5_000_000, "main": 0}}
	}}
	got, err := reporter.CapStates(t.Context())
	want := []bill.CapState{
		{Of: "all", Span: "day", Setting: "[budget] day", Limit: 20_000_000, Reserved: 197_400},
		{Of: "all", Span: "month", Setting: "[budget] month", Limit: 200_000_000, Reserved: 197_400},
		{Of: "agent:ops", Span: "day", Setting: "[agents.ops] day", Limit: 5_000_000},
		{Of: "person:discord:1", Span: "day", Setting: "[budget] user_day", Limit: 2_000_000, Reserved: 50_000},
		{Of: "person:slack:U1", Span: "day", Setting: "[budget] user_day", Limit: 2_000_000, Reserved: 147_400},
		{Of: "session:main:discord:1", Span: "day", Setting: "[budget] session_day", Limit: 1_000_000, Reserved: 50_000},
		{Of: "session:main:slack:U1", Span: "day", Setting: "[budget] session_day", Limit: 1_000_000, Reserved: 147_400},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := (&billing.UsageReporter{}).CapStates(t.Context()); len(got) > 0 || err != nil {
		t.Errorf("without a price there are caps: %+v, %v", got, err)
	}
}

func TestUsageAnswer(t *testing.T) {
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
		Budget: newBudget(t),
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
		"you, today: 6 tokens in one model call, $0.0015, and $0.1474 set aside for answers in progress; the limit is $2.00\n",
		"you, this month: 116 tokens in 3 model calls, $1.23, plus one call of unknown cost\n",
		"2026-06-20",
	} {
		if !strings.Contains(own, want) {
			t.Errorf("%q is not in\n%s", want, own)
		}
	}
	if strings.Contains(own, "everyone,") {
		t.Errorf("somebody is told of all:\n%s", own)
	}
	if text := said(bus.Inbound{From: bus.Person{ID: "telegram:1", Owner: true}, Group: true}); strings.Contains(text, "everyone,") {
		t.Errorf("a group is told of all:\n%s", text)
	}
	owners := said(bus.Inbound{From: bus.Person{ID: "telegram:9", Owner: true}})
	for _, want := range []string{"you, today: nothing; the limit is $2.00\n", "everyone, this month: 194 tokens in 11 model calls, $2.25, plus one call of unknown cost (3 estimated), and $0.1974 set aside for answers in progress; the limit is $200.00\n"} {
		if !strings.Contains(owners, want) {
			t.Errorf("%q is not in\n%s", want, owners)
		}
	}
}
