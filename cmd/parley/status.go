package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/server"
	"parley/cmd/parley/server/nodelinks"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/cmd/parley/terminal/report"
)

type statusCmd struct {
	Tools bool `help:"Show how tool calls have gone since the server started."`
	Live  bool `help:"Only say whether this home's server answers, and fail if it doesn't: for health checks."`
}

// Help shows examples.
func (statusCmd) Help() string { return examples("parley status", "parley --json status") }

// Run prints the state of the server, how many messages are waiting, and what the bot is working on.
func (c statusCmd) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	if c.Live {
		return checkAlive(ctx, flags, tty)
	}
	return withClient(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		if flags.JSON {
			return server.Get(ctx, "/v1/status", tty.Out)
		}
		var s report.Status
		if err := server.Get(ctx, "/v1/status", &s); err != nil {
			return err
		}
		if c.Tools {
			return s.PrintTools(tty.Out)
		}
		switch {
		case server.Hosted && server.Shared:
			fmt.Fprintln(tty.Out, "no server is running in this home; this is the state of the whole fleet")
		case server.Hosted:
			fmt.Fprintln(tty.Out, "no server is running; this is what's waiting for the next one")
		default:
			s.PrintServer(tty.Out)
		}
		if !server.Hosted || server.Shared { // otherwise this process serves the home, and no node can be connected
			if err := printNodesLine(ctx, server, tty.Out); err != nil {
				return err
			}
		}
		now := time.Now()
		if err := s.PrintFleet(tty.Out, now); err != nil {
			return err
		}
		if err := s.PrintTopics(tty.Out); err != nil {
			return err
		}
		return s.PrintWork(tty.Out, now)
	})
}

// printNodesLine prints one line about the nodes, if there are any.
func printNodesLine(ctx context.Context, server *client.Client, out io.Writer) error {
	var found struct {
		Nodes []nodelinks.Node `json:"nodes"`
	}
	err := server.Get(ctx, "/v1/nodes", &found)
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusNotFound { // the server is of an older release
		return nil
	}
	if err != nil {
		return err
	}
	return report.NodesLine(out, found.Nodes, time.Now())
}

// liveTimeout limits how long a server may take to answer that it is alive.
const liveTimeout = 5 * time.Second

// checkAlive asks the home's server whether it is alive. Unlike other commands it never serves the home itself, and
// it needs no secret.
func checkAlive(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	cfg, err := flags.load(tty, config.Options{WithoutSecrets: true})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	if err := client.Dial(cfg.Home).Get(ctx, "/healthz", nil); err != nil {
		return fmt.Errorf("no server answers in the home %s: %w", cfg.Home, err)
	}
	_, err = fmt.Fprintln(tty.Out, "the server answers")
	return err
}
