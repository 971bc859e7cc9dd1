package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"parley/cmd/parley/client"
	"parley/cmd/parley/config"
	_ "parley/cmd/parley/garbage" // collects none while the program starts
	"parley/cmd/parley/home"
	"parley/cmd/parley/onboard"
	"parley/cmd/parley/platforms"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/tools/documents"
	"parley/tools/sandbox"
)

// The exit codes of the program. Scripts rely on them, so they stay as they are.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitUnknown = 3
	exitQueued  = 4
	exitConfig  = 78
)

// cli is the command line: its fields are the global flags and the commands.
type cli struct {
	Config string `help:"Configuration file." placeholder:"FILE"`
	Home   string `help:"Where Parley keeps what it must remember." placeholder:"DIR"`
	JSON   bool   `help:"Results as JSON." name:"json"`

	Chat        chatCmd        `cmd:"" help:"Talk to the agent in this terminal."`
	Serve       serveCmd       `cmd:"" help:"Serve the configured channels."`
	Send        sendCmd        `cmd:"" help:"Say something to people, without AI."`
	Status      statusCmd      `cmd:"" help:"How the server and its mail stand."`
	Logs        logsCmd        `cmd:"" help:"What was done: calls of tools, admissions, exports, erasures."`
	Metrics     metricsCmd     `cmd:"" help:"What is counted, as Prometheus reads it."`
	Usage       usageCmd       `cmd:"" help:"What models have used and cost."`
	Sessions    sessionsCmd    `cmd:"" help:"What was said."`
	DeadLetters deadLettersCmd `cmd:"" name:"dead-letters" help:"Messages that were given up."`
	Forget      forgetCmd      `cmd:"" help:"Erase what a person said, or a conversation, everywhere."`
	Backup      backupCmd      `cmd:"" help:"Write everything that is remembered into one file, also while it serves."`
	Restore     restoreCmd     `cmd:"" help:"Make a home of a backup."`
	Migrate     migrateCmd     `cmd:"" help:"Take the bot from this home to Redis and PostgreSQL."`
	Pairing     pairingCmd     `cmd:"" help:"Who may talk to the bot."`
	Approvals   approvalsCmd   `cmd:"" help:"What turns wait for, and the answers."`
	Schedule    scheduleCmd    `cmd:"" help:"What the agent is to do later."`
	MCP         mcpCmd         `cmd:"" name:"mcp" help:"The servers whose tools agents use."`
	Skills      skillsCmd      `cmd:"" help:"The skills that agents have."`
	Chats       chatsCmd       `cmd:"" help:"Where the bot has been spoken to."`
	Onboard     onboardCmd     `cmd:"" help:"Set it up: a model, a channel, and the first answer."`
	Doctor      doctorCmd      `cmd:"" help:"Check whether everything is in order, and say what to change."`
	ConfigCheck configGroup    `cmd:"" name:"config" help:"The configuration."`
	Version     versionCmd     `cmd:"" help:"Print the version."`
	Completion  completionCmd  `cmd:"" help:"Print a script that completes commands in a shell."`
	HelpCmd     helpCmd        `cmd:"" name:"help" help:"Say how a command is called."`

	ShowVersion versionFlag `name:"version" help:"Print the version."`
}

