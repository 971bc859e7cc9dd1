package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/tools/plainjson"
)

// withClient connects to the home's server for one command, and calls fn with the client. If no server is running, this
// process serves the home meanwhile, in that role. A Reader does so without the secrets in the settings.
func withClient(ctx context.Context, flags *globalFlags, tty terminal.Terminal, role server.Role, fn func(context.Context, *client.Client) error) error {
	cfg, err := flags.load(tty, config.Options{WithoutSecrets: role == server.Reader})
	if err != nil {
		return err
	}
	return withClientFor(ctx, cfg, tty, role, fn)
}

// withClientFor is like withClient, for a configuration that was already read.
func withClientFor(ctx context.Context, cfg *config.Config, tty terminal.Terminal, role server.Role, do func(context.Context, *client.Client) error) error {
	return withClientAs(ctx, server.Config{Settings: cfg, Role: role, Build: thisBuild(), Log: errorLogger(tty.Err)}, do)
}

// withClientAs connects to the home's server for one command, and calls fn with the client. If no
// server is running, the command becomes the server that cfg describes.
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

// printList prints the list that the server returns at a path, under a key of its answer: as JSON
// if that is requested, and otherwise with forPeople.
func printList[T any](ctx context.Context, c *globalFlags, tty terminal.Terminal, path, key string, forPeople func(io.Writer, []T) error) error {
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		var found map[string][]T
		if err := server.Get(ctx, path, &found); err != nil {
			return err
		}
		if c.JSON {
			return plainjson.NewEncoder(tty.Out).Encode(found[key])
		}
		return forPeople(tty.Out, found[key])
	})
}
