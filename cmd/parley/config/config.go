// Package config reads and checks the operator's settings, from file and environment.
//
// Each section of the file is declared in a Go file with its name (agents.go, channels.go, web.go
// …), which contains the type that holds its settings; a function that declares each of them with
// its kind, default, limits and example, when a reload applies it, and the field that it fills; and
// checks of settings that must be consistent. The table sections, in this file, ties each section
// to a field of Config. The package schema does the rest with these declarations: reading, filling
// in defaults, showing, comparing with the next configuration.
//
// Load reports everything that is wrong at once, each with its place and a remedy. The configuration that it returns is
// complete: to learn a setting's value, no other code looks at the file, the environment or a default. Each value
// remembers where it came from.
package config

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"parley/bus"
	"parley/cmd/parley/config/schema"
	"parley/tools"
	"parley/tools/plainjson"
)

// A Config holds all settings, complete with defaults.
type Config struct {
	File       string     // absolute; "" if there is none
	FileSearch FileSearch // where the file was searched for
	Home       string     // absolute path
	Serve      Serve
	Log        Log
	Limits     Limits
	Approvals  Approvals
	Tell       Tell
	Model      Model
	Schedule   Schedule
	Heartbeat  Heartbeat
	Budget     Budget
	Models     map[string]Model // additional models by name, which agents name or which are asked if Model doesn't answer
	Agents     map[string]Agent // by name; "main" always exists
	Channels   map[string]Channel
	Targets    map[string][]bus.Address
	Tools      Tools
	Guard      Guard
	Web        Web
	Canvas     Canvas
	// Transcribe is the service that transcribes voice messages.
	Transcribe Transcribe
	// Speech is the service that reads answers aloud.
	Speech     Speech
	Embeddings Embeddings
	Recall     Recall
	Sandbox    Sandbox
	Jobs       Jobs
	Audit      Audit
	Trace      Trace
	MCP        map[string]MCPServer // MCP servers by name
	Skills     Skills
	Nodes      map[string]Node // nodes by name; a node that has joined may be missing
	Node       NodeSelf
	MQTT       MQTT
	HTTPAccess
	DataStorage

	parsed parsedSettings
}

// parsedSettings are what a Config was made from.
type parsedSettings struct {
	settings *schema.Settings // nil if it wasn't read from a file or the environment
	sections []row
	// agentProblems contains the problems that stop a server only if it runs agents.
	agentProblems []schema.Problem
}

// sections lists the sections of the file in the order in which they are shown, each with the part
// of the Config that it fills. home is the home's folder.
func sections(platforms []Platform, home string) []row {
	return []row{
		one(busSection(), func(c *Config) *Bus { return &c.Bus }),
		one(storeSection(), func(c *Config) *Store { return &c.Store }),
		one(workspaceSection(home), func(c *Config) *Workspace { return &c.Workspace }),
		one(serveSection(), func(c *Config) *Serve { return &c.Serve }),
		one(logSection(), func(c *Config) *Log { return &c.Log }),
		one(limitsSection(), func(c *Config) *Limits { return &c.Limits }),
		one(approvalsSection(), func(c *Config) *Approvals { return &c.Approvals }),
		one(noticesSection(), func(c *Config) *Tell { return &c.Tell }),
		one(modelSection(), func(c *Config) *Model { return &c.Model }),
		each(modelsSection(), func(c *Config) *map[string]Model { return &c.Models }, func(m *Model, _ string) { m.Configured = true }),
		each(agentsSection(), func(c *Config) *map[string]Agent { return &c.Agents }, func(a *Agent, name string) { a.Name = name }),
		each(channelsSection(platforms), func(c *Config) *map[string]Channel { return &c.Channels }, func(ch *Channel, name string) { ch.Name = name }),
		{section: targetsSection()}, // Config.fill parses the addresses of this section
		one(httpSection(), func(c *Config) *HTTP { return &c.HTTP }),
		each(webhooksSection(), func(c *Config) *map[string]Webhook { return &c.Webhooks }, func(w *Webhook, name string) { w.Name = name }),
		each(subscriptionsSection(), func(c *Config) *map[string]Subscription { return &c.Subscriptions }, func(s *Subscription, name string) { s.Name = name }),
		each(tokensSection(), func(c *Config) *map[string]Token { return &c.Tokens }, func(t *Token, name string) { t.Name = name }),
		one(retentionSection(), func(c *Config) *Retention { return &c.Retention }),
		one(knowledgeSection(), func(c *Config) *Knowledge { return &c.Knowledge }),
		one(toolsSection(), func(c *Config) *Tools { return &c.Tools }),
		one(guardSection(), func(c *Config) *Guard { return &c.Guard }),
		one(sandboxSection(), func(c *Config) *Sandbox { return &c.Sandbox }),
		one(jobsSection(), func(c *Config) *Jobs { return &c.Jobs }),
		each(mcpSection(), func(c *Config) *map[string]MCPServer { return &c.MCP }, func(m *MCPServer, name string) { m.Name = name }),
		one(skillsSection(), func(c *Config) *Skills { return &c.Skills }),
		each(nodesSection(), func(c *Config) *map[string]Node { return &c.Nodes }, func(n *Node, name string) { n.Name = name }),
		one(nodeSection(), func(c *Config) *NodeSelf { return &c.Node }),
		one(mqttSection(), func(c *Config) *MQTT { return &c.MQTT }),
		one(webSection(), func(c *Config) *Web { return &c.Web }),
		one(canvasSection(), func(c *Config) *Canvas { return &c.Canvas }),
		one(transcribeSection(), func(c *Config) *Transcribe { return &c.Transcribe }),
		one(speechSection(), func(c *Config) *Speech { return &c.Speech }),
		one(embeddingsSection(), func(c *Config) *Embeddings { return &c.Embeddings }),
		one(recallSection(), func(c *Config) *Recall { return &c.Recall }),
		one(auditSection(), func(c *Config) *Audit { return &c.Audit }),
		one(traceSection(), func(c *Config) *Trace { return &c.Trace }),
		one(scheduleSection(), func(c *Config) *Schedule { return &c.Schedule }),
		one(heartbeatSection(), func(c *Config) *Heartbeat { return &c.Heartbeat }),
		one(budgetSection(), func(c *Config) *Budget { return &c.Budget }),
	}
}

