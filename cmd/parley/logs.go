package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"parley/cmd/parley/client"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/sessions"
)

type logsCmd struct {
	Filter string `help:"Only records of this kind." enum:"tool,pairing,export,replay,forget,job,approval,schedule," default:"" placeholder:"KIND"`
}

// Help shows examples.
func (logsCmd) Help() string {
	return examples("parley logs", "parley logs --filter tool", "parley --json logs --filter tool > calls.jsonl")
}

// Run prints what was done, the oldest first.
func (c logsCmd) Run(ctx context.Context, flags *cli, tty terminal.Terminal) error {
	return use(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		w := tabwriter.NewWriter(tty.Out, 0, 0, 2, ' ', 0)
		if !flags.JSON {
			fmt.Fprintln(w, "TIME\tKIND\tWHO\tSESSION\tTOOL\tRESULT\tTOOK\tABOUT")
		}
		for after := int64(0); ; {
			var page struct {
				Records []sessions.AuditRecord `json:"records"`
				Next    int64                  `json:"next"`
			}
			path := "/v1/audit?limit=500&after=" + strconv.FormatInt(after, 10) + "&kind=" + url.QueryEscape(c.Filter)
			if err := server.Get(ctx, path, &page); err != nil {
				return err
			}
			for _, r := range page.Records {
				if flags.JSON {
					if err := json.NewEncoder(tty.Out).Encode(r); err != nil {
						return err
					}
					continue
				}
				fmt.Fprintln(w, auditLine(r))
			}
			if err := w.Flush(); err != nil { // page by page: what was read is shown whatever the next one says
				return err
			}
			if after = page.Next; after == 0 {
				return nil
			}
		}
	})
}

// auditLine is a record as a line of the table.
func auditLine(r sessions.AuditRecord) string {
	about, took := r.Detail, ""
	if r.Kind == sessions.AuditTool {
		about, took = string(r.Arguments), (time.Duration(r.Elapsed) * time.Millisecond).String()
	}
	if line := []rune(about); len(line) > 80 {
		about = string(line[:80]) + "…"
	}
	result := r.Result
	if r.ExitCode != nil {
		result = fmt.Sprintf("%s (%d)", result, *r.ExitCode)
	}
	cells := []string{r.At.Local().Format(time.DateTime), r.Kind, r.By, r.Session, r.Tool, result, took, about}
	for i := range cells {
		cells[i] = terminal.Cell(cells[i])
	}
	return strings.Join(cells, "\t")
}

// toolMetrics begin the names of the metrics that tell of tools.
func toolMetrics() []string {
	return []string{"parley_tool_", "parley_audit_", "parley_sandbox_", "parley_asks_"}
}

type metricsCmd struct {
	Tools bool `help:"Only those of tools."`
}

// Help shows examples.
func (metricsCmd) Help() string { return examples("parley metrics", "parley metrics --tools") }

// Run prints the metrics of the server, as Prometheus reads them.
func (c metricsCmd) Run(ctx context.Context, flags *cli, tty terminal.Terminal) error {
	return use(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		if !c.Tools {
			return server.Get(ctx, "/metrics", tty.Out)
		}
		var all strings.Builder
		if err := server.Get(ctx, "/metrics", &all); err != nil {
			return err
		}
		for line := range strings.Lines(all.String()) {
			name := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE ")
			if slices.ContainsFunc(toolMetrics(), func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
				fmt.Fprint(tty.Out, line)
			}
		}
		return nil
	})
}
