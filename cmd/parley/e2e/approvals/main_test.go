// Package approvals tests the approvals that people give before a tool runs, and how rules and marks of untrusted text
// restrict calls.
package approvals

import (
	"os"
	"testing"

	"parley/cmd/parley/parleytest"
)

func TestMain(m *testing.M) { os.Exit(parleytest.Main(m)) }
