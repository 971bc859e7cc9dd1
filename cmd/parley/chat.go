package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"parley/bus"
	"parley/channels"
	"parley/channels/console"
	"parley/cmd/parley/config"
	"parley/sessions"
)

type chatCmd struct {
	Message   string `short:"m" help:"Say this and print the answer alone." placeholder:"TEXT"`
	Session   string `help:"The conversation, by name; left out, the first of default, default-2, … that no other terminal has." placeholder:"NAME"`
	Workspace string `help:"Work in this directory and not in the conversation's own." placeholder:"DIR"`
}

// Run talks to the agent in this terminal.
func (c chatCmd) Run(ctx context.Context, flags *cli, tty terminal) error {
	cfg, err := flags.load(tty, config.Options{})
	if err != nil {
		return err
	}
	if c.Workspace != "" {
		if info, err := os.Stat(c.Workspace); err != nil || !info.IsDir() {
			return &usageError{fmt.Sprintf("--workspace %s is no directory", c.Workspace)}
		}
	}
	chat, rise, err := c.sit(cfg.Home, tty.err)
	if err != nil {
		return err
	}
	defer rise()
	key, err := sessions.Key(mainAgent, console.Name, chat, "")
	if err != nil {
		return &usageError{err.Error()}
	}
	log := quiet(tty.err)
	model, err := newModel(ctx, cfg, log)
	if err != nil {
		return err
	}
	server, leave, err := join(ctx, cfg, need{model: model, send: true, own: lent{c.Workspace, key}}, log)
	if err != nil {
		return err
	}
	err = c.talk(ctx, &remote{client: server, session: key, name: chat, ids: map[string]string{}, shown: map[string]bool{}}, tty, log)
	if left := leave(); err == nil {
		err = left
	}
	return err
}

// talk is the conversation. It is a channel like any other, with a server in
// the place of a platform.
func (c chatCmd) talk(ctx context.Context, r *remote, tty terminal, log *slog.Logger) error {
	ch, err := console.New(console.Config{
		Chat: r.name, Session: r.session, Once: c.Message, In: tty.in, Out: tty.out, Err: tty.err, Events: r, Log: log,
	})
	if err != nil {
		return err
	}
	r.deliver = func(ctx context.Context, part channels.Part) error {
		_, err := ch.Send(ctx, bus.Address{Channel: console.Name, Chat: r.name}, part)
		return err
	}
	if err := ch.Receive(ctx, r.say); !errors.Is(err, io.EOF) {
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
