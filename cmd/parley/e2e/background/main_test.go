// Package background tests turns that no person waits for: the turns of schedules, heartbeats, events, jobs and
// sub-agents.
package background

import (
	"os"
	"testing"

	"parley/cmd/parley/parleytest"
)

func TestMain(m *testing.M) { os.Exit(parleytest.Main(m)) }
