// Package approvals tries what people are asked before a tool runs, and what rules and marks of
// untrusted text hold back.
package approvals

import (
	"os"
	"testing"

	"parley/cmd/parley/parleytest"
)

func TestMain(m *testing.M) { os.Exit(parleytest.Main(m)) }
