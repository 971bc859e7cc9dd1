package telegram_test

import (
	"testing"

	"parley/channels"
	"parley/channels/telegram"
)

// The error code decides whether a chat is told that its answer was refused, and in which words.
func TestRefusalOfEachCode(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]channels.Refusal{
		"chat_not_found": channels.NoSuchChat, "kicked": channels.NotInChat, "blocked": channels.PersonRefuses,
		"no_rights": channels.NoRights, "topic_closed": channels.PlaceRefused, "403": channels.PlaceRefused, "too_long": "", "400": "",
	} {
		if got := channels.RefusalOf((*telegram.Channel)(nil), code); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}
