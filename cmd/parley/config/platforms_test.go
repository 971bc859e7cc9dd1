package config_test

import (
	"parley/channels/discord"
	"parley/channels/slack"
	"parley/channels/telegram"
	"parley/channels/webhook"
	"parley/cmd/parley/config"
)

// platforms returns three platforms: one with one token, one with two tokens and members, and another one.
func platforms() []config.Platform {
	return []config.Platform{
		{
			Name: "telegram", Title: "Telegram", Receives: []string{"poll", "http"}, Tokens: []config.PlatformToken{{Key: "bot_token", Env: "TELEGRAM_BOT_TOKEN"}},
			IsUserID: telegram.IsUserID, UserIDRemedy: "write the number: the bot tells it to anyone it turns away",
			IsGroupID: telegram.IsGroupID, GroupIDRemedy: "write the number, which is negative",
		},
		{
			Name: "slack", Title: "Slack", Members: true, Receives: []string{"socket", "http"},
			Tokens: []config.PlatformToken{
				{Key: "bot_token", Env: "SLACK_BOT_TOKEN", Begins: "xoxb-"},
				{Key: "app_token", Env: "SLACK_APP_TOKEN", Begins: "xapp-", ChatOnly: true, Receive: "socket"},
				{Key: "signing_secret", Env: "SLACK_SIGNING_SECRET", ChatOnly: true, Receive: "http"},
			},
			OtherTokens: []string{"xoxp-"},
			IsUserID:    slack.IsUserID, UserIDRemedy: `write the member ID, such as "U0123456789": it's in the person's profile, under ⋮`,
		},
		{
			Name: "discord", Title: "Discord", Receives: []string{"socket"}, Tokens: []config.PlatformToken{{Key: "bot_token", Env: "DISCORD_BOT_TOKEN"}},
			IsUserID: discord.IsID, UserIDRemedy: "write the number: the bot tells it to anyone it turns away",
			IsGroupID: discord.IsID, GroupIDRemedy: "write the channel's number: turn on Developer Mode, and use Copy Channel ID",
		},
	}
}

// load calls config.Load with the options that the program adds.
func load(o config.Options) (*config.Config, error) {
	o.Platforms, o.CheckTemplate = platforms(), webhook.Check
	ruled(&o)
	return config.Load(o)
}
