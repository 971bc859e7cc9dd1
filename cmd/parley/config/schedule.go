package config

import (
	"fmt"
	"time"
	_ "time/tzdata" // so that time zones are known even if the machine has none installed

	"parley/cmd/parley/config/schema"
)

// Schedule holds the limits for the schedules that people may make.
type Schedule struct {
	TimeZone      string // for people of whom neither the conversation nor their platform tells it; "" means the machine's
	MostPerPerson int
	LeastBetween  time.Duration // the shortest time between two runs of a schedule
}

// scheduleSection declares the settings of schedules.
func scheduleSection() section {
	return section{
		Section: schema.Section{Name: "schedule", Settings: []schema.Setting{
			{Key: "time_zone", Kind: schema.Text, Example: `"Europe/Berlin"`, Reload: schema.AtOnce, Fill: schema.Into(func(s *Schedule) any { return &s.TimeZone })},
			{Key: "most", Kind: schema.Count, Default: int64(20), Least: 1, Reload: schema.AtOnce, Fill: schema.Into(func(s *Schedule) any { return &s.MostPerPerson })},
			{Key: "least", Kind: schema.Duration, Default: 5 * time.Minute, Least: int64(time.Second), Reload: schema.AtOnce, Fill: schema.Into(func(s *Schedule) any { return &s.LeastBetween })},
		}},
		check: checkSchedule,
	}
}

// checkSchedule reports a configured time zone that doesn't exist.
func checkSchedule(l *loader) {
	zone := l.Text("schedule.time_zone")
	if _, err := time.LoadLocation(zone); err != nil || zone == "Local" {
		l.Report(l.At("schedule.time_zone"), "schedule.time_zone", fmt.Sprintf("%q isn't a time zone", zone), `write it like "Europe/Berlin", "America/New_York" or "UTC"`)
	}
}
