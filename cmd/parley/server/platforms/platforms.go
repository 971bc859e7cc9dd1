// Package platforms is the table of the platforms that a channel can be on: which settings each needs, how to make
// its adapter, and how to ask the platform who the bot is. Only this package names the adapters.
package platforms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parley/channels"
	"parley/channels/discord"
	"parley/channels/slack"
	"parley/channels/telegram"
	"parley/cmd/parley/config"
	"parley/deploy"
)

// A Book stores what adapters must remember.
type Book interface {
	slack.JoinedThreads
	slack.Cursors
	discord.Book
	telegram.Book
}

// AdapterParts holds what an adapter needs besides the settings of its channel. If all of it is missing, the
// adapter can only ask the platform who the bot is.
type AdapterParts struct {
	Book    Book
	Mention channels.MentionIn
	Log     *slog.Logger
}

// A platform says everything that the program must know about a chat platform outside its adapter's folder. To add
// a platform, add a row to platforms, below.
type platform struct {
	// Platform is used to check the settings of its channels.
	config.Platform
	// page is the file below docs that explains how to set the platform up.
	page string
	// steps are instructions for people: how to make a bot on the platform and find its tokens.
	steps []string
	// manifest is the text that people paste in one of the steps; "" if they paste nothing.
	manifest string
	// invitation returns the link with which people add the bot to the place where they are. If it is nil, there is
	// none.
	invitation func(ctx context.Context, ch channels.Channel) (string, error)
	// open makes the adapter of a channel. An error about a setting other than the bot's
	// token is a *settingError.
	open func(c config.Channel, g AdapterParts) (channels.Channel, error)
	// account asks the platform who the bot is.
	account func(ctx context.Context, ch channels.Channel) (string, error)
	// examine checks, for the command doctor, what else the bot needs from the platform. Its error is the
	// platform's refusal or a *LackError. If examine is nil, nothing is checked.
	examine func(ctx context.Context, c config.Channel, ch channels.Channel, known []channels.Chat) error
}

// platforms returns the platforms that a channel can be on, in the order in which errors offer them.
func platforms() []platform {
	return []platform{
		{
			Platform: config.Platform{
				Name: "telegram", Title: "Telegram", Receives: []string{"poll", "http"}, Tokens: []config.PlatformToken{{Key: "bot_token", Env: "TELEGRAM_BOT_TOKEN"}},
				IsUserID: telegram.IsUserID, UserIDRemedy: "write the number: the bot tells it to anyone it turns away",
				IsGroupID: telegram.IsGroupID, GroupIDRemedy: "write the number, which is negative: parley chats lists the groups where people have talked to the bot",
			},
			steps: telegramSteps(),
			page:  "channels/telegram.md", open: openTelegram, account: telegramAccount, examine: examineTelegram,
		},
		{
			Platform: config.Platform{
				Name: "slack", Title: "Slack", Members: true, Receives: []string{"socket", "http"},
				Tokens: []config.PlatformToken{
					{Key: "bot_token", Env: "SLACK_BOT_TOKEN", Begins: "xoxb-"},
					{Key: "app_token", Env: "SLACK_APP_TOKEN", Begins: "xapp-", ChatOnly: true, Receive: "socket"},
					{Key: "signing_secret", Env: "SLACK_SIGNING_SECRET", ChatOnly: true, Receive: "http"},
				},
				OtherTokens: []string{"xoxp-"}, // a person's token
				IsUserID:    slack.IsUserID, UserIDRemedy: `write the member ID, such as "U0123456789": it's in the person's profile, under ⋮`,
				IsGroupID: slack.IsGroupID, GroupIDRemedy: `write the channel's ID, such as "C0123456789": it's at the bottom of the channel's details`,
			},
			steps:    slackSteps(),
			manifest: withoutComments(deploy.SlackManifest()),
			page:     "channels/slack.md", open: openSlack, account: slackAccount, examine: examineSlack,
		},
		{
			Platform: config.Platform{
				Name: "discord", Title: "Discord", Receives: []string{"socket"}, Tokens: []config.PlatformToken{{Key: "bot_token", Env: "DISCORD_BOT_TOKEN"}},
				IsUserID: discord.IsID, UserIDRemedy: "write the number: the bot tells it to anyone it turns away",
				IsGroupID: discord.IsID, GroupIDRemedy: "write the channel's number: turn on Developer Mode, and use Copy Channel ID",
			},
			steps: discordSteps(),
			invitation: func(ctx context.Context, ch channels.Channel) (string, error) {
				return ch.(*discord.Channel).Invitation(ctx)
			},
			page: "channels/discord.md", open: openDiscord, account: discordAccount, examine: examineDiscord,
		},
	}
}

