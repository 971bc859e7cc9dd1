package slack_test

import (
	"testing"

	"parley/channels"
	"parley/channels/slack"
)

// The error code decides whether a chat is told that its answer was refused, and in which words.
func TestRefusalOfEachCode(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]channels.Refusal{
		"channel_not_found": channels.NoSuchChat, "not_in_channel": channels.NotInChat, "is_archived": channels.ChatArchived,
		"restricted_action": channels.PlaceRefused, "msg_too_long": "",
	} {
		if got := channels.RefusalOf((*slack.Channel)(nil), code); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}
