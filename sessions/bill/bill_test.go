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

// onEachDatabase runs a test on both kinds of database, with two stores on each.
func onEachDatabase(t *testing.T, test func(t *testing.T, one, other *sqlstore.Store)) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) { test(t, one, other) })
}

func noonOfToday() time.Time { return time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC) }

// writeCall writes a turn with one call into a session.
func writeCall(t *testing.T, s *sqlstore.Store, session, turn, person string, at time.Time, u sessions.Usage) {
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

func readSums(t *testing.T, s *sqlstore.Store, by bill.Grouping, from, to time.Time) map[string]bill.Sum {
	t.Helper()
	all, err := s.Bill().Usage(t.Context(), by, from, to)
	if err != nil {
		t.Fatal(err)
	}
	byKey := map[string]bill.Sum{}
	for _, one := range all {
		key := one.Key
		if one.SecondKey != "" {
			key += "/" + one.SecondKey
		}
		one.Key, one.SecondKey = "", ""
		byKey[key] = one
	}
	return byKey
}

func requireSame(t *testing.T, what string, got map[string]bill.Sum, want map[string]bill.Sum) {
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

func writeUsage(t *testing.T, s *sqlstore.Store) {
	t.Helper()
	writeCall(t, s, "main:telegram:1", "t1", "telegram:7", noonOfToday(), sessions.Usage{Model: "m1", Agent: "main", Input: 100, Cached: 40, Output: 10, Reasoning: 4, Cost: new(int64(500))})
	writeCall(t, s, "main:telegram:1", "t2", "telegram:8", noonOfToday().AddDate(0, 0, 1), sessions.Usage{Model: "m2", Agent: "main", Input: 7, Output: 3, Estimated: true, Cost: new(int64(0))})
	writeCall(t, s, "ops:telegram:2", "t3", "telegram:7", noonOfToday().AddDate(0, 0, 1), sessions.Usage{Model: "m1", Agent: "ops", Input: 1000, Output: 1})
}

// The usage of each call is summed up for everything that the call belongs to.
func TestUsageIsSummedUp(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *sqlstore.Store) {
		writeUsage(t, one)
		first := bill.Sum{Calls: 1, Input: 100, Cached: 40, Output: 10, Reasoning: 4, Microdollars: 500}
		second := bill.Sum{Calls: 1, Input: 7, Output: 3, Estimated: 1}
		third := bill.Sum{Calls: 1, Input: 1000, Output: 1, Unpriced: 1}
		both := bill.Sum{Calls: 2, Input: 1100, Cached: 40, Output: 11, Reasoning: 4, Microdollars: 500, Unpriced: 1}
		last := bill.Sum{Calls: 2, Input: 1007, Output: 4, Estimated: 1, Unpriced: 1}
		next := noonOfToday().AddDate(0, 0, 1)
		requireSame(t, "by day", readSums(t, other, bill.ByDay, noonOfToday(), next), map[string]bill.Sum{"2026-05-06": first, "2026-05-07": last})
		requireSame(t, "one day", readSums(t, other, bill.ByDay, noonOfToday(), noonOfToday()), map[string]bill.Sum{"2026-05-06": first})
		requireSame(t, "by person", readSums(t, other, bill.ByPerson, noonOfToday(), next), map[string]bill.Sum{"telegram:7": both, "telegram:8": second})
		requireSame(t, "by session", readSums(t, other, bill.BySession, next, next), map[string]bill.Sum{"main:telegram:1": second, "ops:telegram:2": third})
		requireSame(t, "by agent", readSums(t, other, bill.ByAgent, next, next), map[string]bill.Sum{"main": second, "ops": third})
		requireSame(t, "by model", readSums(t, other, bill.ByModel, noonOfToday(), next), map[string]bill.Sum{"m1": both, "m2": second})
		requireSame(t, "by hour", readSums(t, other, bill.ByHour, noonOfToday(), noonOfToday()), map[string]bill.Sum{"2026-05-06T12": first})
		requireSame(t, "by day and model", readSums(t, other, bill.ByDay+","+bill.ByModel, noonOfToday(), next), map[string]bill.Sum{"2026-05-06/m1": first, "2026-05-07/m1": third, "2026-05-07/m2": second})
		requireSame(t, "by person and session", readSums(t, other, bill.ByPerson+","+bill.BySession, noonOfToday(), next),
			map[string]bill.Sum{"telegram:7/main:telegram:1": first, "telegram:7/ops:telegram:2": third, "telegram:8/main:telegram:1": second})
		requireSame(t, "nothing", readSums(t, other, bill.ByModel, noonOfToday().AddDate(1, 0, 0), noonOfToday().AddDate(1, 0, 0)), nil)
		if _, err := one.Bill().Usage(t.Context(), "colour", noonOfToday(), noonOfToday()); !errors.Is(err, bill.ErrUnknownGrouping) {
			t.Errorf("by colour: %v", err)
		}
	})
}

