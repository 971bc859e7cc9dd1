package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"parley/cmd/parley/terminal/report"

	"parley/cmd/parley/config"
	"parley/cmd/parley/doctor"
	"parley/cmd/parley/terminal"
	"parley/tools/plainjson"
)

type doctorCmd struct{}

// Help shows examples.
func (doctorCmd) Help() string {
	return examples("parley doctor", "parley --config /etc/parley/parley.toml doctor")
}

// Run checks everything that can be checked and says what to change. It fails
// if something is wrong.
func (doctorCmd) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	cfg, err := loadConfig(config.Options{File: c.Config, Home: c.Home, LookLocal: true})
	if err != nil {
		return err
	}
	found := doctor.Examine(ctx, cfg)
	if c.JSON {
		err = plainjson.NewEncoder(tty.Out).Encode(found)
	} else {
		err = report.Findings(tty.Out, found)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(found, doctor.Finding.NeedsChange) {
		return errors.New("something is wrong; see above")
	}
	return nil
}

// examineWhileServing makes the part of a server that tells programs what "parley doctor" finds.
func examineWhileServing(settings func() *config.Config, plain func(text string) string, log *slog.Logger) any {
	return doctor.NewExaminer(doctor.ExaminerConfig{Settings: settings, Plain: plain, Examine: doctor.Examine, Log: log})
}
