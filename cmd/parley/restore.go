package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/backup"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/data/homedb"
	"parley/cmd/parley/terminal"
)

type restoreCmd struct {
	File string `arg:"" help:"The backup file; - means standard input."`
	Yes  bool   `help:"Restore into a home that already holds data, and move that data aside."`
}

// Help shows examples.
func (restoreCmd) Help() string {
	return examples("parley restore parley.backup", "parley --home /srv/second restore parley.backup")
}

// Run makes a home from a backup. If the home contains data already, the person has to agree, and that data is moved
// aside.
func (c restoreCmd) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	cfg, err := flags.load(tty, config.Options{WithoutSecrets: true})
	if err != nil {
		return err
	}
	if parts := keptElsewhere(cfg); len(parts) > 0 {
		return fmt.Errorf("this configuration keeps %s: restore with a configuration that has no [bus] or [store], and then move the data there with parley migrate", strings.Join(parts, " and "))
	}
	if err := home.CheckUnused(cfg); err != nil {
		return err
	}
	in := tty.In
	if c.File != "-" {
		if in, err = os.Open(c.File); err != nil {
			return fmt.Errorf("read the backup: %w", err)
		}
		defer func() { _ = in.Close() }() // it is only read
	}
	owner := home.OwnerOf(cfg.Home)
	options := backup.Options{Force: c.Yes, Try: homedb.Check}
	done, err := backup.Read(ctx, in, cfg.Home, options)
	if errors.Is(err, backup.ErrUsed) && c.File != "-" {
		if err := confirm(tty, c.Yes, fmt.Sprintf(textInUse, cfg.Home)); err != nil {
			return err
		}
		if _, err := in.Seek(0, 0); err != nil {
			return fmt.Errorf("read the backup: %w", err)
		}
		options.Force = true
		done, err = backup.Read(ctx, in, cfg.Home, options)
	}
	if err == nil {
		err = home.MoveRestoredWorkspaces(cfg)
	}
	if err = errors.Join(err, owner.GiveHome(cfg.Home), owner.GiveTree(cfg.Workspace.Root)); err != nil {
		return err
	}
	fmt.Fprintf(tty.Out, "%s has been restored to how it was at %s.\n", cfg.Home, done.At.Local().Format(time.DateTime))
	if done.Aside != "" {
		fmt.Fprintf(tty.Out, textMovedAside, done.Aside)
	}
	next, err := home.LeftByRestore(cfg)
	for _, line := range next {
		fmt.Fprintln(tty.Out, "next:", line)
	}
	return err
}
