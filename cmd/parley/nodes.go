package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"parley/cmd/parley/server"
	"parley/cmd/parley/server/nodelinks"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/cmd/parley/terminal/report"
	"parley/tools/plainjson"
)

type nodesCmd struct {
	List     nodesList     `cmd:"" default:"1" help:"List the nodes, and whether they're here."`
	Invite   nodesInvite   `cmd:"" help:"Make a code with which one device can join as a node."`
	Describe nodesDescribe `cmd:"" help:"Show what a node offers."`
	Accept   nodesAccept   `cmd:"" help:"Accept a node with all that it offers now, so that agents can use it."`
	Revoke   nodesRevoke   `cmd:"" help:"Remove a node."`
}

// nodePath returns the path of a node in the API, with a suffix.
func nodePath(name, suffix string) string { return "/v1/nodes/" + url.PathEscape(name) + suffix }

type nodesList struct{}

// Help shows examples.
func (nodesList) Help() string { return examples("parley nodes list", "parley --json nodes list") }

// Run lists the nodes.
func (nodesList) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return printList(ctx, c, tty, "/v1/nodes", "nodes", report.Nodes)
}

type nodesInvite struct{}

// Help shows examples.
func (nodesInvite) Help() string { return examples("parley nodes invite") }

// Run creates a code with which one device can join.
func (nodesInvite) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		var made nodelinks.Invitation
		if err := server.Do(ctx, http.MethodPost, "/v1/nodes/invite", "", nil, &made); err != nil {
			return err
		}
		if c.JSON {
			return plainjson.NewEncoder(tty.Out).Encode(made)
		}
		address, hint := made.URL, ""
		if address == "" {
			address, hint = "https://…", textNodeAddress
		}
		through := ""
		if made.Broker != "" {
			through = fmt.Sprintf(textInvitedThrough, made.Broker, made.BrokerCode)
		}
		_, err := fmt.Fprintf(tty.Out, textInvited, address, made.Code, through, made.Until.Local().Format("15:04"), hint)
		return err
	})
}

type nodesDescribe struct {
	Name string `arg:"" help:"The node's name."`
}

// Help shows examples.
func (nodesDescribe) Help() string {
	return examples("parley nodes describe pi", "parley --json nodes describe pi")
}

// Run shows what a node offers.
func (d nodesDescribe) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		var shown nodelinks.Node
		if err := server.Get(ctx, nodePath(d.Name, ""), &shown); err != nil {
			return err
		}
		if c.JSON {
			return plainjson.NewEncoder(tty.Out).Encode(shown)
		}
		return report.Node(tty.Out, shown)
	})
}

type nodesAccept struct {
	Name string `arg:"" help:"The node's name."`
	Yes  bool   `help:"Don't ask for confirmation."`
}

// Help shows examples.
func (nodesAccept) Help() string {
	return examples("parley nodes accept pi", "parley nodes accept pi --yes")
}

// Run shows what a node offers, and accepts it if the person agrees: exactly what was shown.
func (a nodesAccept) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		var shown nodelinks.Node
		if err := server.Get(ctx, nodePath(a.Name, ""), &shown); err != nil {
			return err
		}
		if !c.JSON {
			if err := report.Node(tty.Out, shown); err != nil {
				return err
			}
		}
		if err := confirm(tty, a.Yes, fmt.Sprintf(textAcceptNode, terminal.Cell(shown.Name))); err != nil {
			return err
		}
		var now struct {
			Accepted []string `json:"accepted"`
		}
		if err := server.Do(ctx, http.MethodPost, nodePath(a.Name, "/accept"), "", map[string]string{"digest": shown.Digest}, &now); err != nil {
			return err
		}
		if c.JSON {
			return plainjson.NewEncoder(tty.Out).Encode(now)
		}
		if _, err := fmt.Fprintf(tty.Out, textAccepted, shown.Name, terminal.Cell(strings.Join(now.Accepted, ", "))); err != nil {
			return err
		}
		if len(shown.Agents) == 0 {
			_, err := fmt.Fprintf(tty.Out, textNoAgentHas, shown.Name)
			return err
		}
		return nil
	})
}

type nodesRevoke struct {
	Name string `arg:"" help:"The node's name."`
	Yes  bool   `help:"Don't ask for confirmation."`
}

// Help shows examples.
func (nodesRevoke) Help() string { return examples("parley nodes revoke pi") }

// Run removes a node.
func (r nodesRevoke) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		if err := confirm(tty, r.Yes, fmt.Sprintf(textRevokeNode, terminal.Cell(r.Name))); err != nil {
			return err
		}
		var now nodelinks.Node
		if err := server.Do(ctx, http.MethodPost, nodePath(r.Name, "/revoke"), "", nil, &now); err != nil {
			return err
		}
		if c.JSON {
			return plainjson.NewEncoder(tty.Out).Encode(now)
		}
		_, err := fmt.Fprintf(tty.Out, textNodeRevoked, terminal.Cell(r.Name))
		return err
	})
}