// A row is a section together with the part of a Config that it fills.
type row struct {
	section
	fill func(s *schema.Settings, c *Config) // nil if Config.fill itself reads the section's values
}

// one ties a section with a single table to a field of Config.
func one[T any](sec section, field func(*Config) *T) row {
	return row{sec, func(s *schema.Settings, c *Config) { s.Fill(sec.Name, field(c)) }}
}

// each ties a section whose tables the operator names to a map in Config, keyed by these names;
// named prepares a T for the table with this name, for example by storing the name in it.
func each[T any](sec section, field func(*Config) *map[string]T, named func(one *T, name string)) row {
	return row{sec, func(s *schema.Settings, c *Config) {
		all := map[string]T{}
		for _, name := range s.Names(sec.Name) {
			var one T
			named(&one, name)
			s.Fill(sec.Name+"."+name, &one)
			all[name] = one
		}
		*field(c) = all
	}}
}

// deprecated returns the keys that are given up but work for two more releases: at present none.
func deprecated() []schema.Retired { return nil }

// Load finds the home and the configuration file, reads the file, fills in what it leaves out from
// the environment and from defaults, and checks the result. Its error is an *Error that lists every
// problem.
func Load(o Options) (*Config, error) {
	o = o.withEnv()
	home, wrong := findHome(o)
	file, named, at := findFile(o, home)
	rows := sections(o.Platforms, home)
	var declared []schema.Section
	for _, r := range rows {
		declared = append(declared, r.Section)
	}
	l := &loader{opts: o, home: home, Values: schema.Read(declared, schema.Source{
		File: file, Named: named, NamedAt: at, Wrong: wrong, Env: o.Env, WithoutSecrets: o.WithoutSecrets, Retired: deprecated(),
	})}
	l.TakeEnv()
	for _, r := range rows {
		if r.prepare != nil {
			r.prepare(l)
		}
	}
	l.Complete()
	for _, r := range rows {
		if r.check != nil {
			r.check(l)
		}
	}
	settings, err := l.Settings()
	if err != nil {
		return nil, err
	}
	c := &Config{File: settings.File(), Home: home, FileSearch: fileSearchOf(o, home), parsed: parsedSettings{settings, rows, l.agentProblems}}
	if err := c.setFields(); err != nil {
		return nil, err
	}
	return c, nil
}

// setFields fills the configuration's fields from the settings.
func (c *Config) setFields() error {
	s := c.parsed.settings
	for _, r := range c.parsed.sections {
		if r.fill != nil {
			r.fill(s, c)
		}
	}
	assignServers(s, c.MCP, c.Agents)
	c.Limits.TokensWritten = s.IsSet("limits.user_tokens_day")
	c.Budget.Written = hasCostCap(s)
	for name, channel := range c.Channels {
		channel.PublicURL = cmp.Or(channel.PublicURL, c.HTTP.PublicURL)
		c.Channels[name] = channel
	}
	if c.Model.Name == demoName {
		c.Model = Model{Demo: true}
	}
	c.Model.Configured = c.Model.Demo || c.Model.BaseURL != "" || c.Model.APIKey != ""
	c.Targets = map[string][]bus.Address{}
	for _, name := range s.Names("targets") {
		for _, text := range s.Texts("targets." + name) {
			to, err := bus.ParseAddress(text)
			if err != nil {
				return fmt.Errorf("target %s: %w", name, err)
			}
			c.Targets[name] = append(c.Targets[name], to)
		}
	}
	return nil
}

