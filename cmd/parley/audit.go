package main

import (
	"context"
	"errors"
	"fmt"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server/archives"
	"parley/cmd/parley/terminal"
	"parley/sessions/archive"
	"parley/sessions/sqldb"
	"parley/tools/plainjson"
)

type auditCmd struct {
	Verify auditVerify `cmd:"" help:"Check that nothing was changed in the archived days, and that none is missing."`
}

type auditVerify struct {
	From string `help:"Only check the files from this day on." placeholder:"2026-01-31"`
}

// Help shows examples.
func (auditVerify) Help() string {
	return examples("parley audit verify", "parley audit verify --from 2026-01-31", "parley --json audit verify")
}

// Validate returns an error unless the flags contain valid days.
func (c auditVerify) Validate() error {
	return checkDay("--from", c.From)
}

// Run reads the archive's files, and prints the first thing that is wrong. It fails if anything is, or if no archive is
// configured.
func (c auditVerify) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	cfg, err := flags.load(tty, config.Options{})
	if err != nil {
		return err
	}
	place, err := archives.Open(cfg.Audit)
	if err != nil {
		return err
	}
	if place == nil {
		return errors.New(textNoArchive)
	}
	look := func(ctx context.Context) (known []archive.File, err error) {
		err = home.WithTable(ctx, cfg, "audit_files", func(db *sqldb.DB) (err error) {
			known, err = archive.Table{DB: db}.Files(ctx)
			return err
		})
		return known, err
	}
	found, err := archive.Verify(ctx, place, look, c.From)
	if err != nil {
		return err
	}
	if flags.JSON {
		if err := plainjson.NewEncoder(tty.Out).Encode(found); err != nil {
			return err
		}
	} else {
		printArchive(tty, found)
	}
	if found.Break != nil {
		return errors.New(textArchiveBroken)
	}
	return nil
}

// printArchive prints what was found in an archive.
func printArchive(tty terminal.Terminal, found archive.Report) {
	if found.Files > 0 {
		fmt.Fprintf(tty.Out, textArchiveWhole, found.From, found.To, found.Files, found.Records)
	} else if found.Break == nil {
		fmt.Fprintln(tty.Out, textArchiveEmpty)
	}
	switch b := found.Break; {
	case b != nil && b.Line > 0:
		fmt.Fprintf(tty.Out, textBrokenLine, b.Day, b.Line, b.Problem)
	case b != nil:
		fmt.Fprintf(tty.Out, textBrokenFile, b.Day, b.Problem)
	}
	if !found.HasDatabase && found.Files > 0 {
		fmt.Fprintln(tty.Out, textArchiveAlone)
	}
}
