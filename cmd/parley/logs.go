package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/cmd/parley/terminal/report"
	"parley/sessions"
	"parley/tools/plainjson"
)

type logsCmd struct {
	Filter  string `help:"Only records of this kind: ${enum}." enum:"turn,refusal,tool,pairing,export,replay,forget,job,approval,schedule,operator,memory,sign_in,judgement," default:"" placeholder:"KIND"`
	Since   since  `help:"Only records since this time: how long ago, like 2h or 3d, or a date like 2026-01-31." placeholder:"TIME"`
	Session string `help:"Only this session." placeholder:"KEY"`
	Person  string `help:"Only records of what this person did, or asked for." placeholder:"CHANNEL:USER"`
	Limit   int    `help:"Only this many of the newest records." placeholder:"N"`
	Follow  bool   `help:"Keep printing new records until Ctrl-C. Without --since and --limit, start with the last 10." short:"f"`
}

// Help shows examples.
func (logsCmd) Help() string {
	return examples("parley logs", "parley logs --filter refusal --since 2h", "parley logs --follow --session main:telegram:42",
		"parley --json logs --filter tool > calls.jsonl")
}

// Validate refuses a limit below zero.
func (c logsCmd) Validate() error {
	if c.Limit < 0 {
		return errors.New("--limit must be at least 1")
	}
	return nil
}

// Run prints the audit's records, the oldest first. It prints each page as soon as it is there, even if the next
// one fails.
func (c logsCmd) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		if c.Follow && server.Hosted && !server.Shared {
			return errors.New("no server is running, so there's nothing to follow: start parley serve")
		}
		w := tabwriter.NewWriter(tty.Out, 0, 0, 2, ' ', 0)
		if !flags.JSON {
			fmt.Fprintln(w, report.AuditHeader)
		}
		q := client.RecordQuery{Kind: c.Filter, Session: c.Session, Person: c.Person, Since: c.Since.Time, Limit: c.Limit, Follow: c.Follow}
		return client.ShowRecords(ctx, server, q, func(records []sessions.AuditRecord) error {
			for _, r := range records {
				if !flags.JSON {
					fmt.Fprintln(w, report.AuditLine(r))
				} else if err := plainjson.NewEncoder(tty.Out).Encode(r); err != nil {
					return err
				}
			}
			return w.Flush()
		})
	})
}
