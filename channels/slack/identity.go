package slack

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	slackgo "github.com/slack-go/slack"

	"parley/channels"
	"parley/channels/slack/files"
)

// An Account is the app's bot as Slack describes it.
type Account struct {
	Team     string // the workspace's id
	TeamName string
	URL      string // the workspace's address, such as https://example.slack.com/
	User     string // the id of the bot's user
	Bot      string // the bot's other id, which its messages contain in the field bot_id
	Username string // without @
	// MissingScopes lists the scopes that the app needs but, according to Slack, does not have.
	MissingScopes []string
}

// An identity knows who the bot is.
type identity struct {
	api              *slackgo.Client
	receivesMessages bool                   // whether messages are received: over sockets or by requests
	reachability     *channels.Reachability // whether the last call reached Slack
	account          atomic.Pointer[Account]
	log              *slog.Logger
}

// Check asks Slack who the bot is. If Slack refuses the token, it returns a *channels.SendError with the fault
// Stop.
func (i *identity) Check(ctx context.Context) (Account, error) {
	ctx, t, done := startCall(ctx)
	defer done()
	r, err := i.api.AuthTestContext(ctx)
	if err != nil {
		err := asRepeatable(sendError(err, t))
		i.reachability.Note(err)
		return Account{}, err
	}
	i.reachability.Note(nil)
	a := Account{Team: r.TeamID, TeamName: r.Team, URL: r.URL, User: r.UserID, Bot: r.BotID, Username: r.User, MissingScopes: missingScopes(r.Header, i.receivesMessages)}
	i.account.Store(&a)
	return a, nil
}

// current returns the bot's account; it asks Slack for it if it isn't known yet.
func (i *identity) current(ctx context.Context) (Account, error) {
	if a := i.account.Load(); a != nil {
		return *a, nil
	}
	return i.Check(ctx)
}

// BotName returns the names of the bot and its workspace; "" while they aren't known.
func (i *identity) BotName() string {
	if a := i.account.Load(); a != nil {
		return "@" + a.Username + " in " + a.TeamName
	}
	return ""
}

// await asks Slack who the bot is until Slack answers. It fails only when ctx ends or Slack refuses the token.
func (i *identity) await(ctx context.Context) (Account, error) {
	wait := new(retryWait)
	for {
		me, err := i.Check(ctx)
		if err == nil {
			return me, nil
		}
		refusal, ok := errors.AsType[*channels.SendError](err)
		if ok && refusal.Fault == channels.Stop {
			return me, err
		}
		if !wait.series.HasWaited() {
			i.log.LogAttrs(ctx, slog.LevelWarn, "Slack cannot be reached; trying on", slog.Any("error", err))
		}
		if !wait.pause(ctx, err) {
			return me, ctx.Err()
		}
	}
}

// Connected reports whether the last check, send, or attempt to open a socket reached Slack.
func (i *identity) Connected() bool { return i.reachability.Connected() }

// SendScope is the scope that the bot's token needs for sending texts.
const SendScope = "chat:write"

// Scopes returns the scopes that the bot's token needs for receiving and answering.
func Scopes() []string {
	return []string{
		"app_mentions:read", "assistant:write", "channels:history", "channels:read", SendScope, "commands", files.Scope, "files:write", "groups:history", "groups:read",
		"im:history", "im:read", "im:write", "mpim:history", "mpim:read", "reactions:read", "reactions:write", "users:read",
	}
}

// missingScopes returns the scopes that the app needs but that the header of Slack's answer does not list. A header
// that lists no scopes proves nothing, because a proxy may have dropped it; the result is then nil.
func missingScopes(answer http.Header, receives bool) []string {
	granted := strings.FieldsFunc(answer.Get("X-OAuth-Scopes"), func(r rune) bool { return r == ',' || r == ' ' })
	if len(granted) == 0 {
		return nil
	}
	needed := Scopes()
	if !receives {
		needed = []string{SendScope}
	}
	return slices.DeleteFunc(needed, func(scope string) bool { return slices.Contains(granted, scope) })
}

// MaxButtons implements channels.ButtonShower: it returns how many buttons a message may have, and how many bytes
// of data each may carry. Without a receiver, nobody would learn of a press, so the result is then 0, 0.
func (i *identity) MaxButtons() (count, bytes int) {
	if !i.receivesMessages {
		return 0, 0
	}
	return maxButtons, maxButtonData
}
