package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"parley/channels"
	"parley/channels/gateway"
	"parley/cmd/parley/config"
)

// openLines makes the channels of a configuration. The book is what some of
// them must remember.
func openLines(cfg *config.Config, b book, log *slog.Logger) ([]*line, error) {
	var lines []*line
	for _, c := range channelsByName(cfg) {
		if !c.Built() {
			continue
		}
		trouble := &atomic.Pointer[string]{}
		ch, err := openChannel(c, b, withTroubles(log, trouble))
		if err != nil {
			key, wrong := settingAtFault(err)
			key = "channels." + c.Name + "." + key
			return nil, &settingError{where: originOf(cfg, key), key: key, remedy: wrong}
		}
		gate := &gateway.Gate{}
		gate.Set(accessOf(c))
		if err := gateway.CheckAccess(ch, accessOf(c)); err != nil && c.Mode == "chat" {
			key := "channels." + c.Name + ".access"
			return nil, &settingError{where: originOf(cfg, key), key: key, remedy: err.Error()}
		}
		lines = append(lines, &line{name: c.Name, channel: ch, gate: gate, receive: c.Mode == "chat", config: c, trouble: trouble})
	}
	return lines, nil
}

const (
	// startGrace is how long after the start a refused token of a channel that
	// receives stops it. Later, and of a channel that only sends, it is that
	// channel's outage, which the others do not suffer for.
	startGrace = time.Minute
	// refusedWait is how long a refused account is left alone.
	refusedWait = time.Minute
)

// persist runs a channel's gateway or dispatcher until ctx is done, again where
// its platform refuses the account in the middle of things.
func (s *server) persist(ctx context.Context, l *line, run func(context.Context) error) error {
	for {
		err := run(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		refused, ok := errors.AsType[*channels.SendError](err)
		if !ok || refused.Fault != channels.Stop {
			return err
		}
		if l.receive && time.Since(s.started) < startGrace {
			return s.refused(l, refused)
		}
		s.log.Error("the platform refuses this account; trying again", slog.String("channel", l.name), slog.String("code", refused.Code),
			slog.String("key", faultyKey(l.name, refused)), slog.String("remedy", remedyOf(l.config.Platform, refused)), slog.Duration("wait", refusedWait))
		said := remedyOf(l.config.Platform, refused)
		l.trouble.Store(&said)
		l.down.Store(true)
		select {
		case <-time.After(refusedWait):
			l.down.Store(false)
		case <-ctx.Done():
			return nil
		}
	}
}

// probeEvery is how often a platform is tried that was not reached.
const probeEvery = 30 * time.Second

// probe asks the platform of a channel that only sends who the bot is: at the
// start, so that a token that is refused is told before the first alert is, and
// again while it is not reached, since else only a message would find out that
// it is back.
func (s *server) probe(ctx context.Context, l *line) {
	for told := false; ; {
		if !told || !channels.Connected(l.channel) {
			_, err := account(ctx, l.config.Platform, l.channel)
			refused, ok := errors.AsType[*channels.SendError](err)
			if ok && refused.Fault == channels.Stop && !told {
				s.log.Error("the platform refuses this account; the other channels go on", slog.String("channel", l.name),
					slog.String("code", refused.Code), slog.String("key", faultyKey(l.name, refused)))
			}
			if err != nil {
				said := err.Error()
				l.trouble.Store(&said)
			}
			told = true
		}
		select {
		case <-time.After(probeEvery):
		case <-ctx.Done():
			return
		}
	}
}

// refused makes of a platform's refusal an error that names the setting.
func (s *server) refused(l *line, refused *channels.SendError) error {
	key := faultyKey(l.name, refused)
	return &settingError{where: originOf(s.settings.Load(), key), key: key, remedy: remedyOf(l.config.Platform, refused)}
}

// faultyKey is the setting for which a platform refuses an account.
func faultyKey(channel string, refused *channels.SendError) string {
	return "channels." + channel + "." + cmp.Or(refused.Setting, "bot_token")
}

func remedyOf(platform string, refused *channels.SendError) string {
	return fmt.Sprintf("%s refuses this token (%s): %s", platform, refused.Code,
		cmp.Or(refused.Remedy, "set the one that the platform gave you"))
}

// commandPrefix is what people begin a command with on a channel.
func (s *server) commandPrefix(channel string) string {
	for _, l := range s.channels {
		if l.name == channel {
			return channels.CommandPrefix(l.channel)
		}
	}
	return "/"
}

const checkTimeout = 20 * time.Second
