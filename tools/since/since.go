// Package since parses times in the formats that models and people write.
package since

import (
	"strconv"
	"strings"
	"time"

	"parley/tools"
)

// Parse parses the argument with that name, a time as models and people write it. "" gives the zero time, which
// means no limit. Days are in UTC, a weekday means the latest one that has begun, and a length of time such as 24h or
// 7d means that long ago. For a text that isn't a time, it returns an error that tells the model how to write one.
func Parse(name, text string, now time.Time) (time.Time, error) {
	at, ok := parse(text, now)
	if !ok {
		return time.Time{}, tools.Errorf(tools.InvalidArgs, "%s %q isn't a time: write today, yesterday, Monday, 2026-05-04, 2026-05-04T09:00:00Z, 24h or 7d", name, text)
	}
	return at, nil
}

func parse(text string, now time.Time) (time.Time, bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	day := now.UTC().Truncate(24 * time.Hour)
	switch text {
	case "":
		return time.Time{}, true
	case "today":
		return day, true
	case "yesterday":
		return day.AddDate(0, 0, -1), true
	}
	for back := range 7 {
		if d := day.AddDate(0, 0, -back); strings.ToLower(d.Weekday().String()) == strings.TrimPrefix(text, "last ") {
			return d, true
		}
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02t15:04:05", "2006-01-02 15:04:05", "2006-01-02t15:04", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.Parse(layout, strings.ToUpper(text)); err == nil {
			return at, true
		}
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		return now.AddDate(0, 0, -n), err == nil && n > 0 && n < 36500
	}
	ago, err := time.ParseDuration(text)
	return now.Add(-ago), err == nil && ago > 0
}
