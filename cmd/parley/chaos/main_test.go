// Package chaos checks that a fleet of the real program keeps its promises while its processes and servers are killed.
//
// It runs several processes over a Redis and a PostgreSQL of its own, lets people talk to them, and kills and stops
// everything at random. At the end it compares every message, log, file and call with what docs/reliability.md
// promises.
//
// The files, in reading order: fleet_test.go starts processes, and restarts them when they end; chats_test.go has the
// chats of people; storm_test.go has their messages, and the model that answers them; break_test.go and
// crashpoints_test.go kill and stop processes; lines_test.go cuts devices off; once_tool_test.go has a tool whose calls
// cannot be undone; asks_test.go has what people must approve or answer, jobs_test.go background commands,
// tasks_test.go the tasks of sub-agents, schedules_test.go schedules, events_test.go the events that programs post to
// an agent, nodes_test.go the calls of devices, and recall_test.go searches for what was said; archive_test.go has
// earlier days whose audit is archived during a storm; audit_test.go, log_audit_test.go and nodes_audit_test.go check
// the results. In hostile_test.go, a model that has read orders and knows a secret tries every way to send it out that
// ways_test.go lists. The tests are in storm_test.go (two minutes of chaos), chaos_test.go (the long run),
// takeover_test.go and paused_test.go (one failure at a time).
package chaos

import (
	"os"
	"testing"

	"parley/cmd/parley/parleytest"
)

func TestMain(m *testing.M) { os.Exit(parleytest.Main(m)) }