func main() {
	if code, asked := sandbox.Main(os.Args); asked {
		os.Exit(code)
	}
	if code, asked := documents.Main(os.Args); asked {
		os.Exit(code)
	}
	os.Exit(run(os.Args[1:], terminal.Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// run runs one command and returns the exit code.
func run(args []string, tty terminal.Terminal) int {
	var c cli
	exited := -1
	parser, err := newParser(&c, tty, kong.Exit(func(code int) { exited = code }), kong.Bind(tty))
	if err != nil {
		fmt.Fprintln(tty.Err, "parley:", err)
		return exitFailed
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 { // --help or --version has been printed
		return exited
	}
	if err != nil {
		fmt.Fprintf(tty.Err, "parley: %v\nTry: parley --help\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	parsed.BindTo(ctx, (*context.Context)(nil))
	parsed.Bind(&c, c.sanitizedTerminal(parsed.Command(), tty), c.onboardProgram(tty))
	return exitCode(parsed.Run(), tty)
}

// newParser makes the parser of the command line.
func newParser(c *cli, tty terminal.Terminal, more ...kong.Option) (*kong.Kong, error) {
	return kong.New(c, append([]kong.Option{
		kong.Name("parley"),
		kong.Description("An AI agent in Slack, Discord and Telegram that loses nothing and does nothing twice."),
		kong.Writers(tty.Out, tty.Err),
		kong.Vars{"platforms": strings.Join(platforms.Names(), ", ")},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	}, more...)...)
}

// sanitizedTerminal returns the terminal for a command, which removes control characters
// from the output. Output for programs stays as it is, and so does what a command draws
// itself.
func (c *cli) sanitizedTerminal(command string, tty terminal.Terminal) terminal.Terminal {
	name, _, _ := strings.Cut(command, " ")
	switch {
	case name == "chat", name == "serve", name == "onboard": // what others say is cleaned where it is drawn or logged
		return tty
	case c.JSON, name == "backup" && c.Backup.File == "-":
		return terminal.Terminal{In: tty.In, Out: tty.Out, Err: &terminal.Screen{To: tty.Err}}
	}
	shows := strings.HasPrefix(command, "dead-letters show")
	return terminal.Terminal{In: tty.In, Out: &terminal.Screen{To: tty.Out, JSON: shows}, Err: &terminal.Screen{To: tty.Err}}
}

// withClient connects to the server of the home for one command, and calls fn with the client. If
// no server runs, this process serves the home meanwhile, in that role.
func withClient(ctx context.Context, flags *cli, tty terminal.Terminal, role server.Role, fn func(context.Context, *client.Client) error) error {
	cfg, err := flags.load(tty, config.Options{WithoutSecrets: role == server.Reader})
	if err != nil {
		return err
	}
	return withClientFor(ctx, cfg, tty, role, fn)
}

// printList prints a list that the server has at a path, under a key of its answer: as JSON if
// that is asked for, and otherwise as the function for people prints it.
func printList[T any](ctx context.Context, c *cli, tty terminal.Terminal, path, key string, forPeople func(io.Writer, []T) error) error {
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		var found map[string][]T
		if err := server.Get(ctx, path, &found); err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(tty.Out).Encode(found[key])
		}
		return forPeople(tty.Out, found[key])
	})
}

// withClientFor is withClient for a configuration that was read already.
func withClientFor(ctx context.Context, cfg *config.Config, tty terminal.Terminal, role server.Role, do func(context.Context, *client.Client) error) error {
	return withClientAs(ctx, server.Config{Settings: cfg, Role: role, Build: thisBuild(), Log: errorLogger(tty.Err)}, do)
}

// withClientAs joins the home for one command, and calls fn with a client of it. If no server runs
// there, the command becomes the server that cfg describes.
func withClientAs(ctx context.Context, cfg server.Config, fn func(context.Context, *client.Client) error) error {
	c, leave, err := client.Join(ctx, cfg)
	if nothing, ok := errors.AsType[*home.NothingError](err); ok {
		return nothing
	}
	if err != nil {
		return fmt.Errorf("reach the home %s: %w", cfg.Settings.Home, err)
	}
	err = fn(ctx, c)
	if left := leave(); err == nil {
		err = left
	}
	return err
}

type onboardCmd = onboard.Command

// onboardProgram returns what the command onboard calls once it has written the configuration
// file: a question to the agent, and the server.
func (c *cli) onboardProgram(tty terminal.Terminal) onboard.Program {
	written := func(file string) *cli {
		flags := *c
		flags.Config = file
		return &flags
	}
	return onboard.Program{
		File: func() (string, error) { return config.Place(config.Options{File: c.Config, Home: c.Home}) },
		Ask: func(ctx context.Context, file, question string) error {
			return chatCmd{Message: question}.Run(ctx, written(file), tty)
		},
		Serve: func(ctx context.Context, file string) error {
			return serveCmd{Role: "gateway,worker"}.Run(ctx, written(file), tty)
		},
	}
}

// exitCode prints the error of a command, if there is one, and returns the exit code.
func exitCode(err error, tty terminal.Terminal) int {
	if err == nil {
		return exitDone
	}
	fmt.Fprintln(&terminal.Screen{To: tty.Err}, "parley:", err)
	if code, ok := outcomeCode(err); ok {
		return code
	}
	var usage *usageError
	var called *onboard.UsageError
	var wrong *config.Error
	var setting *config.SettingError
	switch {
	case errors.As(err, &usage), errors.As(err, &called):
		return exitUsage
	case errors.As(err, &wrong), errors.As(err, &setting):
		return exitConfig
	}
	return exitFailed
}

// A usageError means that a command was called wrongly.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

// confirm asks on a terminal before something is destroyed; without a terminal it needs
// --yes.
func confirm(tty terminal.Terminal, yes bool, question string) error {
	if yes {
		return nil
	}
	if !term.IsTerminal(int(tty.In.Fd())) {
		return &usageError{question + " Say so with --yes."}
	}
	fmt.Fprintf(tty.Err, "%s [y/N] ", question)
	var answer string
	if _, err := fmt.Fscanln(tty.In, &answer); err != nil || !strings.HasPrefix(strings.ToLower(answer), "y") {
		return errors.New("nothing was done")
	}
	return nil
}
