package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"parley/channels"
	"parley/channels/console"
	"parley/cmd/parley/config"
	"parley/sessions"
)

type chatCmd struct {
	Message   string `short:"m" help:"Say this and print the answer alone." placeholder:"TEXT"`
	Session   string `help:"The conversation, by name." default:"default" placeholder:"NAME"`
	Workspace string `help:"Work in this directory and not in the conversation's own." placeholder:"DIR"`
}

// Run talks to the agent in this terminal.
func (c chatCmd) Run(ctx context.Context, flags *cli, tty terminal) error {
	cfg, err := config.Load(config.Options{File: flags.Config, Home: flags.Home})
	if err != nil {
		return err
	}
	if c.Workspace != "" {
		if info, err := os.Stat(c.Workspace); err != nil || !info.IsDir() {
			return &usageError{fmt.Sprintf("--workspace %s is no directory", c.Workspace)}
		}
	}
	log := quiet(tty.err)
	home, err := openHome(ctx, cfg, c.Workspace, log)
	if err != nil {
		return err
	}
	err = c.talk(ctx, cfg, home, tty, log)
	if closed := home.Close(); err == nil {
		err = closed
	}
	return err
}

func (c chatCmd) talk(ctx context.Context, cfg *config.Config, home *home, tty terminal, log *slog.Logger) error {
	model, err := newModel(ctx, cfg)
	if err != nil {
		return err
	}
	chat, err := conversation(c.Session)
	if err != nil {
		return err
	}
	key, err := sessions.Key(mainAgent, console.Name, chat, "")
	if err != nil {
		return &usageError{err.Error()}
	}
	ch, err := console.New(console.Config{
		Chat: chat, Session: key, Once: c.Message, In: tty.in, Out: tty.out, Err: tty.err, Events: home.bus, Log: log,
	})
	if err != nil {
		return err
	}
	s := newServer(home, cfg, model, log)
	if s.channels, err = openLines(cfg, log); err != nil {
		return err
	}
	for _, l := range s.channels {
		l.receive = false // serve receives; a terminal only sends what its person wants sent
	}
	gate := &channels.Gate{}
	gate.Set(channels.Access{Policy: "list", Owners: []string{strings.TrimPrefix(console.Owner, console.Name+":")}})
	s.channels = append(s.channels, &line{
		name: console.Name, channel: ch, gate: gate, receive: true, config: config.Channel{Name: console.Name, Agent: mainAgent},
	})
	if err := s.run(ctx); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// mainAgent is the default agent.
const mainAgent = "main"

// conversation is the chat of a session that is given by its name or its key.
func conversation(session string) (string, error) {
	prefix := mainAgent + ":" + console.Name + ":"
	chat := strings.TrimPrefix(session, prefix)
	if strings.Contains(chat, ":") {
		return "", &usageError{fmt.Sprintf("--session %s: a terminal joins its own conversations only, by their name or as %sNAME", session, prefix)}
	}
	return chat, nil
}
