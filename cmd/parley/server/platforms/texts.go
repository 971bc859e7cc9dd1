// This file holds the text that people see from this package.

package platforms

// telegramSteps returns instructions, step by step, for making a bot on Telegram.
func telegramSteps() []string {
	return []string{
		"Open https://t.me/BotFather and send it /newbot.",
		"It asks for a name, which people will see, and a username, which has to end in “bot”.",
		"It answers with a token, such as 123456789:AA…. Copy it, and keep it secret, like a password.",
	}
}

// slackSteps returns instructions, step by step, for making a bot on Slack.
func slackSteps() []string {
	return []string{
		"Open https://api.slack.com/apps?new_app=1, choose From a manifest, and pick your workspace.",
		"Paste the manifest below (as YAML), click Next, then Create.",
		"Click Install to Workspace, then Allow.",
		"The bot token is under OAuth & Permissions and begins with xoxb-.",
		"The app token begins with xapp-. To get one, go to Basic Information, App-Level Tokens, and generate a token with the connections:write scope.",
	}
}

// discordSteps returns instructions, step by step, for making a bot on Discord.
func discordSteps() []string {
	return []string{
		"Open https://discord.com/developers/applications and click New Application.",
		"Under Bot, turn on Message Content Intent (below Privileged Gateway Intents), and save.",
		"On the same page, click Reset Token. Copy the token, and keep it secret, like a password.",
		"Next, you'll get the link that invites the bot to your server.",
	}
}

const (
	textWebhookUnknown = "Telegram won't say which webhook it has: "
	textUpdatesWaiting = "Telegram's last delivery failed: %s (updates waiting: %d)"
	textOtherWebhook   = "Telegram has another webhook, or none"
)
