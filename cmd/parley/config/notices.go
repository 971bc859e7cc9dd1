package config

import (
	"time"

	"parley/cmd/parley/config/schema"
)

// Tell says how owners are notified of things that need their attention.
type Tell struct {
	To    []string      // targets and addresses, as written; if there are none, the owners' private chats with the bot
	After time.Duration // how long a channel must be down before the owners get a notice
}

// noticesSection declares the settings for notices to owners.
func noticesSection() section {
	return section{
		Section: schema.Section{Name: "notices", Settings: []schema.Setting{
			{Key: "to", Kind: placeList{}, Example: `"oncall"`, Reload: withChannels, Fill: schema.Into(func(t *Tell) any { return &t.To })},
			{Key: "after", Kind: schema.Duration, Default: 3 * time.Minute, Least: int64(time.Second), Fill: schema.Into(func(t *Tell) any { return &t.After })},
		}},
		check: func(l *loader) { checkPlaces(l, "notices.to", true) },
	}
}
