// Package nodes tests devices that run calls for agents: a real server and a real node are killed in the middle of
// calls.
package nodes

import (
	"os"
	"testing"

	"parley/cmd/parley/parleytest"
)

func TestMain(m *testing.M) { os.Exit(parleytest.Main(m)) }
