// Package chaos runs the real program as a fleet over a Redis and a PostgreSQL of
// the tests' own, kills and stops everything at random while people talk to it, and
// holds what came of it against every promise of docs/reliability.md.
//
// storm_test.go is the load and the model that answers it, chats_test.go where
// people talk; break_test.go and crashpoints_test.go say what is killed and stopped;
// once_tool_test.go is a tool whose calls cannot be taken back. audit_test.go and
// ledger_test.go check every message, log, file and call at the end.
package chaos

import (
	"os"
	"testing"

	"parley/cmd/parley/parleytest"
)

func TestMain(m *testing.M) { os.Exit(parleytest.Main(m)) }
