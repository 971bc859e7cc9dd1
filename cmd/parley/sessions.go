package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"text/tabwriter"
	"time"

	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/cmd/parley/terminal/report"
	"parley/sessions"
	"parley/tools/plainjson"
)

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
	if c.Limit < 0 || c.Limit > maxListed {
		return fmt.Errorf("--limit must be from 1 to %d", maxListed)
	}
	return nil
}

// maxListed is the maximum length of a list of sessions that is not in the order of their keys.
const maxListed = 1000

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
	q.Set("limit", strconv.Itoa(cmp.Or(c.Limit, maxListed)))
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
		for left := cmp.Or(c.Limit, maxListed); ; {
			var page struct {
				Sessions []sessions.Info `json:"sessions"`
				Next     string          `json:"next"`
			}
			if err := server.Get(ctx, "/v1/sessions?"+q.Encode(), &page); err != nil {
				return err
			}
			if q.Get("order") == "desc" { // the limit is per page, and a page may be short, so count the rest
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
				fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", terminal.Cell(s.Key), s.LastEntry, s.Updated.Local().Format(time.DateTime), terminal.Cell(s.Title))
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
