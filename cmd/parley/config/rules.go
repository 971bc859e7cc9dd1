package config

import (
	"fmt"
	"slices"
	"strings"

	"parley/tools"
	"parley/tools/spelling"
)

// Tools is what holds for the tools of all agents.
type Tools struct {
	Rules     Rules
	Untrusted string // "ask" or "allow"
	// Before and After are programs that are asked about calls and results, each with
	// its arguments, parted by blanks.
	Before, After []string
	// Redact are regular expressions of what is taken out of all that leaves an agent.
	Redact []string
}

// Rules deny, ask about and allow calls of tools, each as TOOL or TOOL(PATTERN).
type Rules struct {
	Deny, Ask, Allow []string
}

// toolSections are the settings of tools.
func toolSections() []section {
	settings := ruleSettings(func(owner any) *Rules { return &owner.(*Config).Tools.Rules })
	settings = append(settings, setting{
		key: "untrusted", kind: asText, def: "ask", oneOf: built("ask", "allow"), since: first, reload: atOnce,
		fills: into(func(c *Config) any { return &c.Tools.Untrusted }),
	})
	settings = append(settings, setting{
		key: "before", kind: asTexts, def: []string{}, example: `["/usr/local/bin/check-call"]`, since: first, reload: atOnce,
		fills: into(func(c *Config) any { return &c.Tools.Before }),
	}, setting{
		key: "after", kind: asTexts, def: []string{}, example: `["/usr/local/bin/check-result"]`, since: first, reload: atOnce,
		fills: into(func(c *Config) any { return &c.Tools.After }),
	}, setting{
		key: "redact", kind: asTexts, def: []string{}, example: `['CUST-\d{6}']`, since: first, reload: atOnce,
		fills: into(func(c *Config) any { return &c.Tools.Redact }),
	})
	return []section{
		{name: "tools", settings: append(settings, setting{key: "mcp_servers", kind: asOpaque, example: `{ … }`, since: notYet})},
	}
}

// ruleSettings are the rules of all agents or of one.
func ruleSettings(of func(owner any) *Rules) []setting {
	rules := func(key, example string, list func(*Rules) *[]string) setting {
		return setting{
			key: key, kind: asTexts, def: []string{}, example: example, since: first, reload: atOnce,
			fills: func(owner any) any { return list(of(owner)) },
		}
	}
	return []setting{
		rules("deny", `["exec_shell(git push *)"]`, func(r *Rules) *[]string { return &r.Deny }),
		rules("ask", `["web_fetch(http://*)"]`, func(r *Rules) *[]string { return &r.Ask }),
		rules("allow", `["exec_shell(go test *)"]`, func(r *Rules) *[]string { return &r.Allow }),
	}
}

// checkRules looks whether each rule of a table can be read, and names a tool.
func (l *loader) checkRules(table string) {
	if l.opts.CheckRule == nil {
		return
	}
	for _, key := range []string{"deny", "ask", "allow"} {
		path := table + "." + key
		if !l.mentioned(path) {
			continue // none, or inherited and reported there
		}
		for i, rule := range l.list(path) {
			if f := l.rule(rule); f != nil {
				l.report(l.element(path, i), path, f.wrong, f.remedy)
			}
		}
	}
}

// checkExpressions looks whether each regular expression can be used.
func (l *loader) checkExpressions() {
	for i, text := range l.list("tools.redact") {
		if _, _, err := tools.Pattern(text); err != nil {
			l.report(l.element("tools.redact", i), "tools.redact", fmt.Sprintf("%q is no regular expression that can be used: %v", text, err), `write for example 'CUST-\d{6}'`)
		}
	}
}

// checkHooks looks whether each program that is asked about calls can be run.
func (l *loader) checkHooks() {
	if l.opts.CheckHook == nil {
		return
	}
	for _, path := range []string{"tools.before", "tools.after"} {
		for i, command := range l.list(path) {
			if err := l.opts.CheckHook(command); err != nil {
				l.report(l.element(path, i), path, err.Error(), `write for example "/usr/local/bin/check --strict"`)
			}
		}
	}
}

// rule says what is wrong with a rule.
func (l *loader) rule(text string) *fault {
	unknown, err := l.opts.CheckRule(text)
	switch {
	case err != nil:
		return &fault{wrong: fmt.Sprintf("%q is no rule: %v", text, err), remedy: `write for example "exec_shell(git push *)"`}
	case unknown == "":
		return nil
	}
	if near := spelling.Nearest(unknown, l.opts.Tools); near != "" {
		return &fault{wrong: fmt.Sprintf("no tool is called %q", unknown), remedy: fmt.Sprintf("write %q", near+strings.TrimPrefix(text, unknown))}
	}
	names := slices.Sorted(slices.Values(l.opts.Tools))
	return &fault{wrong: fmt.Sprintf("no tool is called %q", unknown), remedy: "the tools are " + strings.Join(names, ", ")}
}
