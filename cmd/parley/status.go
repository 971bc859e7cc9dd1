// This file holds the commands that show the state of a server and what it has done.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"parley/cmd/parley/client"
	"parley/cmd/parley/config"
	"parley/cmd/parley/report"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/sessions"
)

type statusCmd struct {
	Tools bool `help:"What has become of the calls of tools since the server was started."`
	Live  bool `help:"Only say whether the server of this home answers, and fail if it does not: for health checks."`
}

// Help shows examples.
func (statusCmd) Help() string { return examples("parley status", "parley --json status") }

// Run prints the state of the server and how many messages wait.
func (c statusCmd) Run(ctx context.Context, flags *cli, tty terminal.Terminal) error {
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
			fmt.Fprintln(tty.Out, "no server is running in this home; this is what the whole fleet has")
		case server.Hosted:
			fmt.Fprintln(tty.Out, "no server is running; this is what waits for the next")
		default:
			s.PrintServer(tty.Out)
		}
		return s.PrintTopics(tty.Out)
	})
}

// liveTimeout bounds how long a server may take to answer that it is alive.
const liveTimeout = 5 * time.Second

// checkAlive asks the server of the home whether it is alive. Unlike other commands it never
// serves the home itself, and it needs no secret.
func checkAlive(ctx context.Context, flags *cli, tty terminal.Terminal) error {
	cfg, err := flags.load(tty, config.Options{WithoutSecrets: true})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	if err := client.Dial(cfg.Home).Get(ctx, "/healthz", nil); err != nil {
		return fmt.Errorf("no server of the home %s answers: %w", cfg.Home, err)
	}
	_, err = fmt.Fprintln(tty.Out, "the server answers")
	return err
}

type sessionsCmd struct {
	Key string `arg:"" optional:"" help:"The session to print; left out, all are listed."`
}

// Help shows examples.
func (sessionsCmd) Help() string {
	return examples("parley sessions", "parley sessions main:telegram:42", "parley --json sessions main:telegram:42 > log.jsonl")
}

// Run lists the sessions, or prints one of them.
func (c sessionsCmd) Run(ctx context.Context, flags *cli, tty terminal.Terminal) error {
	return withClient(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		if c.Key != "" {
			return c.print(ctx, server, flags.JSON, tty.Out)
		}
		w := tabwriter.NewWriter(tty.Out, 0, 0, 2, ' ', 0)
		if !flags.JSON {
			fmt.Fprintln(w, "SESSION\tENTRIES\tLAST")
		}
		for after := ""; ; {
			var page struct {
				Sessions []sessions.Info `json:"sessions"`
				Next     string          `json:"next"`
			}
			if err := server.Get(ctx, "/v1/sessions?limit=500&after="+url.QueryEscape(after), &page); err != nil {
				return err
			}
			for _, s := range page.Sessions {
				if flags.JSON {
					if err := json.NewEncoder(tty.Out).Encode(s); err != nil {
						return err
					}
					continue
				}
				fmt.Fprintf(w, "%s\t%d\t%s\n", terminal.Cell(s.Key), s.Entries, s.Updated.Local().Format(time.DateTime))
			}
			if after = page.Next; after == "" {
				return w.Flush()
			}
		}
	})
}

// print prints what was said in a session; with all, it prints every entry as a line of
// JSON.
func (c sessionsCmd) print(ctx context.Context, server *client.Client, all bool, out io.Writer) error {
	path := "/v1/sessions/" + url.PathEscape(c.Key)
	if all {
		return server.Get(ctx, path+"/export", out)
	}
	for from := int64(0); ; {
		var page struct {
			Entries []sessions.Entry `json:"entries"`
			Next    int64            `json:"next"`
			Ratings []struct {
				Turn, Person string
				Good         bool
				At           time.Time
			} `json:"ratings"`
		}
		if err := server.Get(ctx, path+"?after="+strconv.FormatInt(from, 10), &page); err != nil {
			return err
		}
		for _, e := range page.Entries {
			if line := report.SpokenLine(e); line != "" {
				fmt.Fprintf(out, "%s  %s\n", e.At.Local().Format(time.DateTime), terminal.Hanging(line))
			}
		}
		for _, r := range page.Ratings {
			thumb := "👎"
			if r.Good {
				thumb = "👍"
			}
			fmt.Fprintf(out, "%s  %s of %s for the answer to %s\n", r.At.Local().Format(time.DateTime), thumb, terminal.Cell(r.Person), terminal.Cell(r.Turn))
		}
		if from = page.Next; from == 0 {
			return nil
		}
	}
}

type logsCmd struct {
	Filter string `help:"Only records of this kind." enum:"tool,pairing,export,replay,forget,job,approval,schedule," default:"" placeholder:"KIND"`
}

// Help shows examples.
func (logsCmd) Help() string {
	return examples("parley logs", "parley logs --filter tool", "parley --json logs --filter tool > calls.jsonl")
}

// Run prints the audit's records, the oldest first.
func (c logsCmd) Run(ctx context.Context, flags *cli, tty terminal.Terminal) error {
	return withClient(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		w := tabwriter.NewWriter(tty.Out, 0, 0, 2, ' ', 0)
		if !flags.JSON {
			fmt.Fprintln(w, report.AuditHeader)
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
				fmt.Fprintln(w, report.AuditLine(r))
			}
			if err := w.Flush(); err != nil { // after each page, so that it is shown even if the next page fails
				return err
			}
			if after = page.Next; after == 0 {
				return nil
			}
		}
	})
}

// toolMetricPrefixes returns the beginnings of the names of the metrics about tools.
func toolMetricPrefixes() []string {
	return []string{"parley_tool_", "parley_audit_", "parley_sandbox_", "parley_asks_"}
}

type metricsCmd struct {
	Tools bool `help:"Only those of tools."`
}

// Help shows examples.
func (metricsCmd) Help() string { return examples("parley metrics", "parley metrics --tools") }

// Run prints the metrics of the server in the format of Prometheus.
func (c metricsCmd) Run(ctx context.Context, flags *cli, tty terminal.Terminal) error {
	return withClient(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		if !c.Tools {
			return server.Get(ctx, "/metrics", tty.Out)
		}
		var all strings.Builder
		if err := server.Get(ctx, "/metrics", &all); err != nil {
			return err
		}
		for line := range strings.Lines(all.String()) {
			name := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE ")
			if slices.ContainsFunc(toolMetricPrefixes(), func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
				fmt.Fprint(tty.Out, line)
			}
		}
		return nil
	})
}
