package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"parley/cmd/parley/api"
	"parley/cmd/parley/client"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
)

type scheduleCmd struct {
	List   scheduleList   `cmd:"" default:"1" help:"What the agent is to do later, for whom and when."`
	Cancel scheduleCancel `cmd:"" help:"End one."`
}

type scheduleList struct{}

type scheduleCancel struct {
	ID string `arg:"" help:"The schedule's."`
}

// Help shows examples.
func (scheduleList) Help() string {
	return examples("parley schedule list", "parley --json schedule list")
}

// Run lists what people have the agent do later.
func (scheduleList) Run(ctx context.Context, c *cli, tty terminal.Terminal) error {
	return use(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		var found struct{ Schedules []api.Schedule }
		if err := server.Get(ctx, "/v1/schedules", &found); err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(tty.Out).Encode(found.Schedules)
		}
		if len(found.Schedules) == 0 {
			_, err := fmt.Fprintln(tty.Out, "Nothing is scheduled.")
			return err
		}
		w := tabwriter.NewWriter(tty.Out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tNEXT\tWHEN\tFOR\tSESSION\tWHAT")
		for _, s := range found.Schedules {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.ID, s.Next.Local().Format(time.DateTime), terminal.Cell(s.When),
				terminal.Cell(s.Person), terminal.Cell(s.Session), terminal.Cell(s.Text))
		}
		return w.Flush()
	})
}

// Help shows examples.
func (scheduleCancel) Help() string { return examples("parley schedule cancel k7f3m2q9xw") }

// Run cancels one.
func (s scheduleCancel) Run(ctx context.Context, c *cli, tty terminal.Terminal) error {
	return use(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		id := strings.ToLower(s.ID)
		if err := server.Do(ctx, http.MethodDelete, "/v1/schedules/"+url.PathEscape(id), "", nil, nil); err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(tty.Out).Encode(map[string]string{"cancelled": id})
		}
		_, err := fmt.Fprintf(tty.Out, "%s is cancelled.\n", id)
		return err
	})
}
