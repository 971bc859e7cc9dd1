// This file contains the commands that show the state of a server and what it has done.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/config/schema"
	"parley/cmd/parley/server"
	"parley/cmd/parley/server/nodelinks"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/cmd/parley/terminal/report"
	"parley/sessions"
	"parley/tools/plainjson"
)

type statusCmd struct {
	Tools bool `help:"Show how tool calls have gone since the server started."`
	Live  bool `help:"Only say whether this home's server answers, and fail if it doesn't: for health checks."`
}

// Help shows examples.
func (statusCmd) Help() string { return examples("parley status", "parley --json status") }

// Run prints the state of the server, how many messages are waiting, and what the bot is working on.
func (c statusCmd) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
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
			fmt.Fprintln(tty.Out, "no server is running in this home; this is the state of the whole fleet")
		case server.Hosted:
			fmt.Fprintln(tty.Out, "no server is running; this is what's waiting for the next one")
		default:
			s.PrintServer(tty.Out)
		}
		if !server.Hosted || server.Shared { // or no node can be here
			if err := printNodesLine(ctx, server, tty.Out); err != nil {
				return err
			}
		}
		if err := s.PrintTopics(tty.Out); err != nil {
			return err
		}
		return s.PrintWork(tty.Out, time.Now())
	})
}

// printNodesLine prints one line about the nodes, if there are any.
func printNodesLine(ctx context.Context, server *client.Client, out io.Writer) error {
	var found struct {
		Nodes []nodelinks.Node `json:"nodes"`
	}
	err := server.Get(ctx, "/v1/nodes", &found)
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusNotFound { // a server of an older release
		return nil
	}
	if err != nil {
		return err
	}
	return report.NodesLine(out, found.Nodes, time.Now())
}

// liveTimeout limits how long a server may take to answer that it is alive.
const liveTimeout = 5 * time.Second

// checkAlive asks the home's server whether it is alive. Unlike other commands it never serves the home itself, and
// it needs no secret.
func checkAlive(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	cfg, err := flags.load(tty, config.Options{WithoutSecrets: true})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	if err := client.Dial(cfg.Home).Get(ctx, "/healthz", nil); err != nil {
		return fmt.Errorf("no server answers in the home %s: %w", cfg.Home, err)
	}
	_, err = fmt.Fprintln(tty.Out, "the server answers")
	return err
}

type sessionsCmd struct {
	Key     string `arg:"" optional:"" help:"The session to print. If omitted, lists all sessions."`
	Since   since  `help:"Only those used since this time (how long ago, like 2h or 3d, or a date like 2026-01-31), most recently used first." placeholder:"TIME"`
	Person  string `help:"Only those where this person has spoken, most recently used first." placeholder:"CHANNEL:USER"`
	Agent   string `help:"Only those of this agent, most recently used first." placeholder:"NAME"`
	Channel string `help:"Only those on this channel, most recently used first." placeholder:"NAME"`
	Title   string `help:"Only those whose title has these words, most recently used first." placeholder:"WORDS"`
	Running bool   `help:"Only those with a turn running."`
	Waiting bool   `help:"Only those waiting for a person's approval or answer."`
	Limit   int    `help:"Only this many of the most recently used (at most 1,000)." placeholder:"N"`
}

// Help shows examples.
func (sessionsCmd) Help() string {
	return examples("parley sessions", "parley sessions --limit 10", "parley sessions --person telegram:42 --since 7d", `parley sessions --channel slack --title "release notes"`,
		"parley sessions --waiting", "parley sessions main:telegram:42", "parley --json sessions main:telegram:42 > log.jsonl")
}

// Validate refuses a limit that no list accepts.
func (c sessionsCmd) Validate() error {
	if c.Limit < 0 || c.Limit > mostListed {
		return fmt.Errorf("--limit must be from 1 to %d", mostListed)
	}
	return nil
}

// mostListed is the maximum length of a list of sessions that is not in the order of their keys.
const mostListed = 1000

