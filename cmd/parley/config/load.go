package config

import "parley/cmd/parley/config/schema"

// These are the parts of package schema that other packages need.
type (
	// A Secret is a text that no output shows; string(s) returns it.
	Secret = schema.Secret
	// An Error lists every problem that was found, in the order of the file.
	Error = schema.Error
	// Changes lists the settings in which two configurations differ, without their values.
	Changes = schema.Changes
)

// Options says where to look for settings, and what to check them against.
type Options struct {
	File string // from --config; "" means the usual places
	Home string // from --home; "" means $PARLEY_HOME or ~/.parley
	// LookLocal also reads ./parley.toml. Only commands that the operator runs on purpose do that:
	// a chat in a stranger's checkout must not obey its file.
	LookLocal bool
	// WithoutSecrets is for commands that use no key and no token: a secret that cannot be read
	// doesn't stop them. Its value must not be used.
	WithoutSecrets bool
	// Platforms are the platforms that a channel can be on.
	Platforms []Platform
	// CheckTemplate returns what is wrong with a webhook's message template; if it is nil,
	// templates are not checked.
	CheckTemplate func(text string) error
	// CheckRule returns the tool that a rule about tool calls names, if there is no such tool,
	// otherwise "". It returns an error if the rule cannot be parsed. If CheckRule is nil, rules
	// are not checked.
	CheckRule func(rule string) (unknown string, err error)
	// CheckRate does for a rate of tool calls what CheckRule does for a rule.
	CheckRate func(rate string) (unknown string, err error)
	Tools     func() []string // the names of the tools that a rule may name
	// CheckHook returns why a program that is to be asked about tool calls cannot be run; if it is
	// nil, programs are not checked.
	CheckHook func(command string) error
	// Env looks up an environment variable; nil means os.LookupEnv.
	Env func(name string) (string, bool)
}

// A section is a section of the file, with the checks that the declarations of its settings cannot
// express.
type section struct {
	schema.Section
	// prepare, if not nil, changes the values after the file and the environment were read, before
	// defaults are filled in.
	prepare func(*loader)
	// check, if not nil, reports settings that are valid by themselves but not together. It is
	// called once all values are known.
	check func(*loader)
}

// A loader holds the settings while Load reads and checks them.
type loader struct {
	*schema.Values
	opts Options
	home string // absolute path of the home
	// agentProblems contains the problems that stop a server only if it runs agents.
	agentProblems []schema.Problem
}

// reportForAgents records a problem that stops a server only if it runs agents.
func (l *loader) reportForAgents(at schema.Origin, key, wrong, remedy string) {
	l.agentProblems = append(l.agentProblems, at.Problem(key, &schema.Fault{Wrong: wrong, Remedy: remedy}))
}

// These are the Reload values of settings that name channels or agents: a change takes effect at once, unless the
// file adds or removes a channel or an agent; see schema.Reloading.
const (
	withChannels schema.Reloading = "channels"
	withAgents   schema.Reloading = "agents"
)
