// Package chaos checks that a fleet of the real program keeps its promises while its processes and servers are killed.
//
// It runs several processes over a Redis and a PostgreSQL of its own, lets people talk to
// them, and kills and stops everything at random. At the end it compares every message,
// log, file and call with what docs/reliability.md promises.
//
// The files, in reading order: fleet_test.go starts processes, and starts them again when
// they end; chats_test.go is where people talk; storm_test.go is what they say, and the
// model that answers it; break_test.go and crashpoints_test.go kill and stop processes;
// lines_test.go cuts devices off; once_tool_test.go is a tool whose calls cannot be undone; asks_test.go has what people
// must approve or answer, jobs_test.go their background commands, tasks_test.go what they
// have sub-agents do, schedules_test.go their schedules, events_test.go the events that programs post to an agent,
// nodes_test.go what they have devices do, and recall_test.go what they want to be found again; archive_test.go has earlier days whose audit is archived meanwhile;
// audit_test.go, log_audit_test.go and nodes_audit_test.go check the results. In hostile_test.go a model that has read orders
// tries every way out that ways_test.go lists, with a secret. The tests are in storm_test.go (two minutes of
// chaos), chaos_test.go (the long run), takeover_test.go and paused_test.go (one failure
// at a time).
package chaos

import (
	"os"
	"testing"

	"parley/cmd/parley/parleytest"
)

func TestMain(m *testing.M) { os.Exit(parleytest.Main(m)) }
