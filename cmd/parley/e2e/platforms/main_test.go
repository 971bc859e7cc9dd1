// Package platforms tests the bot on Slack, Discord and Telegram: how people talk to it there, what it shows, and what
// it does when a platform limits or refuses its calls.
package platforms

import (
	"os"
	"testing"

	"parley/cmd/parley/parleytest"
)

func TestMain(m *testing.M) { os.Exit(parleytest.Main(m)) }
