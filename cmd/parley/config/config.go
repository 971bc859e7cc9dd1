// Package config reads and checks the operator's settings, from file and environment.
//
// One table, in declarations.go, declares every setting once: its type, default, bounds
// and example, since when it has an effect, and when a reload takes it. Load reads the
// file against it, lets the environment fill the gaps, and reports everything that is
// wrong at once, each with its place and a remedy. What it returns is resolved: no other
// code looks at the file, the environment or a default. Each value remembers where it
// came from.
//
// The files: config.go has the types of the settings; declarations.go and the files of
// single sections (agents.go, channels.go, http.go, models.go, routes.go, tools.go)
// declare which settings there are. Load (load.go) reads the file, takes each key (take.go), decodes
// its value (decode.go), replaces references and fills the gaps from the environment
// (env.go), checks the whole and describes mistakes (check.go), and builds the Config
// (build.go), also one of two whose files were read one after the other. show.go prints the
// settings in force and knows which values no output may show.
package config

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"parley/bus"
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

// A Config is everything that is set, complete with defaults.
type Config struct {
	File       string     // absolute; "" when there is none
	FileSearch FileSearch // where the file was looked for
	Home       string     // absolute
	Serve      Serve
	Log        Log
	Limits     Limits
	Approvals  Approvals
	Tell       Tell
	Model      Model
	Schedule   Schedule
	Heartbeat  Heartbeat
	Budget     Budget
	Models     map[string]Model // by name; further models, which agents name or which are asked when Model does not answer
	Agents     map[string]Agent // by name; "main" is always there
	Channels   map[string]Channel
	Targets    map[string][]bus.Address
	Tools      Tools
	Web        Web
	// Transcribe is the service that writes down voice messages.
	Transcribe Transcribe
	Sandbox    Sandbox
	Jobs       Jobs
	Audit      Audit
	MCP        map[string]MCPServer // by name
	Skills     Skills
	HTTPAccess
	Keeping

	kept *parsedSettings
}

// A Secret is a text that no output shows; string(s) returns it.
type Secret string

// hidden is what is shown in the place of a secret.
const hidden = "***"

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString hides the secret.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// MarshalText hides the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue hides the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Workspace says where sessions keep their files, and how much.
type Workspace struct {
	Root  string // absolute
	MaxMB int    // of one session
	// UndoTurns is how many turns of a session can be undone; 0 means none.
	UndoTurns int
}

// A Folder holds the directories of sessions.
type Folder struct {
	Agent string // whose sessions; "" means those of all agents that have no folder of their own
	Key   string // of the setting
	Dir   string // absolute
}

// Folders lists the folders that hold the directories of sessions, that of all agents first.
func (c *Config) Folders() []Folder {
	all := []Folder{{Key: "workspace.root", Dir: c.Workspace.Root}}
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		if dir := c.Agents[name].Workspace; dir != "" {
			all = append(all, Folder{Agent: name, Key: "agents." + name + ".workspace", Dir: dir})
		}
	}
	return all
}

// Keeping says where data is kept, and for how long.
type Keeping struct {
	Workspace Workspace
	Bus       Bus
	Store     Store
	Retention Retention
	Knowledge Knowledge
}

// Bus says where messages wait: in Redis at a URL, or in the home if there is none.
type Bus struct {
	URL    Secret // it may hold a password
	Prefix string
}

// Store says where the logs of sessions are: in a database at a URL, or in the home if there is
// none.
type Store struct {
	URL Secret // it may hold a password
}

// Retention says how long what was said is kept.
type Retention struct {
	Days int // 0 means for ever
}

// Knowledge is a folder of the operator's documents that all agents can read.
type Knowledge struct {
	Dir string // "" means none
}

// Serve says how the server runs.
type Serve struct {
	Drain       time.Duration // how long a shutdown waits for turns that run
	MaxInFlight int           // how many turns run at once in this process
}

// Log says how the program logs.
type Log struct {
	Level  slog.Level
	Format string // "text", "json", or "": text on a terminal, else JSON
}

