package bill_test

import (
	"errors"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/sqlstore"
	"parley/sessions/sqlstore/sqlstoretest"
)

// each runs a test on a database of each kind, with two stores over it.
func each(t *testing.T, test func(t *testing.T, one, other *sqlstore.Store)) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) { test(t, one, other) })
}

func noon() time.Time { return time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC) }

// call writes a turn of one call into a session.
func call(t *testing.T, s *sqlstore.Store, session, turn, person string, at time.Time, u sessions.Usage) {
	t.Helper()
	l, err := s.Open(t.Context(), session, 1)
	if err != nil {
		t.Fatal(err)
	}
	var all []sessions.Entry
	for _, one := range []struct {
		kind sessions.Kind
		data any
	}{
		{sessions.KindTurnStarted, sessions.TurnStarted{Agent: "main"}}, {sessions.KindUser, sessions.User{Text: "hello"}},
		{sessions.KindUsage, u}, {sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCompleted}},
	} {
		e, err := sessions.NewEntry(turn, one.kind, one.data)
		if err != nil {
			t.Fatal(err)
		}
		e.At = at
		if one.kind != sessions.KindTurnDone {
			e.Person = person
		}
		all = append(all, e)
	}
	if err := l.Append(t.Context(), l.Next(), all...); err != nil {
		t.Fatal(err)
	}
}

func sums(t *testing.T, s *sqlstore.Store, by bill.Grouping, from, to time.Time) map[string]bill.Sum {
	t.Helper()
	all, err := s.Bill().Usage(t.Context(), by, from, to)
	if err != nil {
		t.Fatal(err)
	}
	byKey := map[string]bill.Sum{}
	for _, one := range all {
		key := one.Key
		if one.Then != "" {
			key += "/" + one.Then
		}
		one.Key, one.Then = "", ""
		byKey[key] = one
	}
	return byKey
}

