package discord_test

import (
	"testing"

	"parley/channels"
	"parley/channels/discord"
)

// The error code decides whether a chat is told that its answer was refused, and in which words.
func TestRefusalOfEachCode(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]channels.Refusal{
		"10003": channels.NoSuchChat, "50001": channels.NotInChat, "50007": channels.PersonRefuses,
		"50013": channels.NoRights, "50083": channels.PlaceRefused, "404": channels.PlaceRefused, "50035": "", "400": "",
	} {
		if got := channels.RefusalOf((*discord.Channel)(nil), code); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}
