// Package background tries turns that nobody waits for: of schedules, heartbeats and events, of
// jobs and of sub-agents.
package background

import (
	"os"
	"testing"

	"parley/cmd/parley/parleytest"
)

func TestMain(m *testing.M) { os.Exit(parleytest.Main(m)) }
