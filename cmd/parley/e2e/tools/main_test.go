// Package tools tests tools that depend on other programs or services: commands in the sandbox, MCP servers, skills and
// the web.
package tools

import (
	"os"
	"testing"

	"parley/cmd/parley/parleytest"
)

func TestMain(m *testing.M) { os.Exit(parleytest.Main(m)) }
