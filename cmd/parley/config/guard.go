package config

import (
	"time"

	"parley/cmd/parley/config/schema"
)

// Guard says which tool calls a model judges before they run.
type Guard struct {
	Model   string   // a name in [models], or as in agents.NAME.model; "" means that no model judges
	Judge   []string // rules in the form TOOL or TOOL(PATTERN)
	Timeout time.Duration
}

// guardSection declares the settings for the model that judges tool calls.
func guardSection() section {
	return section{
		Section: schema.Section{Name: "guard", Settings: []schema.Setting{
			{Key: "model", Kind: schema.Text, Example: `"small"`, Fill: schema.Into(func(g *Guard) any { return &g.Model })},
			{Key: "judge", Kind: schema.Texts, Example: `["exec_shell(*)"]`, Reload: schema.AtOnce, Fill: schema.Into(func(g *Guard) any { return &g.Judge })},
			{Key: "timeout", Kind: schema.Duration, Default: 5 * time.Second, Least: int64(time.Second), Reload: schema.AtOnce, Fill: schema.Into(func(g *Guard) any { return &g.Timeout })},
		}},
		check: checkGuard,
	}
}

// checkGuard reports a model without calls to judge, calls without a model, rules that cannot be parsed, and a model
// that cannot judge.
func checkGuard(l *loader) {
	model, rules := l.Text("guard.model"), l.Texts("guard.judge")
	switch {
	case model == "" && len(rules) > 0:
		l.Report(l.At("guard.judge"), "guard.judge", "no model is named to judge these calls", `write model = "NAME" next to it, where NAME is that of a table [models.NAME]`)
	case model != "" && len(rules) == 0:
		l.Report(l.At("guard.model"), "guard.model", "it has no calls to judge", `write judge = ["exec_shell(*)"] next to it`)
	case model == demoName:
		l.Report(l.At("guard.model"), "guard.model", "the built-in demo can't judge calls", "name a real model, in [models.NAME]")
	case model != "":
		checkNamedModel(l, "guard.model")
	}
	if l.opts.CheckRule == nil {
		return
	}
	for i, rule := range rules {
		if f := checkRule(l, rule); f != nil {
			l.Report(l.ElementAt("guard.judge", i), "guard.judge", f.Wrong, f.Remedy)
		}
	}
}
