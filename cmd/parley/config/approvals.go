package config

import (
	"time"

	"parley/cmd/parley/config/schema"
)

// Approvals says how people are asked whether a tool call may run.
type Approvals struct {
	Expires time.Duration // the time after which an approval can no longer be answered
	To      []string      // who is asked: targets and addresses, as written; if there are none, the conversation itself
}

// approvalsSection declares the settings of approvals.
func approvalsSection() section {
	return section{
		Section: schema.Section{Name: "approvals", Settings: []schema.Setting{
			{Key: "expires", Kind: schema.Duration, Default: 24 * time.Hour, Least: int64(time.Second), Reload: schema.AtOnce, Fill: schema.Into(func(a *Approvals) any { return &a.Expires })},
			{Key: "to", Kind: placeList{}, Example: `"oncall"`, Reload: withChannels, Fill: schema.Into(func(a *Approvals) any { return &a.To })},
		}},
		check: func(l *loader) { checkPlaces(l, "approvals.to", true) },
	}
}
