package server

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"parley/cmd/parley/config"
)

// reloading reads the configuration again at each SIGHUP.
type reloading struct {
	foundation
	read  func() (*config.Config, error)
	parts []part
}

// meet implements host.
func (r *reloading) meet(all []part) { r.parts = all }

// Run waits for SIGHUP until ctx is done.
func (r *reloading) Run(ctx context.Context) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-hup:
			r.reload()
		case <-ctx.Done():
			return nil
		}
	}
}

// reload reads the configuration again and applies what can be changed while serving, such as who may talk to the
// bot, limits, and rules for tools. If the file is invalid, or one part cannot accept it, nothing changes.
func (r *reloading) reload() {
	read, err := r.read()
	if err != nil {
		r.log.Error("the new configuration is not good; the old one stays in force", slog.Any("error", err))
		return
	}
	next, changes, err := config.Reload(r.settings.Load(), read)
	if err != nil {
		r.log.Error("the new configuration cannot be taken over; the old one stays in force", slog.Any("error", err))
		return
	}
	var all []func()
	for _, p := range r.parts {
		follows, ok := p.is.(reloader)
		if !ok {
			continue
		}
		apply, err := follows.Reload(next)
		if err != nil {
			r.log.Error("a part of the server cannot take the new configuration; the old one stays in force", slog.String("part", p.name), slog.Any("error", err))
			return
		}
		all = append(all, apply)
	}
	for _, apply := range all {
		apply()
	}
	r.log.Info("configuration read again", slog.Int("changed", len(changes.Live)), slog.Int("need_restart", len(changes.Restart)))
	for _, key := range changes.Restart {
		r.log.Warn("this setting takes effect at the next start", slog.String("key", key))
	}
}