// Limits bounds how much people may ask of the bot, and how long queues may be.
type Limits struct {
	UserTurns     int   // turns at once, of one person who is not an owner
	UserTurnsHour int   // turns within an hour
	UserTokensDay int64 // tokens within a day
	// TokensWritten says that the operator has set UserTokensDay.
	TokensWritten bool
	Waiting       int // messages in one session, those being answered included
	Outbound      int // messages for one address
}

// Approvals says how people are asked whether a tool call may run.
type Approvals struct {
	Expires time.Duration // after which nobody needs to answer any more
	To      []string      // who is asked: targets and addresses, as written; if there are none, the conversation itself
}

// Tell says how owners are told of things that need their attention.
type Tell struct {
	To    []string      // targets and addresses, as written; if there are none, the chats in which the owners talk to the bot alone
	After time.Duration // how long a channel is down before they are told
}

// A Channel is one account on one platform.
type Channel struct {
	Name     string
	Platform string // one of Options.Platforms
	Mode     string // "chat", or "send": it receives nothing
	BotToken Secret
	AppToken Secret // Slack's
	// Receive is how the channel receives what people say: "socket", "poll" or "http"; ""
	// means the platform's usual way.
	Receive       string
	SigningSecret Secret // of Slack's requests
	PublicURL     string // where the platform reaches the server; no trailing slash
	APIURL        string // "" is the platform's own; no trailing slash
	Access        Access
	RateLimit     string // whether the platform's rate limits are kept: "platform" or "none"
	OnUnknown     string // what is done if nobody can say whether a message was sent: "resend" or "drop"
	Stream        string // how answers are shown while they are made: "auto", "edit" or "off"
	FilesMB       int    // the largest file in MB, received or sent
	Agent         string // the agent that answers if no route matches
	Routes        []AgentRoute
	History       int    // how many messages of a thread are read that were said before the bot is called into it; 0 is none
	Reactions     string // which reactions the agent is told of: ReactionsThumbs or ReactionsAll
	Introduce     string // who is told what the bot is: IntroduceOnce or IntroduceNever
	About         string // what is added to the introduction
	Session       string // what has a conversation of its own: SessionThread, SessionChannel or SessionUser
}

// DefaultFilesMB is how large a file may be, in MB, if the operator has not set a size.
const DefaultFilesMB = 20

// DefaultHistory is how many messages of a thread, said before the bot was called into it, are
// read if the operator has not set a number.
const DefaultHistory = 20

// The values of Channel.Reactions: which reactions to its answers an agent is told of.
const (
	ReactionsThumbs = "thumbs" // 👍 and 👎, which are kept as ratings
	ReactionsAll    = "all"
)

// The values of Channel.Introduce: who is told what the bot is.
const (
	IntroduceOnce  = "once" // each person, at the first contact
	IntroduceNever = "never"
)

// The values of Channel.Session: what has a conversation of its own.
const (
	SessionThread  = "thread"  // each thread, and a chat outside of its threads
	SessionChannel = "channel" // each chat with all its threads
	SessionUser    = "user"    // in groups each person, in each thread
)

// ByHTTP reports whether the platform sends what people say as HTTP requests to this server.
func (c Channel) ByHTTP() bool { return c.Receive == byHTTP }

// ChannelsByName lists the channels in the order of their names.
func (c *Config) ChannelsByName() []Channel {
	var list []Channel
	for _, name := range slices.Sorted(maps.Keys(c.Channels)) {
		list = append(list, c.Channels[name])
	}
	return list
}

// Access says who may talk to the bot on a channel. It names people by the platform's ids,
// without the channel's name.
type Access struct {
	Policy    string // "pairing", "list", "members" or "open"
	AllowFrom []string
	Owners    []string
	Approvers []string // people who may approve what conversations on the channel ask for
	Chats     []Chat   // the groups in which the bot listens; nil is all
	Mention   string   // when it listens there: "always", "threads" or "never"
}

// A Chat is a group in which the bot listens.
type Chat struct {
	Chat    string // the platform's id
	Mention string // "" means the channel's setting
}

// Load finds the home and the configuration file, reads the file, fills what it
// leaves out from the environment and from defaults, and checks the whole. Its
// error is an *Error with every problem that was found.
func Load(o Options) (*Config, error) {
	return load(o, declarations(o.Platforms), retired())
}
