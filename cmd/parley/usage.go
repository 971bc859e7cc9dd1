// This file holds the command that tells what models have cost.

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"parley/cmd/parley/client"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/sessions/bill"
)

type usageCmd struct {
	By   string `help:"What is summed up: ${enum}." enum:"day,person,session,agent,model" default:"day"`
	From string `help:"The first day, as 2026-01-31 (UTC). Left out: the first of this month." placeholder:"DAY"`
	To   string `help:"The last day. Left out: today." placeholder:"DAY"`
}

// Help shows examples.
func (usageCmd) Help() string {
	return examples("parley usage", "parley usage --by person --from 2026-01-01 --to 2026-01-31", "parley --json usage --by model")
}

// usageReport is what GET /v1/usage answers.
type usageReport struct {
	Usage  []bill.Sum `json:"usage"`
	Prices string     `json:"prices"`
}

// Run prints what models have cost.
func (c usageCmd) Run(ctx context.Context, flags *cli, tty terminal.Terminal) error {
	for _, day := range []string{c.From, c.To} {
		if _, err := time.Parse(time.DateOnly, day); err != nil && day != "" {
			return &usageError{fmt.Sprintf("%q is no day: write it like 2026-01-31", day)}
		}
	}
	return use(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		path := "/v1/usage?" + url.Values{"by": {c.By}, "from": {c.From}, "to": {c.To}}.Encode()
		if flags.JSON {
			return server.Get(ctx, path, tty.Out)
		}
		var r usageReport
		if err := server.Get(ctx, path, &r); err != nil {
			return err
		}
		return c.print(tty.Out, r)
	})
}

func (c usageCmd) print(out io.Writer, r usageReport) error {
	if len(r.Usage) == 0 {
		_, err := fmt.Fprintln(out, "no model was asked in that time")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\tCALLS\tINPUT\tCACHED\tOUTPUT\tREASONING\tCOST\n", strings.ToUpper(c.By))
	var unpriced, estimated int64
	for _, s := range r.Usage {
		cost := bill.Dollars(s.Microdollars)
		if s.Unpriced == s.Calls {
			cost = "unknown"
		} else if s.Unpriced+s.Estimated > 0 {
			cost += " *"
		}
		unpriced, estimated = unpriced+s.Unpriced, estimated+s.Estimated
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%s\n", terminal.Cell(cmp.Or(s.Key, "(erased)")), s.Calls, s.Input, s.Cached, s.Output, s.Reasoning, cost)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if unpriced > 0 {
		fmt.Fprintf(out, "* of %d calls it is not known what they cost: docs/models.md says how to set a price\n", unpriced)
	}
	if estimated > 0 {
		fmt.Fprintf(out, "* the tokens of %d calls are estimated: the provider has counted none\n", estimated)
	}
	_, err := fmt.Fprintf(out, "days are UTC's; the list of prices is of %s\n", r.Prices)
	return err
}