// After a person is forgotten, and after old entries are erased, the numbers stay without names.
func TestUsageStaysAfterErasures(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, _ *sqlstore.Store) {
		writeUsage(t, one)
		next := noonOfToday().AddDate(0, 0, 1)
		days := readSums(t, one, bill.ByDay, noonOfToday(), next)
		both := readSums(t, one, bill.ByDay+","+bill.ByModel, noonOfToday(), next)
		models := readSums(t, one, bill.ByModel, noonOfToday(), next)
		agents := readSums(t, one, bill.ByAgent, noonOfToday(), next)
		if _, err := one.ErasePerson(t.Context(), "telegram:7"); err != nil {
			t.Fatal(err)
		}
		requireSame(t, "by day", readSums(t, one, bill.ByDay, noonOfToday(), next), days)
		requireSame(t, "by model", readSums(t, one, bill.ByModel, noonOfToday(), next), models)
		requireSame(t, "by agent", readSums(t, one, bill.ByAgent, noonOfToday(), next), agents)
		people := readSums(t, one, bill.ByPerson, noonOfToday(), next)
		requireSame(t, "by person", people, map[string]bill.Sum{"": people[""], "telegram:8": {Calls: 1, Input: 7, Output: 3, Estimated: 1}})
		if people[""].Calls != 2 || people[""].Microdollars != 500 {
			t.Errorf("of whom was forgotten: %+v", people[""])
		}
		for range 2 {
			if _, err := one.EraseBefore(t.Context(), time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			requireSame(t, "by day, of what is too old", readSums(t, one, bill.ByDay, noonOfToday(), next), days)
			requireSame(t, "by day and model, of what is too old", readSums(t, one, bill.ByDay+","+bill.ByModel, noonOfToday(), next), both)
			requireSame(t, "by hour, of what is too old", readSums(t, one, bill.ByHour, noonOfToday(), next), days) // the hour is no longer known
		}
		requireSame(t, "by session", readSums(t, one, bill.BySession, noonOfToday(), next), map[string]bill.Sum{"": {
			Calls: 3, Input: 1107, Cached: 40, Output: 14, Reasoning: 4, Microdollars: 500, Estimated: 1, Unpriced: 1,
		}})
	})
}

// Calls that are made for nobody count for their day and model, but for no person, session or agent.
func TestUnassignedCallsAreCounted(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *sqlstore.Store) {
		writeUsage(t, one)
		next := noonOfToday().AddDate(0, 0, 1)
		before, people := readSums(t, one, bill.ByModel, noonOfToday(), next), readSums(t, one, bill.ByPerson, noonOfToday(), next)
		one.Bill().Note("vectors", noonOfToday(), bill.Sum{Calls: 1, Input: 10, Microdollars: 3})
		if err := one.Close(); err != nil { // waits for the write
			t.Fatal(err)
		}
		other.Bill().Note("vectors", next, bill.Sum{Calls: 1, Input: 20, Estimated: 1, Unpriced: 1})
		other.Bill().Note("vectors", next, bill.Sum{Calls: 2, Input: 30, Microdollars: 4})
		writeCall(t, other, "main:test:9", "t9", "telegram:9", noonOfToday().AddDate(0, 0, -9), sessions.Usage{}) // makes sure that the write has happened
		before["vectors"] = bill.Sum{Calls: 4, Input: 60, Microdollars: 7, Estimated: 1, Unpriced: 1}
		requireSame(t, "by model", readSums(t, other, bill.ByModel, noonOfToday(), next), before)
		people[""] = bill.Sum{Calls: 4, Input: 60, Microdollars: 7, Estimated: 1, Unpriced: 1}
		requireSame(t, "by person", readSums(t, other, bill.ByPerson, noonOfToday(), next), people)
		for _, c := range []struct {
			model    string
			from, to time.Time
			want     int64
		}{
			{"vectors", noonOfToday(), next, 7}, {"vectors", next, next, 4}, {"vectors", noonOfToday(), noonOfToday(), 3}, {"vectors", next.AddDate(0, 0, 1), next.AddDate(0, 0, 2), 0}, {"small", noonOfToday(), next, 0},
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
