package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"parley/cmd/parley/config"
	"parley/cmd/parley/server"
	"parley/cmd/parley/server/mcpservers"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/cmd/parley/terminal/report"
	"parley/tools/plainjson"
)

type mcpCmd struct {
	List   mcpList   `cmd:"" default:"1" help:"List the servers, their tools, and the tools you haven't accepted yet."`
	Test   mcpTest   `cmd:"" help:"Ask a server for its tools now, and show the result."`
	Login  mcpLogin  `cmd:"" help:"Sign in to a server that needs it."`
	Accept mcpAccept `cmd:"" help:"Accept new or changed tools, with their current descriptions."`
}

type mcpList struct{}

// Help shows examples.
func (mcpList) Help() string { return examples("parley mcp list", "parley --json mcp list") }

// Run lists the MCP servers and their tools.
func (mcpList) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return printList(ctx, c, tty, "/v1/mcp", "servers", report.Servers)
}

type mcpTest struct {
	Name string `arg:"" help:"The server's name."`
}

// Help shows examples.
func (mcpTest) Help() string {
	return examples("parley mcp test github", "parley --json mcp test github")
}

// Run asks an MCP server for its tools. It fails if the server cannot be reached.
func (t mcpTest) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return withMCPClient(ctx, c, tty, func(ctx context.Context, server *client.Client) error {
		var got mcpservers.Trial
		if err := server.Do(ctx, http.MethodPost, "/v1/mcp/"+url.PathEscape(t.Name)+"/test", "", nil, &got); err != nil {
			return err
		}
		if c.JSON {
			if err := plainjson.NewEncoder(tty.Out).Encode(got); err != nil {
				return err
			}
		} else if got.Up {
			report.Trial(tty.Out, got)
		}
		if !got.Up {
			return fmt.Errorf("the MCP server %s can't be reached: %s", t.Name, terminal.Cell(got.Error))
		}
		return nil
	})
}

// withMCPClient connects to the home's server, like withClient, for a command that makes an MCP
// server's program run: if this process serves the home, it does so with the settings' secrets and
// a sandbox.
func withMCPClient(ctx context.Context, c *globalFlags, tty terminal.Terminal, do func(context.Context, *client.Client) error) error {
	cfg, err := c.load(tty, config.Options{})
	if err != nil {
		return err
	}
	return withClientAs(ctx, server.Config{Settings: cfg, Role: server.Reader, Commands: true, Build: thisBuild(), Log: errorLogger(tty.Err)}, do)
}

type mcpAccept struct {
	Name string `arg:"" help:"The server's name, or SERVER__TOOL for one of its tools."`
}

// Help shows examples.
func (mcpAccept) Help() string {
	return examples("parley mcp accept github", "parley mcp accept github__create_issue")
}

// Run accepts the new and changed tools of an MCP server, or only the named one, so that agents get them.
func (a mcpAccept) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		name, tool, _ := strings.Cut(a.Name, "__")
		var now struct{ Accepted []string }
		if err := server.Do(ctx, http.MethodPost, "/v1/mcp/"+url.PathEscape(name)+"/accept", "", map[string]string{"tool": tool}, &now); err != nil {
			return err
		}
		if c.JSON {
			return plainjson.NewEncoder(tty.Out).Encode(now)
		}
		_, err := fmt.Fprintf(tty.Out, textAccepted, name, terminal.Cell(strings.Join(now.Accepted, ", ")))
		return err
	})
}

type mcpLogin struct {
	Name    string `arg:"" help:"The server's name."`
	Address string `arg:"" optional:"" help:"The address where the browser ended up, to finish a sign-in."`
	Issuer  string `placeholder:"URL" help:"Agree to sign in at this authorization server from now on, instead of the previous one."`
}

// Help shows examples.
func (mcpLogin) Help() string {
	return examples("parley mcp login tracker", "parley mcp login tracker 'http://127.0.0.1:7275/mcp/tracker/callback?code=…&state=…'")
}

// Run signs in to an MCP server: it prints the address to open, and waits until the browser has come back to this
// server, or until the person pastes the address where the browser ended. With --json it doesn't wait. If the address
// where the browser ended is already given, Run finishes the sign-in with it instead.
func (l mcpLogin) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return withMCPClient(ctx, c, tty, func(ctx context.Context, server *client.Client) error {
		signIn := client.SignIn{Client: server, Server: l.Name, In: tty.In, Out: tty.Out}
		if l.Address != "" {
			return signIn.Finish(ctx, l.Address)
		}
		begun, err := signIn.Begin(ctx, l.Issuer)
		if err != nil {
			return err
		}
		if c.JSON {
			return plainjson.NewEncoder(tty.Out).Encode(begun)
		}
		return signIn.Await(ctx, begun)
	})
}
