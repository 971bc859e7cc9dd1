package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"parley/tools"
	"parley/tools/sandbox/egress"
	"parley/tools/spelling"
)

// Tools has the settings that apply to the tools of all agents.
type Tools struct {
	Rules     Rules
	Untrusted string // "ask" or "allow"
	// Before and After are programs that are asked about a tool call before it runs and about its
	// result. Each is given with its arguments, separated by blanks.
	Before, After []string
	// Redact are regular expressions. Texts that match are removed from everything that leaves an
	// agent.
	Redact []string
}

// Rules deny, ask about and allow calls of tools, each as TOOL or TOOL(PATTERN).
type Rules struct {
	Deny, Ask, Allow []string
}

// toolSections declares the settings of tools.
func toolSections() []section {
	settings := ruleSettings(func(dest any) *Rules { return &dest.(*Config).Tools.Rules })
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

// ruleSettings declares the rules of all agents or of one. The function rulesOf takes what the
// settings' table describes, and returns the Rules in it.
func ruleSettings(rulesOf func(dest any) *Rules) []setting {
	rules := func(key, example string, list func(*Rules) *[]string) setting {
		return setting{
			key: key, kind: asTexts, def: []string{}, example: example, since: first, reload: atOnce,
			fills: func(dest any) any { return list(rulesOf(dest)) },
		}
	}
	return []setting{
		rules("deny", `["exec_shell(git push *)"]`, func(r *Rules) *[]string { return &r.Deny }),
		rules("ask", `["web_fetch(http://*)"]`, func(r *Rules) *[]string { return &r.Ask }),
		rules("allow", `["exec_shell(go test *)"]`, func(r *Rules) *[]string { return &r.Allow }),
	}
}

// Transcribe is the service that turns voice messages into text; if Model is "", there is none.
type Transcribe struct {
	BaseURL string // "" is OpenAI's
	APIKey  Secret
	Model   string
}

// transcribeSections declares the settings of the service that turns voice messages into text.
func transcribeSections() []section {
	return []section{{name: "transcribe", settings: []setting{
		{key: "base_url", kind: asURL, schemes: []string{"http", "https"}, example: `"http://127.0.0.1:8000/v1"`,
			since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Transcribe.BaseURL })},
		{key: "api_key", kind: asText, secret: true, mayBeEmpty: true, example: `"${OPENAI_API_KEY}"`,
			since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Transcribe.APIKey })},
		{key: "model", kind: asText, example: `"whisper-1"`, since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Transcribe.Model })},
	}}}
}

// checkRules reports rules of a table that cannot be read or name no tool.
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

// checkExpressions reports regular expressions that cannot be used.
func (l *loader) checkExpressions() {
	for i, text := range l.list("tools.redact") {
		if _, _, err := tools.Pattern(text); err != nil {
			l.report(l.element("tools.redact", i), "tools.redact", fmt.Sprintf("%q is no regular expression that can be used: %v", text, err), `write for example 'CUST-\d{6}'`)
		}
	}
}

// checkHooks reports programs that are to be asked about tool calls but cannot be run.
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

// rule returns what is wrong with the text of a rule about tool calls; nil if nothing is.
func (l *loader) rule(text string) *fault {
	unknown, err := l.opts.CheckRule(text)
	switch {
	case err != nil:
		return &fault{wrong: fmt.Sprintf("%q is no rule: %v", text, err), remedy: `write for example "exec_shell(git push *)"`}
	case unknown == "":
		return nil
	}
	tools := l.opts.Tools()
	if near := spelling.Nearest(unknown, tools); near != "" {
		return &fault{wrong: fmt.Sprintf("no tool is called %q", unknown), remedy: fmt.Sprintf("write %q", near+strings.TrimPrefix(text, unknown))}
	}
	names := slices.Sorted(slices.Values(tools))
	return &fault{wrong: fmt.Sprintf("no tool is called %q", unknown), remedy: "the tools are " + strings.Join(names, ", ")}
}

// Sandbox has the limits within which the commands of agents run, apart from the rest of the
// machine.
type Sandbox struct {
	Mode string // "auto", "bubblewrap", "landlock" or "none"
	// Network is "none" or "full", alone, or a list of hosts; empty means none.
	Network   []string
	MemoryMB  int
	Processes int
	TmpMB     int
	Read      []string // what commands may read beside the workspace and the system's programs; absolute
	Env       []string // names of environment variables that commands see
}

