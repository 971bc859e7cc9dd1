package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"parley/agent"
	"parley/channels"
	"parley/channels/telegram"
	"parley/cmd/parley/config"
)

type serveCmd struct{}

// Run serves the configured channels until SIGINT or SIGTERM.
func (serveCmd) Run(ctx context.Context, c *cli, tty terminal) error {
	load := func() (*config.Config, error) {
		return config.Load(config.Options{File: c.Config, Home: c.Home, LookLocal: true})
	}
	cfg, err := load()
	if err != nil {
		return err
	}
	if err := cfg.CheckServe(); err != nil {
		return err
	}
	log := newLogger(cfg, tty.err)
	for _, notice := range cfg.Notices() {
		log.Warn("setting", slog.String("notice", notice))
	}
	lines, err := openLines(cfg, log)
	if err != nil {
		return err
	}
	home, err := openHome(ctx, cfg, "", log)
	if err != nil {
		return err
	}
	s := newServer(home, cfg, nil, log)
	s.channels = lines
	err = s.serve(ctx, load, tty)
	if closed := home.Close(); err == nil {
		err = closed
	}
	return err
}

// serve runs the server until ctx is done, reads the configuration again at
// SIGHUP, and offers the bot to an owner where it has none.
func (s *server) serve(ctx context.Context, load func() (*config.Config, error), tty terminal) error {
	model, err := newModel(ctx, s.settings.Load())
	if err != nil {
		return err
	}
	s.model = model
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	go func() {
		for {
			select {
			case <-hup:
				s.reload(load)
			case <-ctx.Done():
				return
			}
		}
	}()
	for _, l := range s.channels {
		if l.receive {
			go s.offer(ctx, l, tty.err)
		}
	}
	s.log.Info("serving", slog.Int("channels", len(s.channels)), slog.String("model", modelName(s.model)), slog.String("home", s.settings.Load().Home))
	return s.run(ctx)
}

func modelName(m agent.Model) string { return m.Info().Name }

// offer prints a link or a code for the bot's owner, once, where it has none.
func (s *server) offer(ctx context.Context, l *line, out io.Writer) {
	if owned, err := s.hasOwner(ctx, l); err != nil || owned {
		return
	}
	code, err := s.home.book.OfferOwner(ctx, l.name)
	if err != nil {
		s.log.Error("no owner's code could be made", slog.String("channel", l.name), slog.Any("error", err))
		return
	}
	checked, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if t, ok := l.channel.(*telegram.Channel); ok {
		if _, err := t.Check(checked); err != nil {
			s.log.Debug("the bot's name is not known yet", slog.String("channel", l.name), slog.Any("error", err))
		}
	}
	if link := channels.InviteLink(l.channel, code); link != "" {
		fmt.Fprintf(out, "\n%s has no owner yet. Open this link and press Start: whoever does so first owns the bot.\n\n  %s\n\n", l.name, link)
		return
	}
	fmt.Fprintf(out, "\n%s has no owner yet. Say this to the bot: whoever does so first owns it.\n\n  /start %s\n\n", l.name, code)
}

// openLines makes the channels of a configuration.
func openLines(cfg *config.Config, log *slog.Logger) ([]*line, error) {
	var lines []*line
	for _, c := range channelsByName(cfg) {
		if !c.Built() {
			continue
		}
		ch, err := telegram.New(telegram.Config{
			Name: c.Name, Token: string(c.BotToken), APIURL: c.APIURL, RateLimit: c.RateLimit, Log: log,
		})
		if err != nil {
			key := "channels." + c.Name + ".bot_token"
			return nil, &settingError{where: originOf(cfg, key), key: key, remedy: err.Error()}
		}
		gate := &channels.Gate{}
		gate.Set(accessOf(c))
		if err := channels.CheckAccess(ch, accessOf(c)); err != nil {
			key := "channels." + c.Name + ".access"
			return nil, &settingError{where: originOf(cfg, key), key: key, remedy: err.Error()}
		}
		lines = append(lines, &line{name: c.Name, channel: ch, gate: gate, receive: c.Mode == "chat", config: c})
	}
	return lines, nil
}

// newLogger logs text to a terminal and JSON elsewhere, unless it is set.
func newLogger(cfg *config.Config, out io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: cfg.Log.Level}
	text := cfg.Log.Format == "text"
	if f, ok := out.(*os.File); ok && cfg.Log.Format == "" {
		text = term.IsTerminal(int(f.Fd()))
	}
	if text {
		return slog.New(slog.NewTextHandler(out, o))
	}
	return slog.New(slog.NewJSONHandler(out, o))
}

// quiet is for commands whose output is their result: it logs what went wrong.
func quiet(out io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{
		Level: slog.LevelError,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.String(slog.TimeKey, a.Value.Time().Format(time.TimeOnly))
			}
			return a
		},
	}))
}
