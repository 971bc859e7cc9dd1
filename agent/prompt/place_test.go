package prompt_test

import (
	"strings"
	"testing"

	"parley/agent/prompt"
)

// The model is told where a conversation takes place, and what can be done there.
func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		place prompt.Place
		want  string
		lacks []string
	}{
		{
			prompt.Place{Channel: "tg", Platform: "Telegram", Private: true, Length: 4096, Files: true, Buttons: true, Edits: true},
			"You talk in a private chat on Telegram (the channel `tg`): nobody reads it but you", []string{"No files", "thread"},
		},
		{
			prompt.Place{Channel: "ops", Platform: "Slack", Thread: true, Length: 12000},
			"You talk in a thread in a chat on Slack (the channel `ops`): several people may write there, and others read along.", []string{"Files can be sent", "buttons", "while you write"},
		},
		{prompt.Place{Channel: "web"}, "", nil},
	} {
		file := c.place.File()
		if !strings.HasPrefix(file.Text, c.want) || c.want == "" && file.Text != "" {
			t.Errorf("%+v: %s", c.place, file.Text)
		}
		for _, lack := range c.lacks {
			if strings.Contains(file.Text, lack) {
				t.Errorf("%+v says %q: %s", c.place, lack, file.Text)
			}
		}
	}
}
