// Package chat tests conversations: each message is answered once and in order, even through kills. It also tests
// memory, the model's prompt, and the terminal.
package chat

import (
	"os"
	"testing"

	"parley/cmd/parley/parleytest"
)

func TestMain(m *testing.M) { os.Exit(parleytest.Main(m)) }
