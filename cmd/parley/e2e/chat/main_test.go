// Package chat tries conversations: that each message is answered once and in order, through kills
// too, what is remembered and told to the model, and the terminal.
package chat

import (
	"os"
	"testing"

	"parley/cmd/parley/parleytest"
)

func TestMain(m *testing.M) { os.Exit(parleytest.Main(m)) }
