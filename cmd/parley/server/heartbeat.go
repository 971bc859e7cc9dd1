package server

import (
	"context"
	"time"

	"parley/channels/heartbeat"
	"parley/sessions/bill"
)

// newHeartbeat returns the service that regularly makes an agent go through a checklist.
func newHeartbeat(on foundation, paid *costs) *heartbeat.Service {
	return &heartbeat.Service{
		Bus: on.home.Bus, Events: on.home.Bus, Store: on.home.Store, Notes: on.home.Book, Ready: on.home.MaySchedule, Log: on.log,
		Cost: func(ctx context.Context, person string) (int64, error) {
			return paid.spent(ctx, bill.Cap{Subject: bill.Person(person)}, time.Now())
		},
		Settings: func() heartbeat.Settings {
			c := on.settings.Load().Heartbeat
			return heartbeat.Settings{Every: c.Every, File: c.File, Agent: c.Agent, To: on.settings.places(c.To), TokensDay: c.TokensDay, Day: c.Day}
		},
	}
}