// Reload compares the configuration of a running process with the next one, which was read from the
// changed file. It returns old with those settings from next that can change while the process
// runs, such as who may talk, the limits on people, and who may send requests over HTTP: those whose
// declarations say so in Reload. It also returns what differs. It changes neither old nor next.
func Reload(old, next *Config) (*Config, Changes, error) {
	merged, changes := schema.Merge(old.parsed.settings, next.parsed.settings)
	c := &Config{File: old.File, Home: old.Home, FileSearch: old.FileSearch, parsed: parsedSettings{merged, old.parsed.sections, next.parsed.agentProblems}}
	if err := c.setFields(); err != nil {
		return nil, changes, err
	}
	return c, changes, nil
}

// CheckServe returns what keeps "parley serve" from starting although other commands can work:
// channels that receive messages while no model answers them, and mistakes in variables that only a
// server needs. It returns an *Error, or nil if serve can start.
func (c *Config) CheckServe() error {
	return schema.ErrorOf(slices.Concat(c.parsed.settings.InVariables(), c.parsed.agentProblems))
}

// CheckGateway is like CheckServe for a process that only connects channels, while other processes answer: it requires
// no model.
func (c *Config) CheckGateway() error { return schema.ErrorOf(c.parsed.settings.InVariables()) }

// Notices returns what the operator should know, one line each: settings without effect yet, keys
// that will be removed, an unused key.
func (c *Config) Notices() []string { return c.parsed.settings.Notices() }

// A SettingError says which setting keeps the server from starting although the configuration
// itself is valid, and what to do.
type SettingError struct {
	Where  string // file:line, or in words where else the value comes from; may be empty
	Key    string
	Remedy string
}

// Error returns where the setting is, its name and what to do.
func (e *SettingError) Error() string {
	if e.Where == "" {
		return e.Key + ": " + e.Remedy
	}
	return e.Where + ": " + e.Key + ": " + e.Remedy
}

// Folders lists the folders that contain sessions' directories, the one for all agents first.
func (c *Config) Folders() []Folder {
	all := []Folder{{Key: "workspace.root", Dir: c.Workspace.Root}}
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		if dir := c.Agents[name].Workspace; dir != "" {
			all = append(all, Folder{Agent: name, Key: "agents." + name + ".workspace", Dir: dir})
		}
	}
	return all
}

// ChannelsByName lists the channels, sorted by name.
func (c *Config) ChannelsByName() []Channel {
	var list []Channel
	for _, name := range slices.Sorted(maps.Keys(c.Channels)) {
		list = append(list, c.Channels[name])
	}
	return list
}

// RunsCommands reports whether any agent has a capability for running commands.
func (c *Config) RunsCommands() bool {
	for _, a := range c.Agents {
		if slices.Contains(a.Capabilities, tools.Shell) || slices.Contains(a.Capabilities, tools.Git) {
			return true
		}
	}
	return false
}

// Settings lists every setting that has a value, in the order of the sections in the documentation,
// with secrets hidden.
func (c *Config) Settings() []schema.Shown { return c.parsed.settings.Show() }

// Origin returns where a setting's value comes from: file and line, or a variable; "" for a
// default.
func (c *Config) Origin(key string) string {
	if c.parsed.settings == nil {
		return ""
	}
	return c.parsed.settings.Origin(key)
}

// Print writes every effective setting as lines of TOML, each with a comment that says where it
// came from. Secrets are shown as ***.
func (c *Config) Print(w io.Writer) error {
	return c.parsed.settings.Print(w, "file: "+cmp.Or(c.File, "none"), "home: "+c.Home)
}

// MarshalJSON returns the settings that Print prints, and the notices, as JSON.
func (c *Config) MarshalJSON() ([]byte, error) {
	return plainjson.Marshal(struct {
		File     string         `json:"file"`
		Home     string         `json:"home"`
		Settings []schema.Shown `json:"settings"`
		Notices  []string       `json:"notices,omitempty"`
	}{c.File, c.Home, c.Settings(), c.Notices()})
}

// Secrets returns all texts that no output may show, so that they can be removed wherever they
// occur: values that are declared as secrets, the content of secret files and variables, and
// passwords in URLs.
func (c *Config) Secrets() []string { return c.parsed.settings.Secrets() }