// Settings returns, for each platform, the description used to check the settings of its channels.
func Settings() []config.Platform {
	var all []config.Platform
	for _, p := range platforms() {
		all = append(all, p.Platform)
	}
	return all
}

// Names returns the names of the platforms, in the order of the table.
func Names() []string {
	var names []string
	for _, p := range platforms() {
		names = append(names, p.Name)
	}
	return names
}

// Page returns the file below docs that explains a platform; "" if the platform is unknown.
func Page(platform string) string {
	p, _ := platformNamed(platform)
	return p.page
}

// Steps returns instructions for people: how to make a bot on a platform and find its tokens.
func Steps(platform string) []string {
	p, _ := platformNamed(platform)
	return p.steps
}

// Manifest returns the text that people paste in one of a platform's steps; "" if they paste nothing.
func Manifest(platform string) string {
	p, _ := platformNamed(platform)
	return p.manifest
}

// withoutComments returns a manifest without its comment lines.
func withoutComments(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// Invitation asks a channel's platform for the link with which people add the bot to the place where they are; ""
// if the platform has none.
func Invitation(ctx context.Context, platform string, ch channels.Channel) (string, error) {
	p, ok := platformNamed(platform)
	if !ok || p.invitation == nil {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return p.invitation(ctx, ch)
}

// platformNamed returns a platform's row; false for channels that are on no platform, such as the terminal.
func platformNamed(name string) (platform, bool) {
	for _, p := range platforms() {
		if p.Name == name {
			return p, true
		}
	}
	return platform{}, false
}

// Open makes the adapter of a channel, which connects it to its platform. If the error is caused by a setting,
// SettingAtFault says by which one.
func Open(c config.Channel, g AdapterParts) (channels.Channel, error) {
	p, ok := platformNamed(c.Platform)
	if !ok {
		return nil, fmt.Errorf("there's no platform %q", c.Platform)
	}
	return p.open(c, g)
}

// answerTimeout limits how long Invitation, Account and Examine wait for a platform.
const answerTimeout = 20 * time.Second

// Account asks a channel's platform who the bot is there, and returns the bot's name; "" if the
// platform cannot be asked.
func Account(ctx context.Context, platform string, ch channels.Channel) (string, error) {
	p, ok := platformNamed(platform)
	if !ok {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return p.account(ctx, ch)
}

// Examine checks what the bot needs from a channel's platform besides its account, such as permissions, including
// those in the channel's known chats. Its error is the platform's refusal or a *LackError.
func Examine(ctx context.Context, c config.Channel, ch channels.Channel, known []channels.Chat) error {
	p, ok := platformNamed(c.Platform)
	if !ok || p.examine == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return p.examine(ctx, c, ch, known)
}

// A LackError says what the bot does not get from a platform, and what to do about it.
type LackError struct {
	Lack, Remedy string
	// Perhaps says that the bot may have it anyway once it serves.
	Perhaps bool
}

// Error returns what is missing.
func (e *LackError) Error() string { return e.Lack }

// A settingError says that an adapter cannot be made because of a setting.
type settingError struct {
	key, wrong string
	err        error
}

func (e *settingError) Error() string { return e.err.Error() }
func (e *settingError) Unwrap() error { return e.err }

// SettingAtFault returns the setting because of which an adapter could not be made, and what is wrong with it. If err,
// which Open has returned, names no setting, that is the bot's token.
func SettingAtFault(channel string, err error) (key, wrong string) {
	key, wrong = "bot_token", err.Error()
	if setting, ok := errors.AsType[*settingError](err); ok {
		key, wrong = setting.key, setting.wrong
	}
	return "channels." + channel + "." + key, wrong
}

// RefusedSetting returns the setting, such as a token, because of which a platform refuses the
// bot's account on a channel.
func RefusedSetting(channel string, refused *channels.SendError) string {
	return "channels." + channel + "." + cmp.Or(refused.Setting, "bot_token")
}

// RefusalRemedy returns what to do when a platform refuses the bot's account.
func RefusalRemedy(refused *channels.SendError) string {
	return cmp.Or(refused.Remedy, "set the token that the platform gave you")
}

// RefusedError returns the error for a start at which a platform refuses the bot's account. It names the setting to
// change, and says what the operator can do.
func RefusedError(c *config.Config, channel config.Channel, refused *channels.SendError) *config.SettingError {
	key := RefusedSetting(channel.Name, refused)
	return &config.SettingError{Where: c.Origin(key), Key: key, Remedy: fmt.Sprintf("%s rejected this token (%s): %s",
		channel.Platform, refused.Code, RefusalRemedy(refused))}
}

func openTelegram(c config.Channel, g AdapterParts) (channels.Channel, error) {
	tc := telegram.Config{
		Name: c.Name, Token: string(c.BotToken), APIURL: c.APIURL, RateLimit: c.RateLimit, SendsOnly: c.Mode == "send", Mention: g.Mention, Log: g.Log,
	}
	if c.ByHTTP() {
		tc.Webhook = requestAddress(c)
	}
	if g.Book != nil {
		tc.Book = g.Book
	}
	return telegram.New(tc)
}

func telegramAccount(ctx context.Context, ch channels.Channel) (string, error) {
	a, err := ch.(*telegram.Channel).Check(ctx)
	return "@" + a.Username, err
}

func openSlack(c config.Channel, g AdapterParts) (channels.Channel, error) {
	sc := slack.Config{
		Name: c.Name, BotToken: string(c.BotToken), AppToken: string(c.AppToken), APIURL: c.APIURL, RateLimit: c.RateLimit, Mention: g.Mention, Log: g.Log,
	}
	if c.ByHTTP() {
		sc.AppToken, sc.SigningSecret = "", string(c.SigningSecret)
	}
	if g.Book != nil {
		sc.JoinedThreads, sc.Cursors = g.Book, g.Book
	}
	ch, err := slack.New(sc)
	if setting, ok := errors.AsType[*slack.SettingError](err); ok {
		return nil, &settingError{setting.Key, setting.Problem, err}
	}
	return ch, err
}

func slackAccount(ctx context.Context, ch channels.Channel) (string, error) {
	a, err := ch.(*slack.Channel).Check(ctx)
	return "@" + a.Username + " in " + a.TeamName, err
}

// examineSlack checks the scopes that the app was granted in Slack, and whether a socket to Slack can be opened.
func examineSlack(ctx context.Context, c config.Channel, ch channels.Channel, _ []channels.Chat) error {
	sl := ch.(*slack.Channel)
	a, err := sl.Check(ctx)
	// Somebody who only sends may have left out most of them.
	if err == nil && len(a.MissingScopes) > 0 && (c.Mode == "chat" || slices.Contains(a.MissingScopes, slack.SendScope)) {
		return &LackError{
			Lack:   "the app lacks the scopes " + strings.Join(a.MissingScopes, ", "),
			Remedy: "add them under OAuth & Permissions in the app's settings, and install the app again",
		}
	}
	if c.Mode != "chat" {
		return nil
	}
	if c.ByHTTP() {
		return examineAddress(ctx, c)
	}
	err = sl.CheckSocket(ctx)
	if refused, ok := errors.AsType[*channels.SendError](err); err == nil || ok && refused.Fault == channels.Stop {
		return err
	}
	return &LackError{
		Lack:   "can't open a socket: " + err.Error(),
		Remedy: "turn on Socket Mode in the app's settings, or check the network, any proxy, and api_url",
	}
}

func openDiscord(c config.Channel, g AdapterParts) (channels.Channel, error) {
	dc := discord.Config{
		Name: c.Name, Token: string(c.BotToken), APIURL: c.APIURL, RateLimit: c.RateLimit, SendsOnly: c.Mode == "send", Mention: g.Mention, Log: g.Log,
	}
	if g.Book != nil {
		dc.Book = g.Book
	}
	return discord.New(dc)
}

func discordAccount(ctx context.Context, ch channels.Channel) (string, error) {
	a, err := ch.(*discord.Channel).Check(ctx)
	return "@" + a.Username, err
}

// examineDiscord checks what the developer portal and the servers let the bot do.
func examineDiscord(ctx context.Context, c config.Channel, ch channels.Channel, known []channels.Chat) error {
	dc := ch.(*discord.Channel)
	lacking, err := dc.FindMissingRights(ctx)
	if err == nil {
		var ids []string
		for _, chat := range known {
			ids = append(ids, cmp.Or(chat.Address.Thread, chat.Address.Chat))
		}
		var there []discord.MissingRights
		there, err = dc.FindMissingRightsIn(ctx, ids)
		lacking = append(lacking, there...)
	}
	reads := true
	if err == nil && c.Mode == "chat" {
		if reads, err = dc.MayReadContent(ctx); err == nil {
			err = dc.CheckGateway(ctx)
		}
	}
	if refused, ok := errors.AsType[*channels.SendError](err); ok && refused.Fault == channels.Stop {
		return err
	}
	switch {
	case err != nil:
		return &LackError{Lack: "can't find out what the bot may do: " + err.Error(), Remedy: "check the network, any proxy, and api_url"}
	case !reads:
		return &LackError{Lack: "the bot isn't allowed to read what people write", Remedy: "turn on Message Content Intent under Bot in the developer portal"}
	case len(lacking) > 0:
		return lackOfRights(lacking)
	}
	return examineChats(ctx, c, dc)
}

// examineChats reports threads among the configured chats: a thread belongs to its
// channel, so naming a thread has no effect.
func examineChats(ctx context.Context, c config.Channel, dc *discord.Channel) error {
	var ids []string
	for _, chat := range c.Access.Chats {
		ids = append(ids, chat.Chat)
	}
	parents, err := dc.ThreadsAmong(ctx, ids)
	if err != nil {
		return &LackError{Lack: "can't find out which chats it should listen in: " + err.Error(), Remedy: "check the network, any proxy, and api_url"}
	}
	for _, id := range ids {
		if parent, is := parents[id]; is {
			return &LackError{
				Lack:   fmt.Sprintf("\"chats\" contains %s, which is a thread of the channel %s: it has no effect", id, parent),
				Remedy: fmt.Sprintf("write %q instead: a channel's settings apply in its threads", parent),
			}
		}
	}
	return nil
}

// maxNamed limits how many of the places in which a bot lacks something an error names.
const maxNamed = 3

// lackOfRights returns the error that names the places where the bot lacks permissions on Discord.
func lackOfRights(lacking []discord.MissingRights) *LackError {
	e := &LackError{Remedy: "give its role these permissions in the server's settings"}
	var all []string
	for _, l := range lacking[:min(len(lacking), maxNamed)] {
		where := " in the server " + l.Server
		switch {
		case l.Channel != "" && l.Server == "":
			where = " in the channel " + l.Channel + ", or there's no such channel"
		case l.Channel != "":
			where = " in " + l.Channel + " of the server " + l.Server
		}
		if l.Channel != "" {
			e.Remedy = "give its role these permissions in the server's settings, and in the channel's own settings if the channel overrides them"
		}
		all = append(all, strings.Join(l.Rights, ", ")+where)
	}
	e.Lack = "the bot lacks " + strings.Join(all, "; ")
	if more := len(lacking) - len(all); more > 0 {
		e.Lack += fmt.Sprintf("; other places where it lacks some: %d", more)
	}
	return e
}
