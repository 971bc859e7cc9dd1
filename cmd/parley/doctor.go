package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"parley/cmd/parley/config"
	"parley/cmd/parley/doctor"
	"parley/cmd/parley/terminal"
)

type doctorCmd struct{}

// Help shows examples.
func (doctorCmd) Help() string {
	return examples("parley doctor", "parley --config /etc/parley/parley.toml doctor")
}

// Run checks everything that can be checked and says what to change. It fails
// if something is wrong.
func (doctorCmd) Run(ctx context.Context, c *cli, tty terminal.Terminal) error {
	cfg, err := loadConfig(config.Options{File: c.Config, Home: c.Home, LookLocal: true})
	if err != nil {
		return err
	}
	found := doctor.Examine(ctx, cfg)
	if c.JSON {
		err = json.NewEncoder(tty.Out).Encode(found)
	} else {
		err = printFindings(tty.Out, found)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(found, doctor.Finding.Wrong) {
		return errors.New("something is wrong, see above")
	}
	return nil
}

func printFindings(out io.Writer, found []doctor.Finding) error {
	for _, f := range found {
		if _, err := fmt.Fprintf(out, "%-6s %s: %s\n", f.State, f.Part, f.Detail); err != nil {
			return err
		}
		if f.Remedy != "" {
			if _, err := fmt.Fprintf(out, "       → %s\n", f.Remedy); err != nil {
				return err
			}
		}
	}
	return nil
}
