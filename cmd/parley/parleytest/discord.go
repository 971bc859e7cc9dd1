package parleytest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/discord/discordtest"
)

// DiscordToken is the bot's token for Discord.
const DiscordToken = "NDI0Mg.SECRET-discord.x"

// NewDiscord makes a world whose platform is Discord, with a channel, two threads in it, and a
// forum. The user 1 owns the bot, and everybody may talk to it.
func NewDiscord(t *testing.T, script agenttest.Script, more string) (*World, *discordtest.Server) {
	t.Helper()
	w := New(t, script, "")
	dc := discordtest.New(DiscordToken)
	dc.AddChannel("100", "general")
	dc.AddThread("201", "100", "one")
	dc.AddThread("202", "100", "two")
	dc.AddForum("300", "ideas")
	dc.AddThread("301", "300", "a post")
	api, err := dc.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dc.Close() }) // it may already be closed
	text := fmt.Sprintf("[model]\nname = \"scripted\"\nbase_url = %q\napi_key = \"none\"\n[channels.discord]\nbot_token = \"${DISCORD}\"\napi_url = %q\nrate_limit = \"none\"\nintroduce = \"never\"\naccess = \"open\"\nowners = [1]\n[http]\nlisten = \"\"\n%s",
		w.Model.Start(t), api, more)
	if err := os.WriteFile(w.File, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return w, dc
}

// DiscordSaid waits until the bot has sent n messages to a channel, and returns them.
func DiscordSaid(t *testing.T, dc *discordtest.Server, channel string, n int) []discordtest.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	sent, err := dc.WaitSent(ctx, channel, n)
	if err != nil {
		t.Fatalf("channel %s has %+v, want %d messages: %v", channel, sent, n, err)
	}
	return sent
}

// DiscordTexts returns the texts of messages.
func DiscordTexts(sent []discordtest.Message) []string {
	var all []string
	for _, m := range sent {
		all = append(all, m.Text)
	}
	return all
}
