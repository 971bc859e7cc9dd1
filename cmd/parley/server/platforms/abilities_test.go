package platforms

import (
	"testing"

	"parley/cmd/parley/config"
)

// The abilities of a channel follow from the current settings, without a request to its platform.
func TestAbilities(t *testing.T) {
	settings := func(stream string) *config.Config {
		c := &config.Config{Channels: map[string]config.Channel{}}
		for name, tokens := range map[string][2]string{"telegram": {"1:abc"}, "slack": {"xoxb-1", "xapp-1"}, "discord": {"MTIz.abc.def"}} {
			c.Channels["my-"+name] = config.Channel{
				Name: "my-" + name, Platform: name, BotToken: config.Secret(tokens[0]), AppToken: config.Secret(tokens[1]),
				APIURL: "http://127.0.0.1:1", Stream: stream,
			}
		}
		return c
	}
	var known KnownAbilities
	for _, stream := range []string{"auto", "off"} {
		c := settings(stream)
		for range 2 {
			for name, want := range map[string]Abilities{
				"my-telegram": {Title: "Telegram", Length: 4096, Files: true, Buttons: true},
				"my-slack":    {Title: "Slack", Length: 4000, Files: true, Buttons: true},
				"my-discord":  {Title: "Discord", Length: 2000, Files: true, Buttons: true},
				"web":         {},
			} {
				want.Edits = want.Title != "" && stream == "auto"
				if got, err := known.Of(c, name); err != nil || got != want {
					t.Errorf("%s, %s: %+v, %v, want %+v", name, stream, got, err, want)
				}
			}
		}
	}
}
