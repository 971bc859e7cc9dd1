// This file holds the commands that tell how a server does and what it has done.

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

	"parley/cmd/parley/api"
	"parley/cmd/parley/client"
	"parley/cmd/parley/config"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/sessions"
)

type statusCmd struct {
	Tools bool `help:"What has become of the calls of tools since the server was started."`
	Live  bool `help:"Only say whether the server of this home answers, and fail if it does not: for health checks."`
}

// statusReport is what GET /v1/status answers.
type statusReport struct {
	Version  string  `json:"version"`
	Role     string  `json:"role"`
	Uptime   float64 `json:"uptime_seconds"`
	Channels []struct {
		Name   string `json:"name"`
		Up     bool   `json:"up"`
		Reason string `json:"reason"`
	} `json:"channels"`
	Topics []struct {
		Topic   string  `json:"topic"`
		Waiting int     `json:"waiting"`
		Leased  int     `json:"leased"`
		Delayed int     `json:"delayed"`
		Dead    int     `json:"dead"`
		Oldest  float64 `json:"oldest_seconds"`
	} `json:"topics"`
	Tools []api.ToolCount `json:"tools"`
}

// Help shows examples.
func (statusCmd) Help() string { return examples("parley status", "parley --json status") }

// Run tells how the server and its mail stand.
func (c statusCmd) Run(ctx context.Context, flags *cli, tty terminal.Terminal) error {
	if c.Live {
		return live(ctx, flags, tty)
	}
	return use(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		if flags.JSON {
			return server.Get(ctx, "/v1/status", tty.Out)
		}
		var s statusReport
		if err := server.Get(ctx, "/v1/status", &s); err != nil {
			return err
		}
		if c.Tools {
			return printTools(tty.Out, s.Tools)
		}
		switch {
		case server.Hosted && server.Shared:
			fmt.Fprintln(tty.Out, "no server is running in this home; this is what the whole fleet has")
		case server.Hosted:
			fmt.Fprintln(tty.Out, "no server is running; this is what waits for the next")
		default:
			fmt.Fprintf(tty.Out, "parley %s, %s, up %s\n", s.Version, s.Role, seconds(s.Uptime))
			for _, c := range s.Channels {
				how := "connected"
				if !c.Up {
					how = "not connected"
				}
				if c.Reason != "" {
					how += " (" + c.Reason + ")"
				}
				fmt.Fprintf(tty.Out, "channel %s: %s\n", c.Name, how)
			}
		}
		w := tabwriter.NewWriter(tty.Out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "TOPIC\tWAITING\tIN WORK\tDELAYED\tDEAD\tOLDEST")
		for _, t := range s.Topics {
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\n", terminal.Cell(t.Topic), t.Waiting, t.Leased, t.Delayed, t.Dead, seconds(t.Oldest))
		}
		return w.Flush()
	})
}

// printTools prints what has become of the calls of tools.
func printTools(out io.Writer, list []api.ToolCount) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "no tool was called since the server was started")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TOOL\tCALLS\tFAILED\tTIMEOUTS\tAVERAGE\tLAST ERROR")
	for _, t := range list {
		last := ""
		if t.LastAt != nil {
			last = t.LastError + ", " + t.LastAt.Local().Format(time.DateTime)
		}
		average := time.Duration(t.Seconds / float64(t.Calls) * float64(time.Second)).Round(time.Millisecond)
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%s\n", terminal.Cell(t.Tool), t.Calls, t.Failed, t.Timeouts, average, last)
	}
	return w.Flush()
}

// livePatience is how long a server may take to say that it lives.
const livePatience = 5 * time.Second

// live asks the server that has the home whether it lives. It takes nobody's
// place and needs no secret.
func live(ctx context.Context, flags *cli, tty terminal.Terminal) error {
	cfg, err := flags.load(tty, config.Options{WithoutSecrets: true})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, livePatience)
	defer cancel()
	if err := client.Dial(cfg.Home).Get(ctx, "/healthz", nil); err != nil {
		return fmt.Errorf("no server of the home %s answers: %w", cfg.Home, err)
	}
	_, err = fmt.Fprintln(tty.Out, "the server answers")
	return err
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Second)
}

type sessionsCmd struct {
	Key string `arg:"" optional:"" help:"The session to print; left out, all are listed."`
}

// Help shows examples.
func (sessionsCmd) Help() string {
	return examples("parley sessions", "parley sessions main:telegram:42", "parley --json sessions main:telegram:42 > log.jsonl")
}

// Run lists the sessions, or prints one.
func (c sessionsCmd) Run(ctx context.Context, flags *cli, tty terminal.Terminal) error {
	return use(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
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

// print prints what was said in a session; as JSON lines, everything.
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
			if line := spoken(e); line != "" {
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

// spoken is an entry as a person reads it; "" for the journal's own.
func spoken(e sessions.Entry) string {
	var said struct {
		Text    string          `json:"text"`
		Name    string          `json:"name"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(e.Data, &said); err != nil && len(e.Data) > 0 {
		return ""
	}
	switch e.Kind {
	case sessions.KindUser:
		return e.Person + ": " + said.Text
	case sessions.KindText:
		return "parley: " + said.Text
	case sessions.KindToolUse:
		return "· " + said.Name
	case sessions.KindNotice:
		return "! " + said.Text
	case sessions.KindSummary:
		return "(summary) " + said.Text
	}
	return ""
}

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
