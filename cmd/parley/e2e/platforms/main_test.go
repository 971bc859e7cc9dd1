// Package platforms tries the bot on Slack, Discord and Telegram: how it is talked to there, what
// it shows, and what it does when a platform limits or refuses it.
package platforms

import (
	"os"
	"testing"

	"parley/cmd/parley/parleytest"
)

func TestMain(m *testing.M) { os.Exit(parleytest.Main(m)) }
