package interaction_test

import (
	"testing"

	"parley/channels/slack/interaction"
)

func TestOnlyAWholeTSIsATime(t *testing.T) {
	for text, want := range map[string]string{
		"1700000000.000100": "2023-11-14 22:13:20.0001 +0000 UTC",
		"1700000000.5":      "0001-01-01 00:00:00 +0000 UTC",
		"1700000000":        "0001-01-01 00:00:00 +0000 UTC",
		"1700000000.00010x": "0001-01-01 00:00:00 +0000 UTC",
		"":                  "0001-01-01 00:00:00 +0000 UTC",
	} {
		if got := interaction.ParseTS(text).String(); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
