package telegram

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"parley/channels"
	"parley/channels/backoff"
)

// A menuEntry is one command in the list that Telegram's apps show when somebody types a slash.
type menuEntry struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// A menu is a list of commands and where it is shown: everywhere, or in people's private chats with the bot.
type menu struct {
	Commands []menuEntry       `json:"commands"`
	Scope    map[string]string `json:"scope"`
}

// commandMenus returns two lists of commands: the one for all chats, and the one for private chats.
func commandMenus() []menu {
	everywhere := menuEverywhere()
	alone := append(slices.Clone(everywhere), menuInPrivate()...)
	return []menu{
		{everywhere, map[string]string{"type": "default"}},
		{alone, map[string]string{"type": "all_private_chats"}},
	}
}

// menus sets the lists of commands on Telegram's side.
type menus struct{ *api }

// showMenu makes Telegram's apps list the commands, unless the bot's owner has set their own list, which stays. It
// retries until Telegram accepts or refuses the list.
func (ms *menus) showMenu(ctx context.Context) {
	var wait backoff.Series
	for ctx.Err() == nil {
		err := ms.setMenusOnce(ctx)
		refusal, ok := errors.AsType[*channels.SendError](err)
		if err == nil || ok && (refusal.Fault == channels.Stop || refusal.Fault == channels.Rejected) {
			if err != nil {
				ms.log.LogAttrs(ctx, slog.LevelDebug, "Telegram does not take the list of commands", slog.Any("error", err))
			}
			return
		}
		pause := wait.Next(maxTelegramWait)
		if ok {
			pause = max(pause, refusal.RetryAfter)
		}
		if !backoff.Sleep(ctx, pause) {
			return
		}
	}
}

// setMenusOnce makes one attempt to do what showMenu does.
func (ms *menus) setMenusOnce(ctx context.Context) error {
	for _, m := range commandMenus() {
		var shown []menuEntry
		if err := ms.call(ctx, "getMyCommands", menu{Scope: m.Scope}, &shown); err != nil {
			return err
		}
		if slices.Equal(shown, m.Commands) {
			continue
		}
		if slices.ContainsFunc(shown, func(e menuEntry) bool { return !slices.Contains(channels.Commands(), e.Command) }) {
			ms.log.LogAttrs(ctx, slog.LevelInfo, "the bot has a list of commands of its owner's, which is left as it is")
			continue
		}
		var done bool
		if err := ms.call(ctx, "setMyCommands", m, &done); err != nil {
			return err
		}
	}
	return nil
}
