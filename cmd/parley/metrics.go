package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
)

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
