package config

import (
	"fmt"

	"parley/cmd/parley/config/schema"
	"parley/tools"
)

// Tools holds the settings that apply to the tools of all agents.
type Tools struct {
	Rules Rules
	// Rate limits how many calls of a tool each person may have, as TOOL N/UNIT.
	Rate      []string
	Untrusted string // what becomes of calls that act on the outside after untrusted content was read: "ask" or "allow"
	// Before and After are programs that are asked about a tool call before it runs and about its
	// result. Each is given with its arguments, separated by blanks.
	Before, After []string
	// Redact are regular expressions. Texts that match are removed from everything that leaves an
	// agent.
	Redact []string
}

// toolsSection declares the settings of all agents' tools.
func toolsSection() section {
	return section{
		Section: schema.Section{Name: "tools", Settings: append(ruleSettings(func(t *Tools) *Rules { return &t.Rules }), []schema.Setting{
			{Key: "rate", Kind: schema.Texts, Default: []string{}, Example: `["web_search 30/h"]`, Reload: schema.AtOnce, Fill: schema.Into(func(t *Tools) any { return &t.Rate })},
			{Key: "untrusted", Kind: schema.Text, Default: "ask", OneOf: []string{"ask", "allow"}, Reload: schema.AtOnce, Fill: schema.Into(func(t *Tools) any { return &t.Untrusted })},
			{Key: "before", Kind: schema.Texts, Default: []string{}, Example: `["/usr/local/bin/check-call"]`, Reload: schema.AtOnce, Fill: schema.Into(func(t *Tools) any { return &t.Before })},
			{Key: "after", Kind: schema.Texts, Default: []string{}, Example: `["/usr/local/bin/check-result"]`, Reload: schema.AtOnce, Fill: schema.Into(func(t *Tools) any { return &t.After })},
			{Key: "redact", Kind: schema.Texts, Default: []string{}, Example: `['CUST-\d{6}']`, Reload: schema.AtOnce, Fill: schema.Into(func(t *Tools) any { return &t.Redact })},
			{Key: "mcp_servers", Kind: schema.Opaque, Example: `{ … }`, NotYet: true},
		}...)},
		check: func(l *loader) {
			checkRules(l, "tools")
			checkRates(l)
			checkHooks(l)
			checkExpressions(l)
		},
	}
}

// checkExpressions reports regular expressions that cannot be used.
func checkExpressions(l *loader) {
	for i, text := range l.Texts("tools.redact") {
		if _, _, err := tools.Pattern(text); err != nil {
			l.Report(l.ElementAt("tools.redact", i), "tools.redact", fmt.Sprintf("%q isn't a valid regular expression: %v", text, err), `write something like 'CUST-\d{6}'`)
		}
	}
}

// checkHooks reports programs that are to be asked about tool calls but cannot be run.
func checkHooks(l *loader) {
	if l.opts.CheckHook == nil {
		return
	}
	for _, path := range []string{"tools.before", "tools.after"} {
		for i, command := range l.Texts(path) {
			if err := l.opts.CheckHook(command); err != nil {
				l.Report(l.ElementAt(path, i), path, err.Error(), `write something like "/usr/local/bin/check --strict"`)
			}
		}
	}
}
