package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"parley/cmd/parley/api"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/cmd/parley/terminal/report"
	"parley/tools/plainjson"
)

type scheduleCmd struct {
	List   scheduleList   `cmd:"" default:"1" help:"List what the agent will do later, for whom and when."`
	Pause  schedulePause  `cmd:"" help:"Pause a schedule until you resume it."`
	Resume scheduleResume `cmd:"" help:"Resume a paused schedule."`
	Run    scheduleRun    `cmd:"" help:"Have the agent do a scheduled task now."`
	Cancel scheduleCancel `cmd:"" help:"Cancel a schedule."`
}

type scheduleList struct{}

type schedulePause struct {
	ID string `arg:"" help:"The schedule's id."`
}

type scheduleResume struct {
	ID string `arg:"" help:"The schedule's id."`
}

type scheduleRun struct {
	ID string `arg:"" help:"The schedule's id."`
}

type scheduleCancel struct {
	ID string `arg:"" help:"The schedule's id."`
}

// Help shows examples.
func (scheduleList) Help() string {
	return examples("parley schedule list", "parley --json schedule list")
}

// Run lists what people have told the agent to do later.
func (scheduleList) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		all := []api.Schedule{}
		for after := ""; ; {
			var page struct {
				Schedules []api.Schedule
				Next      string
			}
			if err := server.Get(ctx, "/v1/schedules?limit=1000&after="+url.QueryEscape(after), &page); err != nil {
				return err
			}
			if all, after = append(all, page.Schedules...), page.Next; after == "" {
				break
			}
		}
		if c.JSON {
			return plainjson.NewEncoder(tty.Out).Encode(all)
		}
		return report.Schedules(tty.Out, all)
	})
}

// Help shows examples.
func (schedulePause) Help() string { return examples("parley schedule pause k7f3m2q9xw") }

// Run pauses a schedule.
func (s schedulePause) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return pauseSchedule(ctx, c, tty, s.ID, true)
}

// Help shows examples.
func (scheduleResume) Help() string { return examples("parley schedule resume k7f3m2q9xw") }

// Run resumes a paused schedule.
func (s scheduleResume) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return pauseSchedule(ctx, c, tty, s.ID, false)
}

// pauseSchedule pauses or resumes a schedule.
func pauseSchedule(ctx context.Context, c *globalFlags, tty terminal.Terminal, id string, paused bool) error {
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		var now api.Schedule
		body := map[string]bool{"paused": paused}
		if err := server.Do(ctx, http.MethodPatch, "/v1/schedules/"+url.PathEscape(strings.ToLower(id)), "", body, &now); err != nil {
			return err
		}
		switch {
		case c.JSON:
			return plainjson.NewEncoder(tty.Out).Encode(now)
		case now.Next == nil:
			_, err := fmt.Fprintf(tty.Out, textPaused, now.ID)
			return err
		default:
			_, err := fmt.Fprintf(tty.Out, textDueNext, now.ID, now.Next.Local().Format(time.DateTime))
			return err
		}
	})
}

// Help shows examples.
func (scheduleRun) Help() string { return examples("parley schedule run k7f3m2q9xw") }

// Run makes the agent do now what a schedule says.
func (s scheduleRun) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		var said struct {
			ID      string `json:"id"`
			Session string `json:"session"`
		}
		if err := server.Do(ctx, http.MethodPost, "/v1/schedules/"+url.PathEscape(strings.ToLower(s.ID))+"/run", "run-"+rand.Text(), nil, &said); err != nil {
			return err
		}
		if c.JSON {
			return plainjson.NewEncoder(tty.Out).Encode(said)
		}
		_, err := fmt.Fprintf(tty.Out, textRunsNow, terminal.Cell(said.Session))
		return err
	})
}

// Help shows examples.
func (scheduleCancel) Help() string { return examples("parley schedule cancel k7f3m2q9xw") }

// Run cancels a schedule.
func (s scheduleCancel) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		id := strings.ToLower(s.ID)
		if err := server.Do(ctx, http.MethodDelete, "/v1/schedules/"+url.PathEscape(id), "", nil, nil); err != nil {
			return err
		}
		if c.JSON {
			return plainjson.NewEncoder(tty.Out).Encode(map[string]string{"cancelled": id})
		}
		_, err := fmt.Fprintf(tty.Out, "%s is canceled.\n", id)
		return err
	})
}
