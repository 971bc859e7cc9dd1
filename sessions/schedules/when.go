package schedules

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A When says when something is due. Its slots are whole seconds. They are one time, an interval, or a
// cron line.
type When struct {
	text       string // the words in the form in which they are stored
	at         time.Time
	interval   time.Duration
	countsFrom time.Time // the time from which the intervals of every count
	cron       *cron
	zone       *time.Location
}

// Forms describes the forms that Parse accepts, for messages to people.
const Forms = `a time such as "2026-12-01 09:00" or "15:30" (once), "in 2h" (once), "every 2h", or a cron line such as "0 9 * * mon-fri"`

// longestInterval limits how far away a time may be, and how long an interval.
const longestInterval = 10 * 366 * 24 * time.Hour

// Parse parses somebody's words, in a time zone, that say when something is due. Words such as "in 2h"
// and "every 2h" count from now. The String of the result means the same no matter when it is parsed.
func Parse(text string, zone *time.Location, now time.Time) (When, error) {
	text = strings.Join(strings.Fields(text), " ")
	w := When{zone: zone, text: text, countsFrom: now.Truncate(time.Second)}
	var err error
	word, rest, _ := strings.Cut(text, " ")
	switch strings.ToLower(word) {
	case "":
		return w, fmt.Errorf("it does not say when: give %s", Forms)
	case "every":
		w.interval, err = parseInterval(rest)
		w.text = "every " + rest
	case "in":
		var d time.Duration
		if d, err = parseInterval(rest); err == nil {
			w = newOnce(w.countsFrom.Add(d), zone)
		}
	default:
		if at, isTime, wrong := parseClockTime(text, zone, now); isTime {
			w, err = newOnce(at, zone), wrong
			break
		}
		w.cron, err = parseCron(text)
	}
	if err != nil {
		return When{}, err
	}
	return w, nil
}

// newOnce returns a When that is due a single time.
func newOnce(at time.Time, zone *time.Location) When {
	at = at.In(zone)
	return When{at: at, zone: zone, text: at.Format(time.RFC3339)}
}

// String returns words that mean the same to Parse no matter when it is called.
func (w When) String() string { return w.text }

// IsOnce reports whether the When is due only once.
func (w When) IsOnce() bool { return !w.at.IsZero() }

// ShortestGap returns the shortest time between two slots; 0 if there is only one.
func (w When) ShortestGap() time.Duration {
	switch {
	case w.cron != nil:
		return w.cron.shortestGap()
	default:
		return w.interval
	}
}

// Next returns the first slot after a time; zero if there is none.
func (w When) Next(after time.Time) time.Time {
	switch {
	case w.cron != nil:
		return w.cron.next(after, w.zone)
	case w.interval > 0:
		n := max(after.Sub(w.countsFrom), 0)/w.interval + 1
		return w.countsFrom.Add(n * w.interval).In(w.zone)
	case w.at.After(after):
		return w.at
	}
	return time.Time{}
}

// Last returns the newest slot that is not after now; zero if there is none.
func (w When) Last(now time.Time) time.Time {
	for _, back := range []time.Duration{time.Hour, 36 * time.Hour, 32 * 24 * time.Hour, 367 * 24 * time.Hour, longestInterval} {
		at := w.Next(now.Add(-back))
		if at.IsZero() || at.After(now) {
			continue
		}
		for {
			next := w.Next(at)
			if next.IsZero() || next.After(now) {
				return at
			}
			at = next
		}
	}
	return time.Time{}
}

// IsZone reports whether a text names a time zone that is the same on every machine, unlike the machine's
// own.
func IsZone(name string) bool {
	_, err := time.LoadLocation(name)
	return err == nil && name != "" && !strings.EqualFold(name, "local")
}

// parseInterval parses a length of time as people write it: in Go's notation, or as a whole number of days or weeks (1h30m,
// 2w). It returns an error below a second and above longest, and drops fractions of a second.
func parseInterval(text string) (time.Duration, error) {
	text = strings.ReplaceAll(text, " ", "")
	d, err := time.ParseDuration(text)
	if err != nil && len(text) > 1 {
		unit := map[byte]time.Duration{'d': 24 * time.Hour, 'w': 7 * 24 * time.Hour}[text[len(text)-1]]
		n, wrong := strconv.Atoi(text[:len(text)-1])
		if unit > 0 && wrong == nil && n < int(longestInterval/unit) {
			d, err = time.Duration(n)*unit, nil
		}
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q isn't a length of time: write it like 30m, 2h, 1h30m, 1d or 2w", text)
	case d < time.Second:
		return 0, errors.New("a length of time has to be at least a second")
	case d > longestInterval:
		return 0, errors.New("a length of time can be at most ten years")
	}
	return d.Truncate(time.Second), nil
}

// parseClockTime parses a time of day, or a day and a time; isTime is false if the text is neither. A
// time that clocks skip when they are set forward is an error; for a time that they show twice, it
// returns the first.
func parseClockTime(text string, zone *time.Location, now time.Time) (at time.Time, isTime bool, err error) {
	if at, err := time.Parse(time.RFC3339, strings.Replace(text, " ", "T", 1)); err == nil {
		return at, true, nil
	}
	for _, form := range []string{"2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if l, err := time.Parse(form, text); err == nil {
			at, err := existingTime(l, zone)
			return at, true, err
		}
	}
	l, err := time.Parse("15:04", text)
	if err != nil {
		return at, false, nil
	}
	here := now.In(zone)
	for days := range 2 {
		day := time.Date(here.Year(), here.Month(), here.Day()+days, l.Hour(), l.Minute(), 0, 0, time.UTC)
		if at, err = existingTime(day, zone); err != nil || at.After(now) {
			break
		}
	}
	return at, true, err
}

// existingTime returns the moment at which the clocks of a zone first show the date and time that l shows
// in UTC, or an error if they never do.
func existingTime(l time.Time, zone *time.Location) (time.Time, error) {
	at, there := wallClockMoment(l, zone)
	if !there {
		return at, fmt.Errorf("%s doesn't exist in %s: the clocks are set forward then, to %s", l.Format("2006-01-02 15:04"), zone, at.Format("15:04"))
	}
	return at, nil
}

// wallClockMoment returns the first moment at which the clocks of a zone show the date and time that l shows in
// UTC, and true. If they never do because they are set forward past it, it returns the moment at which
// they are set, and false.
func wallClockMoment(l time.Time, zone *time.Location) (at time.Time, there bool) {
	guess := time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), 0, zone)
	for _, near := range []time.Duration{-26 * time.Hour, 0, 26 * time.Hour} {
		_, offset := guess.Add(near).Zone()
		u := l.Add(-time.Duration(offset) * time.Second).In(zone)
		if u.Hour() == l.Hour() && u.Minute() == l.Minute() && u.Day() == l.Day() && (at.IsZero() || u.Before(at)) {
			at = u
		}
	}
	if !at.IsZero() {
		return at, true
	}
	start, end := guess.ZoneBounds()
	if start.IsZero() || !end.IsZero() && end.Sub(guess) < guess.Sub(start) {
		return end, false
	}
	return start, false
}