// The values of Network that are not hosts.
const (
	NoNetwork   = "none"
	FullNetwork = "full"
)

// RunsCommands reports whether any agent has a capability for running commands.
func (c *Config) RunsCommands() bool {
	for _, a := range c.Agents {
		if slices.Contains(a.Capabilities, tools.Shell) || slices.Contains(a.Capabilities, tools.Git) {
			return true
		}
	}
	return false
}

// sandboxSections declares the settings of the sandbox.
func sandboxSections() []section {
	return []section{
		{name: "sandbox", settings: []setting{
			{key: "mode", kind: asText, def: "auto", oneOf: built("auto", "bubblewrap", "landlock", "none"),
				since: first, fills: into(func(c *Config) any { return &c.Sandbox.Mode })},
			{key: "network", kind: asPlaces, example: `["api.github.com"]`, since: first, fills: into(func(c *Config) any { return &c.Sandbox.Network })},
			{key: "memory_mb", kind: asCount, def: int64(512), least: 16, since: first, fills: into(func(c *Config) any { return &c.Sandbox.MemoryMB })},
			{key: "processes", kind: asCount, def: int64(64), least: 4, since: first, fills: into(func(c *Config) any { return &c.Sandbox.Processes })},
			{key: "tmp_mb", kind: asCount, def: int64(64), least: 1, since: first, fills: into(func(c *Config) any { return &c.Sandbox.TmpMB })},
			{key: "read", kind: asTexts, def: []string{}, example: `["/opt/sdk"]`, since: first, fills: into(func(c *Config) any { return &c.Sandbox.Read })},
			{key: "env", kind: asTexts, def: []string{}, example: `["LANG"]`, since: first, fills: into(func(c *Config) any { return &c.Sandbox.Env })},
		}},
	}
}

// checkSandbox reports entries of the sandbox's lists that make no sense.
func (l *loader) checkSandbox() {
	network := l.list("sandbox.network")
	for i, host := range network {
		at := l.element("sandbox.network", i)
		switch {
		case host != NoNetwork && host != FullNetwork:
			if err := egress.Check(host); err != nil {
				l.report(at, "sandbox.network", err.Error(), `write "none", "full", or hosts, as ["api.github.com", "*.example.com", "db.internal:5432"]`)
			}
		case len(network) > 1:
			l.report(at, "sandbox.network", fmt.Sprintf("%q stands beside hosts", host), "write it alone, or the hosts alone")
		}
	}
	variable := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	for i, name := range l.list("sandbox.env") {
		if !variable.MatchString(name) {
			l.report(l.element("sandbox.env", i), "sandbox.env", fmt.Sprintf("%q is not the name of a variable", name), `write the name alone: env = ["LANG"]`)
		}
	}
	for i, path := range l.list("sandbox.read") {
		clean := filepath.Clean(path)
		if !filepath.IsAbs(path) {
			l.report(l.element("sandbox.read", i), "sandbox.read", fmt.Sprintf("%q does not begin with /", path), "write where it lies on this machine, as /opt/sdk")
		} else if clean == "/" || clean == l.home || strings.HasPrefix(l.home, clean+"/") {
			l.report(l.element("sandbox.read", i), "sandbox.read", fmt.Sprintf("every command could read the home, which lies in %s", path), "name less")
		}
	}
}

// Jobs bounds the commands that agents run in the background, beyond the turn that starts them.
type Jobs struct {
	PerSession int // at once
	PerPerson  int // at once, in all their conversations
	Most       time.Duration
	Write      bool // whether jobs may write to all of the workspace
}

// jobSections declares the settings of commands in the background.
func jobSections() []section {
	return []section{{name: "jobs", settings: []setting{
		{key: "per_session", kind: asCount, def: int64(3), least: 1, since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Jobs.PerSession })},
		{key: "per_person", kind: asCount, def: int64(10), least: 1, since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Jobs.PerPerson })},
		{key: "most", kind: asDuration, def: 4 * time.Hour, least: int64(time.Second), since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Jobs.Most })},
		{key: "write", kind: asTruth, def: false, example: "true", since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Jobs.Write })},
	}}}
}

// maxJob is the longest time that a job may be allowed: a day after a job's start, what is left
// of it is taken for the remains of a crash.
const maxJob = 20 * time.Hour

// checkJobs reports a time limit of jobs that is too long.
func (l *loader) checkJobs() {
	if most, ok := l.values["jobs.most"].v.(time.Duration); ok && most > maxJob {
		l.report(l.places["jobs.most"], "jobs.most", "a job may take no longer than "+maxJob.String(), `write for example most = "12h"`)
	}
}

