// Package notifications tests alerts and other notifications that programs post over HTTP for people on three
// platforms, and the metrics of their delivery.
package notifications

import (
	"os"
	"testing"

	"parley/cmd/parley/parleytest"
)

func TestMain(m *testing.M) { os.Exit(parleytest.Main(m)) }
