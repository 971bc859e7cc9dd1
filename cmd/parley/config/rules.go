package config

import (
	"fmt"
	"slices"
	"strings"

	"parley/cmd/parley/config/schema"
	"parley/tools/spelling"
)

// Rules deny, ask about and allow tool calls, each in the form TOOL or TOOL(PATTERN).
type Rules struct {
	Deny, Ask, Allow []string
}

// ruleSettings declares the rules of all agents or of one. rulesOf returns the Rules in the value
// that the settings' table describes.
func ruleSettings[T any](rulesOf func(*T) *Rules) []schema.Setting {
	rules := func(key, example string, list func(*Rules) *[]string) schema.Setting {
		return schema.Setting{
			Key: key, Kind: schema.Texts, Default: []string{}, Example: example, Reload: schema.AtOnce,
			Fill: schema.Into(func(dest *T) any { return list(rulesOf(dest)) }),
		}
	}
	return []schema.Setting{
		rules("deny", `["exec_shell(git push *)"]`, func(r *Rules) *[]string { return &r.Deny }),
		rules("ask", `["web_fetch(http://*)"]`, func(r *Rules) *[]string { return &r.Ask }),
		rules("allow", `["exec_shell(go test *)"]`, func(r *Rules) *[]string { return &r.Allow }),
	}
}

// checkRules reports rules in a table that cannot be parsed, or that name no tool.
func checkRules(l *loader, table string) {
	for _, key := range []string{"deny", "ask", "allow"} {
		checkRuleList(l, table+"."+key)
	}
}

// checkRuleList reports those rules in the list at this path that cannot be parsed, or that name no tool.
func checkRuleList(l *loader, path string) {
	if l.opts.CheckRule == nil || !l.Mentioned(path) {
		return // if it isn't mentioned, there are none, or they are inherited and reported there
	}
	for i, rule := range l.Texts(path) {
		if f := checkRule(l, rule); f != nil {
			l.Report(l.ElementAt(path, i), path, f.Wrong, f.Remedy)
		}
	}
}

// checkRates reports rates of tool calls that cannot be parsed, or that name no tool.
func checkRates(l *loader) {
	if l.opts.CheckRate == nil {
		return
	}
	for i, rate := range l.Texts("tools.rate") {
		unknown, err := l.opts.CheckRate(rate)
		f := checkTool(l, rate, unknown)
		if err != nil {
			f = &schema.Fault{Wrong: fmt.Sprintf("%q isn't a rate: %v", rate, err), Remedy: `write something like "web_search 30/h"`}
		}
		if f != nil {
			l.Report(l.ElementAt("tools.rate", i), "tools.rate", f.Wrong, f.Remedy)
		}
	}
}

// checkRule returns what is wrong with the text of a rule about tool calls; nil if nothing is.
func checkRule(l *loader, text string) *schema.Fault {
	unknown, err := l.opts.CheckRule(text)
	if err != nil {
		return &schema.Fault{Wrong: fmt.Sprintf("%q isn't a rule: %v", text, err), Remedy: `write something like "exec_shell(git push *)"`}
	}
	return checkTool(l, text, unknown)
}

// checkTool returns what is wrong with a rule or rate that begins with the name of an unknown tool; nil if unknown
// is "".
func checkTool(l *loader, text, unknown string) *schema.Fault {
	if unknown == "" {
		return nil
	}
	tools := l.opts.Tools()
	if near := spelling.Nearest(unknown, tools); near != "" {
		return &schema.Fault{Wrong: fmt.Sprintf("no tool is called %q", unknown), Remedy: fmt.Sprintf("write %q", near+strings.TrimPrefix(text, unknown))}
	}
	names := slices.Sorted(slices.Values(tools))
	return &schema.Fault{Wrong: fmt.Sprintf("no tool is called %q", unknown), Remedy: "the tools are " + strings.Join(names, ", ")}
}
