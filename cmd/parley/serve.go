package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"time"

	"golang.org/x/term"

	"parley/cmd/parley/config"
	"parley/cmd/parley/garbage"
	"parley/cmd/parley/home"
	"parley/cmd/parley/mapped"
	"parley/cmd/parley/models"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/unit"
)

type serveCmd struct {
	Role   string `help:"What this process does: gateway, worker, or both." default:"gateway,worker" placeholder:"ROLES"`
	Listen string `help:"Where HTTP listens, instead of what is configured." placeholder:"ADDR"`

	Install bool `help:"Write the unit by which systemd starts it and keeps it running, and serve nothing now."`
	Yes     bool `help:"With --install: replace a unit that is there."`
}

// Help shows examples.
func (serveCmd) Help() string {
	return examples("parley serve", "parley serve --config /etc/parley/parley.toml", "parley serve --role worker", "parley serve --install")
}

// Run serves the configured channels until SIGINT or SIGTERM.
func (c serveCmd) Run(ctx context.Context, flags *cli, tty terminal.Terminal) error {
	role, err := parseRole(c.Role)
	if err != nil {
		return err
	}
	if c.Install {
		return c.install(flags, tty)
	}
	load := func() (*config.Config, error) {
		return loadConfig(config.Options{File: flags.Config, Home: flags.Home, LookLocal: true})
	}
	cfg, err := load()
	if err != nil {
		return err
	}
	if err := role.Check(cfg); err != nil {
		return err
	}
	log := newLogger(cfg, tty.Err)
	for _, notice := range cfg.Notices() {
		log.Warn("setting", slog.String("notice", notice))
	}
	answerers, err := serveModels(ctx, cfg, log)
	if err != nil {
		return err
	}
	if len(cfg.Channels) == 0 && role.Receives() {
		fmt.Fprintf(tty.Err, "\nNothing is configured yet that anybody could talk to: there is no [channels.NAME].\nTo begin, set TELEGRAM_BOT_TOKEN, or write a parley.toml as the README shows, and say parley config check.\nparley chat talks to the agent here, in a terminal.\n%s\n\n", home.DescribeConfig(cfg))
	}
	s, err := server.Open(ctx, server.Config{Settings: cfg, Models: answerers, Role: role, Commands: true, Build: thisBuild(), Log: log})
	if err != nil && ctx.Err() != nil {
		log.Info("told to end before serving began", slog.Any("error", err))
		return nil
	}
	if err != nil {
		return err
	}
	defer garbage.Adapt()()
	defer mapped.ReleaseAfterStart(log)()
	err = s.Serve(ctx, server.Options{Listen: c.Listen, Reload: load, Offers: tty.Err})
	if closed := s.Close(); err == nil {
		err = closed
	}
	return err
}

// install writes the systemd unit that starts "parley serve" with this configuration.
func (c serveCmd) install(flags *cli, tty terminal.Terminal) error {
	if runtime.GOOS != "linux" {
		return errors.New("--install writes a unit of systemd, which is Linux's")
	}
	// The machine's service alone may read its secrets.
	cfg, err := loadConfig(config.Options{File: flags.Config, Home: flags.Home, LookLocal: true, WithoutSecrets: true})
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	s := unit.Service{Program: program, Config: cfg.File, Home: cfg.Home, Root: os.Geteuid() == 0}
	path, err := s.Path(os.Getenv)
	if err != nil {
		return err
	}
	err = s.Write(path, c.Yes)
	if errors.Is(err, os.ErrExist) {
		if err := confirm(tty, false, path+" is there already, and differs. Replace it?"); err != nil {
			return err
		}
		err = s.Write(path, true)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(tty.Out, "Written: %s. To start it:\n\n", path)
	for _, line := range s.Commands() {
		fmt.Fprintln(tty.Out, "  "+line)
	}
	return nil
}

// parseRole reads the value of --role; its error is a usageError.
func parseRole(list string) (server.Role, error) {
	role, err := server.ParseRole(list)
	if err != nil {
		return "", &usageError{err.Error()}
	}
	return role, nil
}

// serveModels returns the models of a server; an agent for which none is configured has none. If
// no agent has any, the server only sends messages and answers none.
func serveModels(ctx context.Context, cfg *config.Config, log *slog.Logger) (models.Lists, error) {
	if !cfg.AnyModel() {
		return nil, nil
	}
	lists, err := models.New(ctx, cfg, log)
	maps.DeleteFunc(lists, func(agent string, _ []models.Model) bool { return !cfg.HasModel(agent) })
	return lists, err
}

// newLogger returns a logger that writes text to a terminal and JSON elsewhere, unless
// the format is configured.
func newLogger(cfg *config.Config, out io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: cfg.Log.Level, ReplaceAttr: formatDurations}
	text := cfg.Log.Format == "text"
	if f, ok := out.(*os.File); ok && cfg.Log.Format == "" {
		text = term.IsTerminal(int(f.Fd()))
	}
	if text {
		return slog.New(slog.NewTextHandler(out, o))
	}
	return slog.New(slog.NewJSONHandler(out, o))
}

// formatDurations makes a log write durations as people do, such as 1.5s; in JSON they would be
// numbers of nanoseconds.
func formatDurations(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().String())
	}
	return a
}

// errorLogger returns the logger of commands whose output is their result: it logs nothing but
// errors.
func errorLogger(out io.Writer) *slog.Logger {
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
