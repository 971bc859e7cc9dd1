package mcpservers_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/server/mcpservers"
	"parley/tools"
)

// An MCP server that hasn't answered yet delays the first turns a little, only those of its own agents, and no later
// ones.
func TestASlowServerHoldsUpTheFirstTurnsForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mcpservers.New(mcpservers.Config{
			Settings: &config.Config{MCP: map[string]config.MCPServer{"slow": {Name: "slow", Command: "never", Agents: []string{"main"}}}},
			Log:      slog.New(slog.DiscardHandler),
		})
		base := tools.NewSet()
		for _, c := range []struct {
			agent string
			want  time.Duration
		}{{"other", 0}, {"main", time.Second}, {"main", 0}} {
			began := time.Now()
			if got := s.With(t.Context(), base, c.agent, false); len(got.Specs()) > 0 {
				t.Errorf("there are tools: %v", got.Specs())
			}
			if took := time.Since(began); took != c.want {
				t.Errorf("a turn of %s waited for %s, want %s", c.agent, took, c.want)
			}
		}
	})
}