func same(t *testing.T, what string, got map[string]bill.Sum, want map[string]bill.Sum) {
	t.Helper()
	for key := range want {
		if got[key] != want[key] {
			t.Errorf("%s: %q has %+v, want %+v", what, key, got[key], want[key])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d sums, want %d: %+v", what, len(got), len(want), got)
	}
}

func fill(t *testing.T, s *sqlstore.Store) {
	t.Helper()
	call(t, s, "main:telegram:1", "t1", "telegram:7", noon(), sessions.Usage{Model: "m1", Agent: "main", Input: 100, Cached: 40, Output: 10, Reasoning: 4, Cost: new(int64(500))})
	call(t, s, "main:telegram:1", "t2", "telegram:8", noon().AddDate(0, 0, 1), sessions.Usage{Model: "m2", Agent: "main", Input: 7, Output: 3, Estimated: true, Cost: new(int64(0))})
	call(t, s, "ops:telegram:2", "t3", "telegram:7", noon().AddDate(0, 0, 1), sessions.Usage{Model: "m1", Agent: "ops", Input: 1000, Output: 1})
}

// What each call has used is summed up by all that it belongs to.
func TestUsageIsSummedUp(t *testing.T) {
	each(t, func(t *testing.T, one, other *sqlstore.Store) {
		fill(t, one)
		first := bill.Sum{Calls: 1, Input: 100, Cached: 40, Output: 10, Reasoning: 4, Microdollars: 500}
		second := bill.Sum{Calls: 1, Input: 7, Output: 3, Estimated: 1}
		third := bill.Sum{Calls: 1, Input: 1000, Output: 1, Unpriced: 1}
		both := bill.Sum{Calls: 2, Input: 1100, Cached: 40, Output: 11, Reasoning: 4, Microdollars: 500, Unpriced: 1}
		last := bill.Sum{Calls: 2, Input: 1007, Output: 4, Estimated: 1, Unpriced: 1}
		next := noon().AddDate(0, 0, 1)
		same(t, "by day", sums(t, other, bill.ByDay, noon(), next), map[string]bill.Sum{"2026-05-06": first, "2026-05-07": last})
		same(t, "one day", sums(t, other, bill.ByDay, noon(), noon()), map[string]bill.Sum{"2026-05-06": first})
		same(t, "by person", sums(t, other, bill.ByPerson, noon(), next), map[string]bill.Sum{"telegram:7": both, "telegram:8": second})
		same(t, "by session", sums(t, other, bill.BySession, next, next), map[string]bill.Sum{"main:telegram:1": second, "ops:telegram:2": third})
		same(t, "by agent", sums(t, other, bill.ByAgent, next, next), map[string]bill.Sum{"main": second, "ops": third})
		same(t, "by model", sums(t, other, bill.ByModel, noon(), next), map[string]bill.Sum{"m1": both, "m2": second})
		same(t, "by hour", sums(t, other, bill.ByHour, noon(), noon()), map[string]bill.Sum{"2026-05-06T12": first})
		same(t, "by day and model", sums(t, other, bill.ByDay+","+bill.ByModel, noon(), next), map[string]bill.Sum{"2026-05-06/m1": first, "2026-05-07/m1": third, "2026-05-07/m2": second})
		same(t, "by person and session", sums(t, other, bill.ByPerson+","+bill.BySession, noon(), next),
			map[string]bill.Sum{"telegram:7/main:telegram:1": first, "telegram:7/ops:telegram:2": third, "telegram:8/main:telegram:1": second})
		same(t, "nothing", sums(t, other, bill.ByModel, noon().AddDate(1, 0, 0), noon().AddDate(1, 0, 0)), nil)
		if _, err := one.Bill().Usage(t.Context(), "colour", noon(), noon()); !errors.Is(err, bill.ErrUnknownBy) {
			t.Errorf("by colour: %v", err)
		}
	})
}

// Who is forgotten leaves numbers, and no name; so does what is too old.
func TestNumbersOutliveWhatIsErased(t *testing.T) {
	each(t, func(t *testing.T, one, _ *sqlstore.Store) {
		fill(t, one)
		next := noon().AddDate(0, 0, 1)
		days := sums(t, one, bill.ByDay, noon(), next)
		both := sums(t, one, bill.ByDay+","+bill.ByModel, noon(), next)
		models := sums(t, one, bill.ByModel, noon(), next)
		agents := sums(t, one, bill.ByAgent, noon(), next)
		if _, err := one.ErasePerson(t.Context(), "telegram:7"); err != nil {
			t.Fatal(err)
		}
		same(t, "by day", sums(t, one, bill.ByDay, noon(), next), days)
		same(t, "by model", sums(t, one, bill.ByModel, noon(), next), models)
		same(t, "by agent", sums(t, one, bill.ByAgent, noon(), next), agents)
		people := sums(t, one, bill.ByPerson, noon(), next)
		same(t, "by person", people, map[string]bill.Sum{"": people[""], "telegram:8": {Calls: 1, Input: 7, Output: 3, Estimated: 1}})
		if people[""].Calls != 2 || people[""].Microdollars != 500 {
			t.Errorf("of whom was forgotten: %+v", people[""])
		}
		for range 2 {
			if _, err := one.EraseBefore(t.Context(), time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			same(t, "by day, of what is too old", sums(t, one, bill.ByDay, noon(), next), days)
			same(t, "by day and model, of what is too old", sums(t, one, bill.ByDay+","+bill.ByModel, noon(), next), both)
			same(t, "by hour, of what is too old", sums(t, one, bill.ByHour, noon(), next), days) // no hour is known anymore
		}
		same(t, "by session", sums(t, one, bill.BySession, noon(), next), map[string]bill.Sum{"": {
			Calls: 3, Input: 1107, Cached: 40, Output: 14, Reasoning: 4, Microdollars: 500, Estimated: 1, Unpriced: 1,
		}})
	})
}

// Calls for nobody count for their day and model, and for no person, session or agent.
func TestCallsForNobodyAreNoted(t *testing.T) {
	each(t, func(t *testing.T, one, other *sqlstore.Store) {
		fill(t, one)
		next := noon().AddDate(0, 0, 1)
		before, people := sums(t, one, bill.ByModel, noon(), next), sums(t, one, bill.ByPerson, noon(), next)
		one.Bill().Note("vectors", noon(), bill.Sum{Calls: 1, Input: 10, Microdollars: 3})
		if err := one.Close(); err != nil { // it waits
			t.Fatal(err)
		}
		other.Bill().Note("vectors", next, bill.Sum{Calls: 1, Input: 20, Estimated: 1, Unpriced: 1})
		other.Bill().Note("vectors", next, bill.Sum{Calls: 2, Input: 30, Microdollars: 4})
		call(t, other, "main:test:9", "t9", "telegram:9", noon().AddDate(0, 0, -9), sessions.Usage{}) // it is written after that
		before["vectors"] = bill.Sum{Calls: 4, Input: 60, Microdollars: 7, Estimated: 1, Unpriced: 1}
		same(t, "by model", sums(t, other, bill.ByModel, noon(), next), before)
		people[""] = bill.Sum{Calls: 4, Input: 60, Microdollars: 7, Estimated: 1, Unpriced: 1}
		same(t, "by person", sums(t, other, bill.ByPerson, noon(), next), people)
		for _, c := range []struct {
			model    string
			from, to time.Time
			want     int64
		}{
			{"vectors", noon(), next, 7}, {"vectors", next, next, 4}, {"vectors", noon(), noon(), 3}, {"vectors", next.AddDate(0, 0, 1), next.AddDate(0, 0, 2), 0}, {"small", noon(), next, 0},
		} {
			if got, err := other.Bill().Noted(t.Context(), c.model, c.from, c.to); err != nil || got != c.want {
				t.Errorf("%s from %v to %v: %d, %v, want %d", c.model, c.from, c.to, got, err, c.want)
			}
		}
	})
}

func TestDollars(t *testing.T) {
	for micro, want := range map[int64]string{0: "$0", 1: "$0.000001", 1500: "$0.0015", 9_999: "$0.009999", 10_000: "$0.01", 1_999_999: "$2.00", 20_000_000: "$20.00"} {
		if got := bill.Dollars(micro); got != want {
			t.Errorf("%d: %s, want %s", micro, got, want)
		}
	}
}
