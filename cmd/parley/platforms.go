package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"parley/channels"
	"parley/channels/discord"
	"parley/channels/slack"
	"parley/channels/telegram"
	"parley/cmd/parley/config"
	"parley/cmd/parley/home"
	"parley/cmd/parley/webhook"
)

// A platform is everything about one that stands outside of its adapter's folder.
// A new one gets a row in platforms, below.
type platform struct {
	// Platform is what the settings of its channels are checked against.
	config.Platform
	// page is where it is explained, below docs.
	page string
	// open makes the adapter of a channel. Without a book the adapter is good for
	// asking who the bot is. An error about a setting other than the bot's token is
	// a *channelSetting.
	open func(c config.Channel, b home.Book, log *slog.Logger) (channels.Channel, error)
	// account asks the platform who the bot is.
	account func(ctx context.Context, ch channels.Channel) (string, error)
	// examine looks for doctor at what else the platform has to give, and returns
	// the finding with what it has found; nil looks at nothing.
	examine func(ctx context.Context, cfg *config.Config, c config.Channel, ch channels.Channel, f finding) finding
}

// platforms are those that a channel can be on, in the order in which errors
// offer them.
func platforms() []platform {
	return []platform{
		{
			Platform: config.Platform{
				Name: "telegram", Title: "Telegram", Tokens: []config.PlatformToken{{Key: "bot_token", Env: "TELEGRAM_BOT_TOKEN"}},
				IsUserID: telegram.IsUserID, UserIDRemedy: "write the number: the bot tells it to whom it refuses",
			},
			page: "channels/telegram.md", open: openTelegram, account: telegramAccount,
		},
		{
			Platform: config.Platform{
				Name: "slack", Title: "Slack", Members: true,
				Tokens: []config.PlatformToken{
					{Key: "bot_token", Env: "SLACK_BOT_TOKEN", Begins: "xoxb-"},
					{Key: "app_token", Env: "SLACK_APP_TOKEN", Begins: "xapp-", ChatOnly: true},
				},
				OtherTokens: []string{"xoxp-"}, // a person's
				IsUserID:    slack.IsUserID, UserIDRemedy: `write the member ID, as "U0123456789": it is in the person's profile, under ⋮`,
			},
			page: "channels/slack.md", open: openSlack, account: slackAccount, examine: examineSlack,
		},
		{
			Platform: config.Platform{
				Name: "discord", Title: "Discord", SendsOnly: true, Tokens: []config.PlatformToken{{Key: "bot_token", Env: "DISCORD_BOT_TOKEN"}},
			},
			page: "configuration.md", open: openDiscord, account: discordAccount,
		},
	}
}

// platformNamed is a platform's row; false for channels that are on none, such as
// the terminal.
func platformNamed(name string) (platform, bool) {
	for _, p := range platforms() {
		if p.Name == name {
			return p, true
		}
	}
	return platform{}, false
}

// loadConfig reads the configuration, checked against the platforms that there are.
func loadConfig(o config.Options) (*config.Config, error) {
	for _, p := range platforms() {
		o.Platforms = append(o.Platforms, p.Platform)
	}
	o.CheckTemplate = webhook.Check
	return config.Load(o)
}

// openChannel makes the adapter of a channel's platform. Without a book it is
// good for asking who the bot is.
func openChannel(c config.Channel, b home.Book, log *slog.Logger) (channels.Channel, error) {
	p, ok := platformNamed(c.Platform)
	if !ok {
		return nil, fmt.Errorf("there is no platform %q", c.Platform)
	}
	return p.open(c, b, log)
}

// account asks a channel's platform who the bot is; "" where it cannot be asked.
func account(ctx context.Context, platform string, ch channels.Channel) (string, error) {
	p, ok := platformNamed(platform)
	if !ok {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return p.account(ctx, ch)
}

// A channelSetting is a setting with which an adapter cannot be made.
type channelSetting struct {
	key, wrong string
	err        error
}

func (e *channelSetting) Error() string { return e.err.Error() }
func (e *channelSetting) Unwrap() error { return e.err }

// settingAtFault names the setting for which an adapter could not be made, and says
// what is wrong with it.
func settingAtFault(err error) (key, wrong string) {
	if setting, ok := errors.AsType[*channelSetting](err); ok {
		return setting.key, setting.wrong
	}
	return "bot_token", err.Error()
}

func openTelegram(c config.Channel, _ home.Book, log *slog.Logger) (channels.Channel, error) {
	return telegram.New(telegram.Config{Name: c.Name, Token: string(c.BotToken), APIURL: c.APIURL, RateLimit: c.RateLimit, Log: log})
}

func telegramAccount(ctx context.Context, ch channels.Channel) (string, error) {
	a, err := ch.(*telegram.Channel).Check(ctx)
	return "@" + a.Username, err
}

func openSlack(c config.Channel, b home.Book, log *slog.Logger) (channels.Channel, error) {
	sc := slack.Config{
		Name: c.Name, BotToken: string(c.BotToken), AppToken: string(c.AppToken), APIURL: c.APIURL, RateLimit: c.RateLimit, Log: log,
	}
	if b != nil {
		sc.Joins, sc.Cursors = b, b
	}
	ch, err := slack.New(sc)
	if setting, ok := errors.AsType[*slack.SettingError](err); ok {
		return nil, &channelSetting{setting.Key, setting.Wrong, err}
	}
	return ch, err
}

func slackAccount(ctx context.Context, ch channels.Channel) (string, error) {
	a, err := ch.(*slack.Channel).Check(ctx)
	return "@" + a.Username + " in " + a.TeamName, err
}

// examineSlack looks at the scopes that the app was granted, and whether a socket
// can be opened.
func examineSlack(ctx context.Context, cfg *config.Config, c config.Channel, ch channels.Channel, f finding) finding {
	sl := ch.(*slack.Channel)
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	a, err := sl.Check(ctx)
	// Who only sends may have left out most of them.
	if err == nil && len(a.Lacks) > 0 && (c.Mode == "chat" || slices.Contains(a.Lacks, slack.SendScope)) {
		f.State, f.Detail = wrong, "the app lacks the scopes "+strings.Join(a.Lacks, ", ")
		f.Remedy = "add them under OAuth & Permissions in the app's settings, and install the app again"
		return f
	}
	if c.Mode != "chat" {
		return f
	}
	err = sl.CheckSocket(ctx)
	refused, ok := errors.AsType[*channels.SendError](err)
	switch {
	case err == nil:
	case ok && refused.Fault == channels.Stop:
		return f.refused(cfg, c.Name, refused)
	default:
		f.State, f.Detail = wrong, "no socket can be opened: "+err.Error()
		f.Remedy = "switch Socket Mode on in the app's settings, or look at the network, a proxy, or api_url"
	}
	return f
}

func openDiscord(c config.Channel, _ home.Book, log *slog.Logger) (channels.Channel, error) {
	return discord.New(discord.Config{Name: c.Name, Token: string(c.BotToken), APIURL: c.APIURL, RateLimit: c.RateLimit, Log: log})
}

func discordAccount(ctx context.Context, ch channels.Channel) (string, error) {
	a, err := ch.(*discord.Channel).Check(ctx)
	return a.Username, err
}
