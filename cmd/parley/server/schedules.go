package server

import (
	"cmp"
	"context"
	"log/slog"

	"parley/agent/schedules"
	"parley/channels"
)

// newSchedules returns the scheduler that gives agents the texts of schedules that are due.
func newSchedules(on foundation, all liveChannels, who *turnAdmission) *schedules.Scheduler {
	return schedules.New(schedules.Config{
		Bus: on.home.Bus, Table: on.home.Store.Schedules(), Admit: who.admit,
		Ready: func(ctx context.Context) (why string, err error) {
			if on.role == Reader { // it has no channels, so it doesn't know who may talk to the bot
				return "no server is running here; start one with parley serve", nil
			}
			return on.home.MaySchedule(ctx)
		},
		Limits: func() schedules.Limits {
			c := on.settings.Load().Schedule
			return schedules.Limits{MaxPerPerson: c.MostPerPerson, MinInterval: c.LeastBetween, Zone: cmp.Or(c.TimeZone, schedules.MachineZone())}
		},
		Zone:  func(ctx context.Context, person string) string { return zoneOf(ctx, all, person, on.log) },
		Fired: on.metrics.ScheduleFired, Log: on.log, Point: on.point,
	})
}

// zoneOf returns a person's time zone, or "" if the platform doesn't reveal it.
func zoneOf(ctx context.Context, all liveChannels, person string, log *slog.Logger) string {
	l := all.named(channelOf(person))
	if l == nil {
		return ""
	}
	knows, ok := channels.AsTimeZoner(l.channel)
	if !ok {
		return ""
	}
	zone, err := knows.TimeZone(ctx, person)
	if err != nil {
		log.Debug("a person's time zone cannot be looked up now", slog.String("person", person), slog.Any("error", err))
	}
	return zone
}
