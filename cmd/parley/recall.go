// This file contains the command that finds what was said.

package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/channels/console"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/cmd/parley/terminal/report"
	"parley/sessions/search"
)

type recallCmd struct {
	Words   []string `arg:"" help:"The words to find; passages with more of them come first."`
	Session string   `help:"Only in this conversation." placeholder:"KEY"`
	Person  string   `help:"Only in conversations where this person has spoken." placeholder:"CHANNEL:USER"`
	Agent   string   `help:"Only in conversations with this agent." placeholder:"NAME"`
	Since   since    `help:"Only what was said since this time: how long ago, like 2h or 3d, or a date like 2026-01-31." placeholder:"TIME"`
	Limit   int      `help:"Show at most this many passages, up to 50." default:"10" placeholder:"N"`
}

// Help shows examples.
func (recallCmd) Help() string {
	return examples("parley recall release notes", "parley recall --person telegram:42 --since 30d invoice", "parley recall --session main:telegram:42 dentist", "parley --json recall outage") + fmt.Sprintf(textRecallWhere, search.MaxSessions)
}

// Validate refuses a limit that no search accepts.
func (c recallCmd) Validate() error {
	if c.Limit < 1 || c.Limit > search.MaxHits {
		return fmt.Errorf("--limit must be from 1 to %d", search.MaxHits)
	}
	return nil
}

// path returns the path of the request for the search.
func (c recallCmd) path() string {
	q := url.Values{"q": {strings.Join(c.Words, " ")}, "limit": {strconv.Itoa(c.Limit)}}
	for name, value := range map[string]string{"session": c.Session, "person": c.Person, "agent": c.Agent} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if !c.Since.IsZero() {
		q.Set("since", c.Since.UTC().Format(time.RFC3339))
	}
	return "/v1/search?" + q.Encode()
}

// Run prints what was found.
func (c recallCmd) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		if flags.JSON {
			return server.Get(ctx, c.path(), tty.Out)
		}
		var found report.Found
		if err := server.Get(ctx, c.path(), &found); err != nil {
			return err
		}
		return found.Print(tty.Out)
	})
}

// recall carries out /recall: it searches the conversations that the terminal's owner has had with this agent.
func (c *chatCommands) recall(ctx context.Context, words string) string {
	if words == "" {
		return textRecallUsage
	}
	var found report.Found
	var said strings.Builder
	find := recallCmd{Words: []string{words}, Person: console.Owner, Agent: c.agent(), Limit: 10}
	err := c.server.Get(ctx, find.path(), &found)
	if err == nil {
		err = found.Print(&said)
	}
	if err != nil {
		return "can't search the conversations: " + err.Error()
	}
	return strings.TrimRight(said.String(), "\n")
}