// query returns the parameters of the request for the list. Without a filter and a limit, the list contains all
// sessions, in the order of their keys.
func (c sessionsCmd) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"person": c.Person, "agent": c.Agent, "channel": c.Channel, "q": c.Title} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, asked := range map[string]bool{"running": c.Running, "waiting": c.Waiting} {
		if asked {
			q.Set(name, "true")
		}
	}
	if !c.Since.IsZero() {
		q.Set("since", c.Since.UTC().Format(time.RFC3339))
	}
	if len(q) == 0 && c.Limit == 0 {
		return url.Values{"limit": {"500"}}
	}
	q.Set("order", "desc")
	q.Set("limit", strconv.Itoa(cmp.Or(c.Limit, mostListed)))
	return q
}

// Run lists the sessions, or prints one of them.
func (c sessionsCmd) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		if c.Key != "" {
			return c.print(ctx, server, flags.JSON, tty.Out)
		}
		w := tabwriter.NewWriter(tty.Out, 0, 0, 2, ' ', 0)
		if !flags.JSON {
			fmt.Fprintln(w, "SESSION\tENTRIES\tLAST\tTITLE")
		}
		q := c.query()
		for left := cmp.Or(c.Limit, mostListed); ; {
			var page struct {
				Sessions []sessions.Info `json:"sessions"`
				Next     string          `json:"next"`
			}
			if err := server.Get(ctx, "/v1/sessions?"+q.Encode(), &page); err != nil {
				return err
			}
			if q.Get("order") == "desc" { // the limit holds for each page, and a page may be short: count what is left
				page.Sessions = page.Sessions[:min(left, len(page.Sessions))]
				left -= len(page.Sessions)
			}
			for _, s := range page.Sessions {
				if flags.JSON {
					if err := plainjson.NewEncoder(tty.Out).Encode(s); err != nil {
						return err
					}
					continue
				}
				fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", terminal.Cell(s.Key), s.Entries, s.Updated.Local().Format(time.DateTime), terminal.Cell(s.Title))
			}
			if page.Next == "" || left == 0 {
				return w.Flush()
			}
			q.Set("after", page.Next)
		}
	})
}

// print prints what was said in a session; with all, it prints every entry as a line of JSON.
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
			fmt.Fprintf(out, "%s  %s from %s for the answer to %s\n", r.At.Local().Format(time.DateTime), thumb, terminal.Cell(r.Person), terminal.Cell(r.Turn))
		}
		if from = page.Next; from == 0 {
			return nil
		}
	}
}

// A since is the time from which something is shown. It is given as a time or as how long ago it was.
type since struct{ time.Time }

// UnmarshalText parses "2h", "1d12h", "2026-01-31" or "2026-01-31T15:04:05Z". A day begins at midnight local time.
func (s *since) UnmarshalText(text []byte) error {
	if ago, ok := schema.ParseDuration(string(text)); ok && ago > 0 {
		s.Time = time.Now().Add(-ago)
		return nil
	}
	at, err := time.ParseInLocation(time.DateOnly, string(text), time.Local)
	if err != nil {
		at, err = time.Parse(time.RFC3339, string(text))
	}
	if err != nil {
		return fmt.Errorf("%q isn't a time: write how long ago, like 2h or 3d, a day like 2026-01-31, or a time like 2026-01-31T15:04:05Z", text)
	}
	s.Time = at
	return nil
}

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

// toolMetricPrefixes returns the prefixes of the names of the metrics that --tools shows: those about tool calls and
// what guards them.
func toolMetricPrefixes() []string {
	return []string{"parley_tool_", "parley_audit_", "parley_sandbox_", "parley_asks_", "parley_guard_"}
}

type metricsCmd struct {
	Tools bool `help:"Only the tool calls."`
}

// Help shows examples.
func (metricsCmd) Help() string { return examples("parley metrics", "parley metrics --tools") }

// Run prints the metrics of the server in the format of Prometheus; with --tools, only those about tools.
func (c metricsCmd) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
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
