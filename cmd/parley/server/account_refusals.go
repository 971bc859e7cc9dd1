package server

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/channels"
	"parley/cmd/parley/server/platforms"
)

const (
	// startGrace is how long after the start a refused token of a receiving channel ends the
	// server. Later, or if the channel only sends, a refused token is only an outage of that
	// channel.
	startGrace = time.Minute
	// refusedWait is how long the server waits before it tries a refused account again.
	refusedWait = time.Minute
)

// rerunAfterRefusal runs a channel's gateway or dispatcher until ctx is done, or until it returns an error. If the
// error is that the platform refuses the bot's account, rerunAfterRefusal runs it again after refusedWait; it returns
// that error only if the channel receives and the server has just started, see startGrace.
func (l *liveChannel) rerunAfterRefusal(ctx context.Context, on foundation, run func(context.Context) error) error {
	for {
		err := run(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		refused, ok := errors.AsType[*channels.SendError](err)
		if !ok || refused.Fault != channels.Stop {
			return err
		}
		if l.receive && time.Since(on.started) < startGrace {
			return platforms.RefusedError(on.settings.Load(), l.config, refused)
		}
		said := platforms.RefusedError(on.settings.Load(), l.config, refused).Remedy
		on.log.Error("the platform refuses this account; trying again", slog.String("channel", l.name), slog.String("code", refused.Code),
			slog.String("key", platforms.RefusedSetting(l.name, refused)), slog.String("remedy", said), slog.Duration("wait", refusedWait))
		l.lastWarning.Store(&said)
		l.refused.Store(true)
		select {
		case <-time.After(refusedWait):
			l.refused.Store(false)
		case <-ctx.Done():
			return nil
		}
	}
}
