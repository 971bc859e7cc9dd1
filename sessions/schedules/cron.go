package schedules

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// A cron is a parsed cron line: minute, hour, day of the month, month, day of the week.
type cron struct {
	minutes, hours, days, months, weekdays uint64 // the allowed numbers of each field, one bit for each
	// isHourly says that the line is due in every hour, so its slots follow the passing of time. The slots
	// of other lines follow what clocks show: a time that clocks show twice (when they are set back)
	// counts once, and a time that they skip counts when they are set forward.
	isHourly bool
	// allowsEitherDay says that both the days of the month and the weekdays are restricted; then a day counts
	// if one of them allows it.
	allowsEitherDay bool
}

// A field describes one of the five fields of a cron line.
type field struct {
	name     string
	from, to int
	words    []string // the names of the numbers from, from+1, …
}

func fields() []field {
	return []field{
		{"minute", 0, 59, nil},
		{"hour", 0, 23, nil},
		{"day of the month", 1, 31, nil},
		{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
		{"day of the week", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
	}
}

// expandShorthand returns the cron line for a word such as "@daily", and any other word unchanged.
func expandShorthand(word string) string {
	switch strings.ToLower(word) {
	case "@hourly":
		return "0 * * * *"
	case "@daily", "@midnight":
		return "0 0 * * *"
	case "@weekly":
		return "0 0 * * 0"
	case "@monthly":
		return "0 0 1 * *"
	case "@yearly", "@annually":
		return "0 0 1 1 *"
	}
	return word
}

func parseCron(text string) (*cron, error) {
	places := strings.Fields(expandShorthand(text))
	all := fields()
	if len(places) != len(all) {
		return nil, fmt.Errorf("%q cannot be read: give %s", text, Forms)
	}
	var sets [5]uint64
	for i, f := range all {
		set, err := f.parse(places[i])
		if err != nil {
			return nil, fmt.Errorf("the %s of %q: %w", f.name, text, err)
		}
		sets[i] = set
	}
	c := &cron{minutes: sets[0], hours: sets[1], days: sets[2], months: sets[3], weekdays: sets[4]}
	if c.weekdays&(1<<7) != 0 { // 7 means Sunday too
		c.weekdays |= 1
	}
	c.isHourly = bits.OnesCount64(c.hours) == 24
	c.allowsEitherDay = !strings.HasPrefix(places[2], "*") && !strings.HasPrefix(places[4], "*")
	if c.next(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC), time.UTC).IsZero() {
		return nil, fmt.Errorf("%q is never due: there's no such day", text)
	}
	return c, nil
}

// parse returns the set of numbers described by a list of numbers, ranges and steps.
func (f field) parse(text string) (set uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		span, by, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			if step, err = strconv.Atoi(by); err != nil || step < 1 {
				return 0, fmt.Errorf("%q isn't a step: write a number of at least 1 after the slash", by)
			}
		}
		first, last := f.from, f.to
		if span != "*" {
			low, high, ranged := strings.Cut(span, "-")
			if first, err = f.parseNumber(low); err != nil {
				return 0, err
			}
			if last = first; ranged {
				if last, err = f.parseNumber(high); err != nil {
					return 0, err
				}
			} else if stepped {
				last = f.to
			}
			if last < first {
				return 0, fmt.Errorf("%q goes backwards: write the lower one first", span)
			}
		}
		for n := first; n <= last; n += step {
			set |= 1 << n
		}
	}
	return set, nil
}

// parseNumber parses a number, or one of the field's words.
func (f field) parseNumber(text string) (int, error) {
	for i, word := range f.words {
		if strings.EqualFold(text, word) {
			return f.from + i, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < f.from || n > f.to {
		return 0, fmt.Errorf("%q is none: want %d to %d", text, f.from, f.to)
	}
	return n, nil
}

func contains(set uint64, n int) bool { return set&(1<<n) != 0 }

// hasSlotOn reports whether the line is due at any time of a day.
func (c *cron) hasSlotOn(day time.Time) bool {
	of, week := contains(c.days, day.Day()), contains(c.weekdays, int(day.Weekday()))
	if c.allowsEitherDay {
		return contains(c.months, int(day.Month())) && (of || week)
	}
	return contains(c.months, int(day.Month())) && of && week
}

// next returns the first slot after a time. It returns zero if there is none within nine years: two
// 29ths of February are at most eight years apart.
func (c *cron) next(after time.Time, zone *time.Location) time.Time {
	const most = 9 * 366
	here := after.In(zone)
	day := time.Date(here.Year(), here.Month(), here.Day(), 0, 0, 0, 0, time.UTC)
	for range most {
		if c.hasSlotOn(day) {
			if at := c.nextOn(day, after, zone); !at.IsZero() {
				return at
			}
		}
		day = day.AddDate(0, 0, 1)
	}
	return time.Time{}
}

// nextOn returns the first slot on a day that is after a time; zero if there is none.
func (c *cron) nextOn(day, after time.Time, zone *time.Location) (first time.Time) {
	if c.isHourly {
		return c.nextHourly(day, after, zone)
	}
	for h := range 24 {
		if !contains(c.hours, h) {
			continue
		}
		for m := range 60 {
			if !contains(c.minutes, m) {
				continue
			}
			at, _ := wallClockMoment(day.Add(time.Duration(h)*time.Hour+time.Duration(m)*time.Minute), zone)
			if at.After(after) && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	return first
}

// nextHourly returns the first slot on a day that is after a time, for a cron that is due every hour. It
// steps through the minutes as they pass, no matter what clocks show.
func (c *cron) nextHourly(day, after time.Time, zone *time.Location) time.Time {
	at, _ := wallClockMoment(day, zone)
	end, _ := wallClockMoment(day.AddDate(0, 0, 1), zone)
	if after.After(at) {
		at = after.Truncate(time.Minute)
	}
	for ; at.Before(end); at = at.Add(time.Minute) {
		if here := at.In(zone); at.After(after) && contains(c.minutes, here.Minute()) {
			return here
		}
	}
	return time.Time{}
}

// shortestGap returns the shortest time between two slots, which may be on consecutive days.
func (c *cron) shortestGap() time.Duration {
	first, last, least := -1, -1, 24*60
	for n := range 24 * 60 {
		if !contains(c.hours, n/60) || !contains(c.minutes, n%60) {
			continue
		}
		if first < 0 {
			first = n
		} else {
			least = min(least, n-last)
		}
		last = n
	}
	if c.hasSlotsOnFollowingDays() {
		least = min(least, first+24*60-last)
	}
	return time.Duration(least) * time.Minute
}

// hasSlotsOnFollowingDays reports whether there are slots on consecutive days.
func (c *cron) hasSlotsOnFollowingDays() bool {
	day := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 4 * 366 {
		if c.hasSlotOn(day) && c.hasSlotOn(day.AddDate(0, 0, 1)) {
			return true
		}
		day = day.AddDate(0, 0, 1)
	}
	return false
}
