package config

import "parley/cmd/parley/config/schema"

// What others need of the package that reads the settings.
type (
	// A Secret is a text that no output shows; string(s) returns it.
	Secret = schema.Secret
	// An Error has every problem that was found, in the order of the file.
	Error = schema.Error
	// Changes lists the settings in which two configurations differ, without their values.
	Changes = schema.Changes
)

// Options says where to look for settings, and what to check them against.
type Options struct {
	File string // from --config; "" means the usual places
	Home string // from --home; "" means $PARLEY_HOME or ~/.parley
	// LookLocal reads ./parley.toml too. Only commands that the operator runs on purpose
	// do that: a chat in a stranger's checkout must not obey its file.
	LookLocal bool
	// WithoutSecrets is for commands that use no key and no token: a secret that cannot
	// be read does not stop them. Its value is of no use then.
	WithoutSecrets bool
	// Platforms are the platforms that a channel can be on.
	Platforms []Platform
	// CheckTemplate returns what is wrong with the template by which a webhook makes its message;
	// if it is nil, templates are not checked.
	CheckTemplate func(text string) error
	// CheckRule returns the tool that a rule about tool calls names, if there is no such tool
	// among those that Tools returns, otherwise "". Its error says that the rule cannot be read. If
	// CheckRule is nil, rules are not checked.
	CheckRule func(rule string) (unknown string, err error)
	Tools     func() []string
	// CheckHook returns why a program that is to be asked about tool calls cannot be run; if it
	// is nil, programs are not checked.
	CheckHook func(command string) error
	// Env looks up an environment variable; nil is os.LookupEnv.
	Env func(name string) (string, bool)
}

// A section is a part of the file, with what the declarations of its settings cannot say.
type section struct {
	schema.Section
	// prepare, if not nil, changes the values once the file and the environment are read, before
	// defaults are filled in.
	prepare func(*loader)
	// check, if not nil, reports settings that are right one by one but do not fit together. It is
	// called once all values are known.
	check func(*loader)
}

// A loader has the settings while Load reads and checks them.
type loader struct {
	*schema.Values
	opts Options
	home string // absolute
	// answering has the problems that stop a server only if it runs agents.
	answering []schema.Problem
}

// reportAnswering records a problem that stops a server only if it runs agents.
func (l *loader) reportAnswering(at schema.Origin, key, wrong, remedy string) {
	l.answering = append(l.answering, at.Problem(key, &schema.Fault{Wrong: wrong, Remedy: remedy}))
}

// When a changed setting that names channels or agents takes effect.
const (
	withChannels schema.Reloading = "channels"
	withAgents   schema.Reloading = "agents"
)
