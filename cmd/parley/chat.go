package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"parley/bus"
	"parley/channels"
	"parley/channels/console"
	"parley/channels/console/past"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/onboard"
	"parley/cmd/parley/server"
	"parley/cmd/parley/server/models"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/sessions"
	"parley/tools/plainjson"
	"parley/tools/sandbox"
	"parley/tools/spelling"
)

type chatCmd struct {
	Message   string `short:"m" help:"Say this, and print only the answer." placeholder:"TEXT"`
	Agent     string `help:"The agent to talk to (main if left out)." placeholder:"NAME"`
	Session   string `help:"The conversation's name. If omitted, the first of default, default-2, … that no other terminal is using." placeholder:"NAME"`
	Workspace string `help:"Work in this directory instead of the conversation's own." placeholder:"DIR"`
}

// Help shows examples.
func (chatCmd) Help() string {
	return examples("parley chat", `parley chat -m "what is in notes.txt?"`, `parley chat --workspace . -m "list the files"`, `parley chat --agent ops`)
}

// Run lets the person talk to the agent in this terminal; with -m, it asks once and prints only the answer.
func (c chatCmd) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	cfg, err := flags.load(tty, config.Options{})
	if err != nil {
		return err
	}
	if c.Workspace != "" {
		if info, err := os.Stat(c.Workspace); err != nil || !info.IsDir() {
			return &usageError{fmt.Sprintf("--workspace %s isn't a directory", c.Workspace)}
		}
	}
	if flags.JSON && c.Message == "" && term.IsTerminal(int(tty.In.Fd())) {
		return &usageError{"--json prints one answer: ask with -m, or on standard input"}
	}
	agent, name, err := conversationName(c.Agent, c.Session)
	if err != nil {
		return err
	}
	other := "" // the agent, unless it is the main one
	if agent != config.MainAgent {
		other = agent
	}
	chat, unlock, err := terminal.LockConversation(cfg.Home, other, name, tty.Err)
	if err != nil {
		return err
	}
	defer unlock()
	key, err := sessionKey(agent, chat)
	if err != nil {
		return err
	}
	log := errorLogger(tty.Err)
	answerers, err := models.New(ctx, cfg, log)
	if err != nil {
		return err
	}
	cfg.Serve.Drain = min(cfg.Serve.Drain, leavingDrain)
	joined, leave, err := client.Join(ctx, server.Config{
		Settings: cfg, Models: answerers, Role: server.Terminal, Override: home.WorkspaceOverride{Dir: c.Workspace, Session: key},
		Commands: true, Build: thisBuild(), Log: log,
	})
	if err != nil {
		return err
	}
	if joined.Hosted {
		noteRootOnly(c.Workspace, tty.Err)
		noteUnusedKey(cfg, tty.Err)
	}
	r := client.NewConversation(joined, key, chat)
	r.Agent = other
	if err = checkAgent(cfg, joined, agent); err == nil {
		own := &chatCommands{cfg: cfg, models: answerers, server: joined, current: r, bound: c.Workspace != ""}
		err = c.talkOn(ctx, own, flags.JSON, tty, log)
	}
	if left := leave(); err == nil {
		err = left
	}
	return err
}

// noteRootOnly tells the person if no commands can run in the --workspace directory because only root has access there.
func noteRootOnly(dir string, out io.Writer) {
	if dir != "" && errors.Is(sandbox.CheckPersonal(dir), sandbox.ErrRootsOwn) {
		fmt.Fprintf(out, "parley: no commands can run in %s: they never run as root, and only root has access there. Run parley as an ordinary user, or give the directory to one\n", dir)
	}
}

// noteUnusedKey tells the person if the demo answers although the environment contains a provider's key.
func noteUnusedKey(cfg *config.Config, out io.Writer) {
	if note := onboard.UnusedKey(os.LookupEnv); note != "" && !cfg.AnyModel() {
		fmt.Fprintf(out, "parley: %s Until then the built-in demo answers.\n", note)
	}
}

// checkAgent returns a usageError if this process answers, and has no agent with that name.
func checkAgent(cfg *config.Config, server *client.Client, agent string) error {
	if _, ok := cfg.Agents[agent]; ok || !server.Hosted {
		return nil
	}
	names := slices.Sorted(maps.Keys(cfg.Agents))
	if near := spelling.Nearest(agent, names); near != "" {
		return &usageError{fmt.Sprintf(textNoAgent, agent, near)}
	}
	return &usageError{fmt.Sprintf("there's no agent %q: the agents are %s (%s)", agent, strings.Join(names, ", "), home.DescribeConfig(cfg))}
}

// leavingDrain is how long an answer may continue after the person has left the terminal, if this process is
// working on it. An unfinished answer is then put aside, and continues at the next start.
const leavingDrain = 500 * time.Millisecond

