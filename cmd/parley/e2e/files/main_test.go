// Package files tries files that come and go with messages, the folders that agents work in, and
// undo.
package files

import (
	"os"
	"testing"

	"parley/cmd/parley/parleytest"
)

func TestMain(m *testing.M) { os.Exit(parleytest.Main(m)) }
