package telegram

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"parley/channels"
	"parley/channels/backoff"
)

// An Account is the bot's own user, as Telegram describes it.
type Account struct {
	ID       int64  `json:"id"`
	Username string `json:"username"` // without @
	Name     string `json:"first_name"`
	// ReceivesGroupMessages says whether the bot also receives messages in groups that do not mention it; it does if its
	// privacy mode is off.
	ReceivesGroupMessages bool `json:"can_read_all_group_messages"`
}

// checkTimeout limits the call that asks Telegram who the bot is.
const checkTimeout = 10 * time.Second

// An identity is who the bot is: what is known about its account from the start, and what Telegram says.
type identity struct {
	*api
	name string // the channel's name
	id   int64  // the account's id, which is part of the token

	accountKnown chan struct{} // closed once account is set
	accountOnce  sync.Once
	account      atomic.Pointer[Account]
}

// Check asks Telegram who the bot is. If Telegram refuses the token, it returns a *channels.SendError with the
// fault Stop.
func (i *identity) Check(ctx context.Context) (Account, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var a Account
	err := i.call(ctx, "getMe", nil, &a)
	i.reached.Note(err)
	if err != nil {
		return Account{}, err
	}
	i.account.Store(&a)
	i.accountOnce.Do(func() { close(i.accountKnown) })
	return a, nil
}

// Invite returns a link that makes a person's first message to the bot "/start CODE"; "" while the bot's name isn't
// known.
func (i *identity) Invite(code string) string {
	a := i.account.Load()
	if a == nil || a.Username == "" {
		return ""
	}
	return "https://t.me/" + a.Username + "?start=" + code
}

// BotName returns the bot's name, with @; "" while it isn't known.
func (i *identity) BotName() string {
	if a := i.account.Load(); a != nil && a.Username != "" {
		return "@" + a.Username
	}
	return ""
}

// learnName asks Telegram for the bot's name until Telegram answers, refuses the token, or
// ctx ends.
func (i *identity) learnName(ctx context.Context) {
	var wait backoff.Series
	for i.account.Load() == nil {
		_, err := i.Check(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		refusal, ok := errors.AsType[*channels.SendError](err)
		if ok && refusal.Fault == channels.Stop {
			return // the poll will get the same refusal and report it
		}
		i.log.LogAttrs(ctx, slog.LevelDebug, "the bot's own name is not known yet", slog.Any("error", err))
		if !backoff.Sleep(ctx, wait.Next(maxTelegramWait)) {
			return
		}
	}
}

// awaitUsername waits until the bot's username is known, and returns it. It fails only when ctx ends.
func (i *identity) awaitUsername(ctx context.Context) (string, error) {
	select {
	case <-i.accountKnown:
		return i.account.Load().Username, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// personID returns a Telegram user's id on the bus: CHANNEL:USER.
func (i *identity) personID(user int64) string { return i.name + ":" + strconv.FormatInt(user, 10) }
