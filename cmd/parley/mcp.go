package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"

	"parley/cmd/parley/client"
	"parley/cmd/parley/config"
	"parley/cmd/parley/mcpservers"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
)

type mcpCmd struct {
	List   mcpList   `cmd:"" default:"1" help:"The servers, their tools, and those that wait to be accepted."`
	Test   mcpTest   `cmd:"" help:"Ask a server for its tools now, and say what came of it."`
	Login  mcpLogin  `cmd:"" help:"Sign in to a server that wants it."`
	Accept mcpAccept `cmd:"" help:"Accept tools that are new or have changed, as they describe themselves now."`
}

type mcpList struct{}

// Help shows examples.
func (mcpList) Help() string { return examples("parley mcp list", "parley --json mcp list") }

// Run lists the servers.
func (mcpList) Run(ctx context.Context, c *cli, tty terminal.Terminal) error {
	return use(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		var found struct{ Servers []mcpservers.Server }
		if err := server.Get(ctx, "/v1/mcp", &found); err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(tty.Out).Encode(found.Servers)
		}
		if len(found.Servers) == 0 {
			_, err := fmt.Fprintln(tty.Out, "No MCP server is configured: see docs/tools.md.")
			return err
		}
		w := tabwriter.NewWriter(tty.Out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "SERVER\tTOOL\tSTATE\tDESCRIPTION")
		for _, s := range found.Servers {
			if s.Error != "" {
				fmt.Fprintf(w, "%s\t\tcannot be reached\t%s\n", s.Name, terminal.Cell(s.Error))
			}
			for _, t := range s.Tools {
				fmt.Fprintf(w, "%s\t%s\taccepted\t%s\n", s.Name, terminal.Cell(t.Name), terminal.Cell(t.Description))
			}
			for _, t := range s.Aside {
				fmt.Fprintf(w, "%s\t%s\tWAITS TO BE ACCEPTED\t%s\n", s.Name, terminal.Cell(t.Name), terminal.Cell(t.Description))
			}
		}
		return w.Flush()
	})
}

type mcpTest struct {
	Name string `arg:"" help:"The server's."`
}

// Help shows examples.
func (mcpTest) Help() string {
	return examples("parley mcp test github", "parley --json mcp test github")
}

// Run asks a server. It fails where that cannot be reached.
func (t mcpTest) Run(ctx context.Context, c *cli, tty terminal.Terminal) error {
	return useServers(ctx, c, tty, func(ctx context.Context, server *client.Client) error {
		var got mcpservers.Trial
		if err := server.Do(ctx, http.MethodPost, "/v1/mcp/"+url.PathEscape(t.Name)+"/test", "", nil, &got); err != nil {
			return err
		}
		if c.JSON {
			if err := json.NewEncoder(tty.Out).Encode(got); err != nil {
				return err
			}
		} else if got.Up {
			printTrial(tty.Out, got)
		}
		if !got.Up {
			return fmt.Errorf("the MCP server %s cannot be reached: %s", t.Name, terminal.Cell(got.Error))
		}
		return nil
	})
}

// printTrial says what a server has.
func printTrial(out io.Writer, t mcpservers.Trial) {
	fmt.Fprintf(out, "%s lists %d tools, after %d ms; agents with them: %s.\n", t.Name, t.Listed, t.Milliseconds, cmp.Or(strings.Join(t.Agents, ", "), "none"))
	for _, tool := range t.Tools {
		fmt.Fprintf(out, "  %s\n", terminal.Cell(tool.Name))
	}
	for _, tool := range t.Aside {
		fmt.Fprintf(out, "  %s WAITS TO BE ACCEPTED: parley mcp accept %s\n", terminal.Cell(tool.Name), t.Name)
	}
	for _, why := range t.Unusable {
		fmt.Fprintf(out, "  %d left out: %s\n", why.Tools, why.Reason)
	}
}

// useServers joins the home for a command that may run a server's program: with the
// settings' secrets, and a sandbox.
func useServers(ctx context.Context, c *cli, tty terminal.Terminal, do func(context.Context, *client.Client) error) error {
	cfg, err := c.load(tty, config.Options{})
	if err != nil {
		return err
	}
	return useHomeAs(ctx, server.Config{Settings: cfg, Role: server.Reader, Commands: true, Build: thisBuild(), Log: quiet(tty.Err)}, do)
}

type mcpAccept struct {
	Name string `arg:"" help:"The server's, or SERVER__TOOL for one of its tools."`
}

// Help shows examples.
func (mcpAccept) Help() string {
	return examples("parley mcp accept github", "parley mcp accept github__create_issue")
}

// Run accepts tools.
func (a mcpAccept) Run(ctx context.Context, c *cli, tty terminal.Terminal) error {
	return use(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		name, tool, _ := strings.Cut(a.Name, "__")
		var now struct{ Accepted []string }
		if err := server.Do(ctx, http.MethodPost, "/v1/mcp/"+url.PathEscape(name)+"/accept", "", map[string]string{"tool": tool}, &now); err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(tty.Out).Encode(now)
		}
		_, err := fmt.Fprintf(tty.Out, "Accepted of %s: %s.\n", name, terminal.Cell(strings.Join(now.Accepted, ", ")))
		return err
	})
}
