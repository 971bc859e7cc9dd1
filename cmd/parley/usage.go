// This file contains the command that prints what models have cost.

package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"time"

	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/cmd/parley/terminal/report"
)

type usageCmd struct {
	By   string `help:"What to group the totals by: ${enum}." enum:"day,person,session,agent,model" default:"day"`
	From string `help:"The first day, like 2026-01-31 (UTC). Default: the first of this month." placeholder:"DAY"`
	To   string `help:"The last day. Default: today." placeholder:"DAY"`
}

// Help shows examples.
func (usageCmd) Help() string {
	return examples("parley usage", "parley usage --by person --from 2026-01-01 --to 2026-01-31", "parley --json usage --by model")
}

// Validate returns an error unless the flags contain valid days.
func (c usageCmd) Validate() error {
	return cmp.Or(checkDay("--from", c.From), checkDay("--to", c.To))
}

// checkDay returns an error if the value of a flag isn't a day; "" stands for its default.
func checkDay(flag, value string) error {
	if _, err := time.Parse(time.DateOnly, value); err != nil && value != "" {
		return fmt.Errorf("%s: %q isn't a day: write it like 2026-01-31", flag, value)
	}
	return nil
}

// Run prints how many tokens models have used, and what they cost.
func (c usageCmd) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		path := "/v1/usage?" + url.Values{"by": {c.By}, "from": {c.From}, "to": {c.To}}.Encode()
		if flags.JSON {
			return server.Get(ctx, path, tty.Out)
		}
		var r report.Usage
		if err := server.Get(ctx, path, &r); err != nil {
			return err
		}
		return r.Print(tty.Out, c.By)
	})
}