// Skills says where the operator keeps skills, and which of them agents have.
type Skills struct {
	Dirs    []string // absolute; nil means the folder skills in the home, if it exists
	Off     []string // the skills that no agent has
	Trusted []string // the skills whose words count as the operator's own
}

// skillSections declares the settings of skills.
func skillSections() []section {
	return []section{{name: "skills", settings: []setting{
		{key: "dirs", kind: asPaths, example: `["skills"]`, since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Skills.Dirs })},
		{key: "off", kind: asTexts, def: []string{}, example: `["reports"]`, since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Skills.Off })},
		{key: "trusted", kind: asTexts, def: []string{}, example: `["reports"]`, since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Skills.Trusted })},
	}}}
}

// Web says which pages of the web agents with the capability "network" may read, and with which
// service they search.
type Web struct {
	Search  string // "brave", "tavily" or "searxng"; "" means none
	APIKey  Secret
	BaseURL string // "" means the service's own URL; no trailing slash
	// Allow and Deny are hosts, each a name, "*.NAME" or an address.
	Allow, Deny []string
}

// webSections declares the settings of the web tools.
func webSections() []section {
	return []section{
		{name: "web", settings: []setting{
			{key: "search", kind: asText, oneOf: built("brave", "tavily", "searxng"), example: `"brave"`,
				since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Web.Search })},
			{key: "api_key", kind: asText, secret: true, example: `"${BRAVE_API_KEY}"`,
				since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Web.APIKey })},
			{key: "base_url", kind: asURL, schemes: []string{"http", "https"}, example: `"http://127.0.0.1:8888"`,
				since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Web.BaseURL })},
			{key: "allow", kind: asTexts, def: []string{}, example: `["example.com", "*.example.com"]`,
				since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Web.Allow })},
			{key: "deny", kind: asTexts, def: []string{}, example: `["*.internal.example"]`,
				since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Web.Deny })},
		}},
	}
}

// checkWeb reports what a search service lacks, such as its key, and entries of the lists that
// are no hosts: such an entry would allow or deny nothing, unnoticed.
func (l *loader) checkWeb() {
	search := l.str("web.search")
	switch {
	case search == "searxng" && l.str("web.base_url") == "":
		l.report(l.places["web.search"], "web.search", "SearXNG has no server of its own",
			`write base_url = "http://127.0.0.1:8888", or where yours is`)
	case (search == "brave" || search == "tavily") && !l.mentioned("web.api_key"):
		l.report(l.places["web.search"], "web.search", search+" wants a key", `write api_key = "${`+strings.ToUpper(search)+`_API_KEY}"`)
	case search == "" && l.mentioned("web.api_key"):
		l.report(l.places["web.api_key"], "web.api_key", "a key of no service", "write search = \"brave\" or the service that it is of")
	case search == "" && l.mentioned("web.base_url"):
		l.report(l.places["web.base_url"], "web.base_url", "the URL of no service", "write search = \"searxng\" or the service that is there")
	}
	for _, path := range []string{"web.allow", "web.deny"} {
		for i, host := range l.list(path) {
			if !isHost(strings.TrimPrefix(host, "*.")) {
				l.report(l.element(path, i), path, fmt.Sprintf("%q is not a host", host),
					`write a name, "*." and a name for all below it, or an address; without scheme, port and path`)
			}
		}
	}
}

func isHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return strings.Trim(host, ".") != "" && !strings.ContainsAny(host, "/:@*[]%?# \t\n")
}

// Audit says where records of what was done are kept besides the store, and for how long.
type Audit struct {
	File  string // absolute; "" means none
	Days  int    // how many days records are kept, in the file and in the store
	MaxMB int    // of the file and the rotated ones
}

// auditSections declares the settings of the audit.
func auditSections() []section {
	return []section{
		{name: "audit", settings: []setting{
			{key: "file", kind: asPath, example: `"audit.jsonl"`, since: first, fills: into(func(c *Config) any { return &c.Audit.File })},
			{key: "days", kind: asCount, def: int64(7), least: 1, since: first, fills: into(func(c *Config) any { return &c.Audit.Days })},
			{key: "max_mb", kind: asCount, def: int64(100), least: 1, since: first, fills: into(func(c *Config) any { return &c.Audit.MaxMB })},
		}},
	}
}
