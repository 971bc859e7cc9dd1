package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"parley/cmd/parley/config"
	"parley/cmd/parley/onboard"
	"parley/cmd/parley/server"
	"parley/cmd/parley/server/platforms"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/tools/documents"
	"parley/tools/sandbox"
)

// cli is the command line: the flags that every command accepts, and the commands.
type cli struct {
	globalFlags

	Chat        chatCmd        `cmd:"" help:"Talk to the agent in this terminal."`
	Serve       serveCmd       `cmd:"" help:"Serve the configured channels."`
	Node        nodeCmd        `cmd:"" help:"Run calls for the agents of a server on this device."`
	Send        sendCmd        `cmd:"" help:"Send a message to people, without AI."`
	Status      statusCmd      `cmd:"" help:"Show how the server is doing, and what it's working on."`
	Why         whyCmd         `cmd:"" help:"Show what became of a message, step by step."`
	Logs        logsCmd        `cmd:"" help:"Show the audit log: turns, tool calls, refusals, admissions, erasures."`
	Audit       auditCmd       `cmd:"" help:"Check the archive of the audit log."`
	Metrics     metricsCmd     `cmd:"" help:"Print the metrics in Prometheus format."`
	Usage       usageCmd       `cmd:"" help:"Show how many tokens models have used, and what they cost."`
	Sessions    sessionsCmd    `cmd:"" help:"Show conversations."`
	Recall      recallCmd      `cmd:"" help:"Search what was said in conversations."`
	DeadLetters deadLettersCmd `cmd:"" name:"dead-letters" help:"List the messages that Parley gave up on."`
	Forget      forgetCmd      `cmd:"" help:"Erase what a person said, or a conversation, everywhere."`
	Backup      backupCmd      `cmd:"" help:"Back up everything into one file, even while the bot is serving."`
	Restore     restoreCmd     `cmd:"" help:"Restore a home from a backup."`
	Migrate     migrateCmd     `cmd:"" help:"Move the bot from this home to Redis and PostgreSQL."`
	Pairing     pairingCmd     `cmd:"" help:"Manage who may talk to the bot."`
	Approvals   approvalsCmd   `cmd:"" help:"List and answer the requests that turns are waiting on."`
	Schedule    scheduleCmd    `cmd:"" help:"List and manage the agent's schedules."`
	MCP         mcpCmd         `cmd:"" name:"mcp" help:"Manage the MCP servers whose tools agents use."`
	Nodes       nodesCmd       `cmd:"" help:"Manage the devices that run calls for agents."`
	Skills      skillsCmd      `cmd:"" help:"List the agents' skills."`
	UI          uiCmd          `cmd:"" name:"ui" help:"Open the web page in a browser, and manage sign-ins."`
	Chats       chatsCmd       `cmd:"" help:"List the chats where people have talked to the bot."`
	Onboard     onboardCmd     `cmd:"" help:"Set up Parley: a model, a channel, and the first answer."`
	Doctor      doctorCmd      `cmd:"" help:"Check whether everything is in order, and say what to change."`
	ConfigCheck configGroup    `cmd:"" name:"config" help:"Check the configuration."`
	Version     versionCmd     `cmd:"" help:"Print the version."`
	Completion  completionCmd  `cmd:"" help:"Print a script that completes commands in a shell."`
	HelpCmd     helpCmd        `cmd:"" name:"help" help:"Explain how to use a command."`

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
	if len(args) == 0 {
		fmt.Fprint(tty.Err, textFirst)
		return exitUsage
	}
	var c cli
	exited := -1
	parser, err := newParser(&c, tty, kong.Exit(func(code int) { exited = code }), kong.Bind(tty))
	if err != nil {
		fmt.Fprintln(tty.Err, "parley:", err)
		return exitFailed
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 { // --help or --version was printed
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
	parsed.Bind(&c.globalFlags, c.sanitizedTerminal(parsed.Command(), tty), onboardProgram(&c.globalFlags, tty))
	return exitCode(parsed.Run(), tty)
}

// newParser returns the parser of the command line.
func newParser(c *cli, tty terminal.Terminal, more ...kong.Option) (*kong.Kong, error) {
	return kong.New(c, append([]kong.Option{
		kong.Name("parley"),
		kong.Description("An AI agent in Slack, Discord and Telegram that loses nothing and does nothing twice."),
		kong.Writers(tty.Out, tty.Err),
		kong.Vars{"platforms": strings.Join(platforms.Names(), ", ")},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	}, more...)...)
}

// sanitizedTerminal returns the terminal for a command, which removes control characters from the
// output. It leaves output for programs unchanged, and output that a command draws itself.
func (c *cli) sanitizedTerminal(command string, tty terminal.Terminal) terminal.Terminal {
	name, _, _ := strings.Cut(command, " ")
	switch {
	case name == "chat", name == "serve", command == "node run", name == "onboard": // text from others is sanitized where it is drawn or logged
		return tty
	case c.JSON, name == "backup" && c.Backup.File == "-":
		return terminal.Terminal{In: tty.In, Out: tty.Out, Err: &terminal.Screen{To: tty.Err}}
	}
	shows := strings.HasPrefix(command, "dead-letters show")
	return terminal.Terminal{In: tty.In, Out: &terminal.Screen{To: tty.Out, JSON: shows}, Err: &terminal.Screen{To: tty.Err}}
}

type onboardCmd = onboard.Command

// onboardProgram returns the functions that the command onboard calls: to find the settings file, to
// read settings before it writes them and, once they are written, to ask the agent a question and to
// run the server.
func onboardProgram(c *globalFlags, tty terminal.Terminal) onboard.Program {
	written := func(file string) *globalFlags {
		flags := *c
		flags.Config = file
		return &flags
	}
	load := func(file string) (*config.Config, error) {
		cfg, err := loadConfig(config.Options{File: file, Home: c.Home})
		if err != nil {
			return nil, err
		}
		return cfg, server.Both.Check(cfg)
	}
	return onboard.Program{
		File: func() (string, error) { return config.Place(config.Options{File: c.Config, Home: c.Home}) },
		Load: load,
		Ask: func(ctx context.Context, file, question string) error {
			return chatCmd{Message: question}.Run(ctx, written(file), tty)
		},
		Serve: func(ctx context.Context, file, channel string, answered func()) error {
			cfg, err := load(file)
			if err != nil {
				return err
			}
			watching, stop := context.WithCancel(ctx)
			defer stop()
			go func() {
				if client.Dial(cfg.Home).AwaitAnswer(watching, channel) == nil {
					answered()
				}
			}()
			return serveCmd{Role: "gateway,worker"}.Run(ctx, written(file), tty)
		},
	}
}
