package config

import (
	"slices"
	"time"

	"parley/cmd/parley/config/schema"
)

// Heartbeat says how often an agent works through a checklist of the operator without being asked, and who gets its
// findings.
type Heartbeat struct {
	Every     time.Duration // the time between two runs; 0 means never
	File      string        // absolute path of the checklist
	Agent     string
	To        []string // targets and addresses, as written
	TokensDay int64
	Day       int64 // what it may cost per day, in micro-dollars
}

// heartbeatSection declares the settings of the heartbeat.
func heartbeatSection() section {
	return section{
		Section: schema.Section{Name: "heartbeat", Settings: []schema.Setting{
			{Key: "every", Kind: schema.Duration, Least: int64(time.Second), Example: `"30m"`, Reload: schema.AtOnce, Fill: schema.Into(func(h *Heartbeat) any { return &h.Every })},
			{Key: "file", Kind: schema.Path, Example: `"HEARTBEAT.md"`, Reload: schema.AtOnce, Fill: schema.Into(func(h *Heartbeat) any { return &h.File })},
			{Key: "agent", Kind: schema.Text, Default: MainAgent, Reload: schema.AtOnce, Fill: schema.Into(func(h *Heartbeat) any { return &h.Agent })},
			{Key: "to", Kind: placeList{}, Example: `"oncall"`, Reload: withChannels, Fill: schema.Into(func(h *Heartbeat) any { return &h.To })},
			{Key: "tokens_day", Kind: schema.Count, Default: int64(200_000), Least: 1, Large: true, Reload: schema.AtOnce, Fill: schema.Into(func(h *Heartbeat) any { return &h.TokensDay })},
			{Key: "day", Kind: schema.Money, Default: int64(500_000), Least: 1, Reload: schema.AtOnce, Fill: schema.Into(func(h *Heartbeat) any { return &h.Day })},
		}},
		check: checkHeartbeat,
	}
}

// checkHeartbeat reports, if the heartbeat is on, which settings it lacks, or which don't fit it.
func checkHeartbeat(l *loader) {
	if !l.Mentioned("heartbeat.every") {
		return // the heartbeat is off
	}
	at := l.At("heartbeat.every")
	switch agent := l.Text("heartbeat.agent"); {
	case !l.Mentioned("heartbeat.file"):
		l.Report(at, "heartbeat.every", "there's no checklist to look at", `write file = "HEARTBEAT.md", or wherever it is`)
	case len(l.Texts("heartbeat.to")) == 0:
		l.Report(at, "heartbeat.every", "the heartbeat wouldn't tell anybody what it finds", `write to = "telegram:42", or a target`)
	case !slices.Contains(l.Names("agents"), agent):
		checkAgentExists(l, l.At("heartbeat.agent"), "heartbeat.agent", agent)
	case slices.Contains(l.Names("channels"), "heartbeat"):
		l.Report(l.At("channels.heartbeat"), "channels.heartbeat", "with a heartbeat, the name heartbeat is reserved for its conversations", "choose another name for the channel")
	}
	checkPlaces(l, "heartbeat.to", true)
}