// talkOn runs the conversation, and each further one that the person switches to from there.
func (c chatCmd) talkOn(ctx context.Context, own *chatCommands, asJSON bool, tty terminal.Terminal, log *slog.Logger) error {
	unlock := func() {}
	defer func() { unlock() }()
	for {
		if err := c.talk(ctx, own, asJSON, tty, log); err != nil || own.next == nil {
			return err
		}
		to := *own.next
		own.next, own.listed = nil, nil
		key, err := sessionKey(to.agent, to.chat)
		if err != nil {
			return err
		}
		r := client.NewConversation(own.server, key, to.chat)
		if to.agent != config.MainAgent {
			r.Agent = to.agent
		}
		unlock()
		if _, unlock, err = terminal.LockConversation(own.cfg.Home, r.Agent, to.chat, tty.Err); err != nil {
			unlock = func() {}
			return err
		}
		own.current = r
	}
}

// talk runs the conversation. The terminal is a channel like Slack's, and the home's server takes the place of the
// platform.
func (c chatCmd) talk(ctx context.Context, own *chatCommands, asJSON bool, tty terminal.Terminal, log *slog.Logger) error {
	r := own.current
	typed := c.Message == "" && term.IsTerminal(int(tty.In.Fd()))
	cfg := console.Config{
		Chat: r.Name, Session: r.Session, Once: c.Message, JSON: asJSON, In: tty.In, Out: tty.Out, ErrOut: tty.Err,
		Events: r, RefusalOf: unknownCommand, Log: log,
	}
	if typed {
		cfg.Banner, cfg.Leaving = banner(r.Agent, r.Name, own.answering()), leavingNote(r.Server)
		cfg.Commands, cfg.RunTerminalCommand = terminalCommands(), own.carryOut
		cfg.Hint = "/help lists commands and keys"
		for _, earlier := range r.Earlier(ctx) {
			cfg.EarlierLines = append(cfg.EarlierLines, earlier.Said)
			if cfg.EarlierExchanges = append(cfg.EarlierExchanges, past.Exchange{Said: earlier.Said, Answer: earlier.Answer}); earlier.Over {
				cfg.EarlierExchanges = nil
			}
		}
	}
	ch, err := console.New(cfg)
	if err != nil {
		return err
	}
	r.Deliver = func(ctx context.Context, part channels.Part) error {
		_, err := ch.Send(ctx, bus.Address{Channel: console.Name, Chat: r.Name}, part)
		return err
	}
	err = ch.Receive(ctx, r.Say)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if asJSON && errors.Is(err, console.ErrFailed) {
		_ = plainjson.NewEncoder(tty.Out).Encode(map[string]any{ // the exit code says the same
			"session": r.Session, "error": bus.Failure{Code: "no_answer", Message: err.Error()},
		})
	}
	return err
}

// banner returns the line above a conversation: the agent, conversation and model, and how to leave. For the main
// agent, agent is "", and the line doesn't name it.
func banner(agent, chat, model string) string {
	parts := []string{"Parley", "conversation " + chat}
	if agent != "" {
		parts = slices.Insert(parts, 1, "agent "+agent)
	}
	if model != "" {
		parts = append(parts, "model "+model)
	}
	return strings.Join(append(parts, "/help lists commands, Ctrl-D exits"), " · ")
}

// leavingNote returns a text about what happens to an unfinished answer when the person leaves the terminal.
func leavingNote(server *client.Client) string {
	if server.Hosted {
		return "the answer is paused; it continues the next time parley chat or parley serve runs"
	}
	return "the answer continues in the background; parley sessions shows it"
}

// terminalCommands returns the commands that a terminal offers: all except those about people's own data, which don't
// work in terminals.
func terminalCommands() []string {
	return slices.DeleteFunc(channels.Commands(), func(name string) bool { return channels.IsOwnData(bus.Inbound{Kind: bus.Command, Text: name}) })
}

// unknownCommand returns what is wrong with a command that doesn't exist; "" for any other text.
func unknownCommand(text string) string {
	name := channels.UnknownCommand(text)
	known := append(channels.Commands(), "start", "clear", "quit", "exit")
	if name == "" || slices.Contains(known, name) {
		return ""
	}
	wrong := "there's no command /" + name
	if near := spelling.Nearest(name, known); near != "" {
		return wrong + "; did you mean /" + near + "?"
	}
	return wrong + "; /help lists the commands"
}

// conversationName splits a session, which the person has given by name or key, into the agent and the name of the
// chat. The chat is "" if no session is given.
func conversationName(agent, session string) (who, chat string, err error) {
	chat = session
	if keyed, rest, ok := strings.Cut(session, ":"+console.Name+":"); ok && (agent == "" || agent == keyed) {
		agent, chat = keyed, rest
	}
	agent = cmp.Or(agent, config.MainAgent)
	if strings.Contains(chat, ":") {
		return "", "", &usageError{fmt.Sprintf("--session %s: a terminal can only join its own conversations: give a name, or %s:%s:NAME", session, agent, console.Name)}
	}
	if chat == "" {
		return agent, "", nil
	}
	_, err = sessionKey(agent, chat)
	return agent, chat, err
}

// sessionKey returns the key of a terminal's conversation with an agent.
func sessionKey(agent, chat string) (string, error) {
	key, err := sessions.Key(agent, console.Name, chat, "")
	if err != nil {
		return "", &usageError{err.Error()}
	}
	return key, nil
}
