package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"parley/bus"
	"parley/cmd/parley/api"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/cmd/parley/terminal/report"
	"parley/tools/plainjson"
)

type approvalsCmd struct {
	List    approvalsList    `cmd:"" default:"1" help:"List what turns are waiting for: approvals, and answers to questions."`
	Approve approvalsApprove `cmd:"" help:"Approve a tool call."`
	Deny    approvalsDeny    `cmd:"" help:"Deny a tool call."`
}

type approvalsList struct{}

type approvalsApprove struct {
	ID      string `arg:"" help:"The request's id."`
	Session bool   `help:"Also approve exactly the same call in this conversation for a day."`
}

type approvalsDeny struct {
	ID     string   `arg:"" help:"The request's id."`
	Reason []string `arg:"" optional:"" help:"The reason, for the agent to read."`
}

// Help shows examples.
func (approvalsList) Help() string {
	return examples("parley approvals list", "parley --json approvals list")
}

// Run lists the approvals and questions that turns are waiting for.
func (approvalsList) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return printList(ctx, c, tty, "/v1/asks", "asks", report.Asks)
}

// Help shows examples.
func (approvalsApprove) Help() string {
	return examples("parley approvals approve k7f3m2q9xw", "parley approvals approve k7f3m2q9xw --session")
}

// Run approves a tool call.
func (a approvalsApprove) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	answer := bus.Approve
	if a.Session {
		answer = bus.ApproveSession
	}
	return answerAsk(ctx, c, tty, a.ID, answer, "")
}

// Help shows examples.
func (approvalsDeny) Help() string {
	return examples("parley approvals deny k7f3m2q9xw", "parley approvals deny k7f3m2q9xw not on a Friday")
}

// Run denies a tool call.
func (a approvalsDeny) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return answerAsk(ctx, c, tty, a.ID, bus.Deny, strings.Join(a.Reason, " "))
}

// answerAsk approves or denies the tool call that the ask with this id is about.
func answerAsk(ctx context.Context, c *globalFlags, tty terminal.Terminal, id, answer, reason string) error {
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		var now api.Ask
		body := map[string]string{"answer": answer, "reason": reason}
		if err := server.Do(ctx, http.MethodPost, "/v1/asks/"+url.PathEscape(strings.ToLower(id)), "", body, &now); err != nil {
			return err
		}
		if c.JSON {
			return plainjson.NewEncoder(tty.Out).Encode(now)
		}
		_, err := fmt.Fprintf(tty.Out, "%s: %s for %s: %s.\n", now.ID, now.Tool, terminal.Cell(now.Person), map[string]string{
			bus.Approve: "approved", bus.ApproveSession: "approved for the conversation", bus.Deny: "denied",
		}[now.Answer])
		return err
	})
}
