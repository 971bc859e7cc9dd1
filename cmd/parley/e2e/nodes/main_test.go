// Package nodes tries devices that run calls for agents: a real server and a real node, which are killed in between.
package nodes

import (
	"os"
	"testing"

	"parley/cmd/parley/parleytest"
)

func TestMain(m *testing.M) { os.Exit(parleytest.Main(m)) }
