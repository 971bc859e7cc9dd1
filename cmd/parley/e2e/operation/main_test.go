// Package operation tests what operators do and rely on: setup, start, configuration, doctor, usage and caps, audit,
// backup, migration, and who may read a home.
package operation

import (
	"os"
	"testing"

	"parley/cmd/parley/config"
	"parley/cmd/parley/parleytest"
	"parley/cmd/parley/server"
	"parley/cmd/parley/server/platforms"
)

func TestMain(m *testing.M) { os.Exit(parleytest.Main(m)) }

// loadConfig reads a configuration the way the program does.
func loadConfig(o config.Options) (*config.Config, error) {
	o.Platforms, o.Tools = platforms.Settings(), server.ToolNames
	return config.Load(o)
}
