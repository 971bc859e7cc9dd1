package schedules_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"parley/sessions/schedules"
)

func mustZone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func mustTime(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// The next slots of all forms, including days on which clocks are changed: a time that clocks skip is due when
// they are set forward, a time that they show twice is due once, and an hourly schedule follows the passing of
// time.
func TestSlots(t *testing.T) {
	for _, c := range []struct {
		name, zone, when, now string
		want                  []string
	}{
		{"once, local", "Europe/Berlin", "2026-12-01 09:00", "2026-11-23T00:00:00Z", []string{"2026-12-01T08:00:00Z", ""}},
		{"once, with its own zone", "Europe/Berlin", "2026-12-01T09:00:00-05:00", "2026-11-23T00:00:00Z", []string{"2026-12-01T14:00:00Z", ""}},
		{"once, past", "Europe/Berlin", "2026-11-01 09:00", "2026-11-23T00:00:00Z", []string{""}},
		{"in a while", "Europe/Berlin", "in 1h 30m", "2026-11-23T00:00:07.5Z", []string{"2026-11-23T01:30:07Z", ""}},
		{"later today", "America/New_York", "15:30", "2026-11-23T12:00:00Z", []string{"2026-11-23T20:30:00Z", ""}},
		{"tomorrow", "America/New_York", "06:30", "2026-11-23T12:00:00Z", []string{"2026-11-24T11:30:00Z", ""}},
		{"once, shown twice", "Europe/Berlin", "2026-10-25 02:30", "2026-10-01T00:00:00Z", []string{"2026-10-25T00:30:00Z", ""}},
		{"every", "Europe/Berlin", "every 2h", "2026-03-28T23:15:00Z", []string{"2026-03-29T01:15:00Z", "2026-03-29T03:15:00Z"}},
		{"every day", "Europe/Berlin", "every 1d", "2026-03-28T08:00:00Z", []string{"2026-03-29T08:00:00Z"}},
		{"weekdays", "Europe/Berlin", "0 9 * * mon-fri", "2026-11-20T09:00:00Z", []string{"2026-11-23T08:00:00Z", "2026-11-24T08:00:00Z"}},
		{"the clocks leave it out", "Europe/Berlin", "30 2 * * *", "2026-03-27T12:00:00Z",
			[]string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"left out beside what is there", "Europe/Berlin", "0,30 2-3 * * *", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:00:00Z"}},
		{"the clocks show it twice", "Europe/Berlin", "30 2 * * *", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"every hour through the same", "Europe/Berlin", "30 * * * *", "2026-10-24T23:45:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"}},
		{"every hour where one is left out", "Europe/Berlin", "30 * * * *", "2026-03-28T23:45:00Z",
			[]string{"2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"}},
		{"midnight is left out", "Africa/Cairo", "15 0 * * fri", "2026-04-20T00:00:00Z", []string{"2026-04-23T22:00:00Z", "2026-04-30T21:15:00Z"}},
		{"half an hour", "Australia/Lord_Howe", "15 2 * * *", "2026-10-02T12:00:00Z", []string{"2026-10-02T15:45:00Z", "2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		{"a day that the zone has not", "Pacific/Apia", "0 12 30 12 *", "2011-12-01T00:00:00Z", []string{"2011-12-30T10:00:00Z", "2012-12-29T22:00:00Z"}},
		{"either day", "UTC", "0 0 13 * fri", "2026-11-10T00:00:00Z", []string{"2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"}},
		{"a leap day", "UTC", "0 0 29 2 *", "2026-11-10T00:00:00Z", []string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		{"steps", "UTC", "5/20 0,12 * * 7", "2026-11-21T00:00:00Z", []string{"2026-11-22T00:05:00Z", "2026-11-22T00:25:00Z", "2026-11-22T00:45:00Z", "2026-11-22T12:05:00Z"}},
		{"a word", "UTC", "@monthly", "2026-11-21T00:00:00Z", []string{"2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := mustTime(t, c.now)
			w, err := schedules.Parse(c.when, mustZone(t, c.zone), now)
			if err != nil {
				t.Fatal(err)
			}
			// The stored words mean the same whenever they are parsed.
			kept, err := schedules.Parse(w.String(), mustZone(t, c.zone), now)
			if err != nil {
				t.Fatalf("%q cannot be read again: %v", w, err)
			}
			var got []string
			for at := now; len(got) < len(c.want); {
				next := w.Next(at)
				if again := kept.Next(at); !again.Equal(next) {
					t.Errorf("read again it is due at %v, not at %v", again, next)
				}
				if next.IsZero() {
					got = append(got, "")
					break
				}
				if last := w.Last(next); !last.Equal(next) {
					t.Errorf("the last slot at %v is %v", next, last)
				}
				got = append(got, next.UTC().Format(time.RFC3339))
				at = next
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("it is due at\n%q, want\n%q", got, c.want)
			}
		})
	}
}

func TestParseErrorsNameTheProblem(t *testing.T) {
	for when, want := range map[string]string{
		"":                     "every 2h",
		"tomorrow":             "every 2h",
		"every 5":              "30m",
		"every -2h":            "at least a second",
		"in 1000000h":          "ten years",
		"61 * * * *":           "the minute",
		"* * * foo *":          "the month",
		"0 22-6 * * *":         "the lower one first",
		"*/0 * * * *":          "after the slash",
		"0 0 31 2 *":           "no such day",
		"2026-03-29 02:30":     "2026-03-29 02:30 doesn't exist in Europe/Berlin: the clocks are set forward then, to 03:00",
		"* * * * * *":          "cannot be read",
		"2026-13-01 09:00":     "cannot be read",
		"0 9 * * mon-fri,sat-": "the day of the week",
	} {
		_, err := schedules.Parse(when, mustZone(t, "Europe/Berlin"), mustTime(t, "2026-01-01T00:00:00Z"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want a word of %q", when, err, want)
		}
	}
}

func TestShortestGap(t *testing.T) {
	for when, want := range map[string]time.Duration{
		"every 90s": 90 * time.Second, "* * * * *": time.Minute, "*/7 * * * *": 4 * time.Minute, "0 9 * * *": 24 * time.Hour,
		"59 23 * * *": 24 * time.Hour, "0 0,23 * * *": time.Hour, "0 0,23 1 * *": 23 * time.Hour, "in 1h": 0,
	} {
		w, err := schedules.Parse(when, time.UTC, mustTime(t, "2026-01-01T00:00:00Z"))
		if err != nil {
			t.Fatal(err)
		}
		if got := w.ShortestGap(); got != want {
			t.Errorf("%q: %v, want %v", when, got, want)
		}
	}
}

// A slot is begun once. Slots that have passed in between are counted as missed, and the newest one is begun.
func TestDue(t *testing.T) {
	made := mustTime(t, "2026-11-23T10:00:00Z")
	s := schedules.Schedule{ID: "x", When: "every 10m", Zone: "UTC", MadeAt: made, Next: made.Add(10 * time.Minute)}
	if _, due, err := s.Due(made.Add(9 * time.Minute)); due || err != nil {
		t.Errorf("it is due too early: %v", err)
	}
	now, due, err := s.Due(made.Add(11 * time.Minute))
	if err != nil || !due || !now.Slot.Equal(s.Next) || now.MissedSlots != 0 || !now.Next.Equal(made.Add(20*time.Minute)) {
		t.Errorf("%+v %v %v", now, due, err)
	}
	if _, again, _ := now.Due(made.Add(time.Hour)); again {
		t.Error("a slot is taken before the last has come to its end")
	}
	late, due, err := s.Due(made.Add(45 * time.Minute))
	if err != nil || !due || !late.Slot.Equal(made.Add(40*time.Minute)) || late.MissedSlots != 3 || !late.MissedFrom.Equal(s.Next) || !late.Next.Equal(made.Add(50*time.Minute)) {
		t.Errorf("%+v %v %v", late, due, err)
	}
	ages, _, err := s.Due(made.AddDate(1, 0, 0))
	if err != nil || ages.MissedSlots != 1000 {
		t.Errorf("%d are missed, %v", ages.MissedSlots, err)
	}
	once := schedules.Schedule{When: "2026-11-23T10:00:00Z", Zone: "UTC", MadeAt: made.Add(-time.Hour), Next: made}
	if once, due, err = once.Due(made.Add(time.Hour)); err != nil || !due || !once.Next.IsZero() || once.MissedSlots != 0 {
		t.Errorf("%+v %v %v", once, due, err)
	}
}
