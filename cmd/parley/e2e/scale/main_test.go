// Package scale measures how long the program's lists, sums and erasures take in a home with very many conversations.
package scale

import (
	"os"
	"testing"

	"parley/cmd/parley/parleytest"
)

func TestMain(m *testing.M) { os.Exit(parleytest.Main(m)) }
