package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"parley/agent/llm"
	"parley/channels"
	"parley/cmd/parley/config"
	"parley/cmd/parley/home"
)

type serveCmd struct {
	Role   string `help:"What this process does: gateway, worker, or both." default:"gateway,worker" placeholder:"ROLES"`
	Listen string `help:"Where HTTP listens, instead of what is configured." placeholder:"ADDR"`
}

// Run serves the configured channels until SIGINT or SIGTERM.
func (c serveCmd) Run(ctx context.Context, flags *cli, tty terminal) error {
	roles, err := rolesOf(c.Role)
	if err != nil {
		return err
	}
	load := func() (*config.Config, error) {
		return loadConfig(config.Options{File: flags.Config, Home: flags.Home, LookLocal: true})
	}
	cfg, err := load()
	if err != nil {
		return err
	}
	if err := checkRoles(cfg, roles); err != nil {
		return err
	}
	log := newLogger(cfg, tty.err)
	for _, notice := range cfg.Notices() {
		log.Warn("setting", slog.String("notice", notice))
	}
	model, err := serveModel(ctx, cfg, log)
	if err != nil {
		return err
	}
	if len(cfg.Channels) == 0 && roles[roleGateway] {
		fmt.Fprintf(tty.err, "\nNothing is configured yet that anybody could talk to: there is no [channels.NAME].\nTo begin, set TELEGRAM_BOT_TOKEN, or write a parley.toml as the README shows, and say parley config check.\nparley chat talks to the agent here, in a terminal.\n%s\n\n", home.WhichConfig(cfg))
	}
	h, err := home.Open(ctx, cfg, home.WorkspaceOverride{}, log)
	if err != nil {
		return err
	}
	if roles[roleWorker] && home.OwnRoot(cfg) {
		log.Warn("the conversations' files are in this process's own home, where other workers do not see them: set workspace.root to a directory that all share",
			slog.String("root", cfg.Workspace.Root))
	}
	lines, err := openEndpoints(cfg, h.Book, log)
	if err == nil {
		s := newServer(h, cfg, model, lines, log)
		s.roles = roles
		err = s.serve(ctx, load, c.Listen, tty)
	}
	if closed := h.Close(); err == nil {
		err = closed
	}
	return err
}

func rolesOf(list string) (map[string]bool, error) {
	roles := map[string]bool{}
	for role := range strings.SplitSeq(list, ",") {
		role = strings.TrimSpace(role)
		if role != roleGateway && role != roleWorker {
			return nil, &usageError{fmt.Sprintf("--role %s: want gateway, worker or both, with a comma between", list)}
		}
		roles[role] = true
	}
	return roles, nil
}

// checkRoles says what keeps a process of these roles from serving. A gateway
// needs no model; and of a home, which is one process's, nobody else does the rest.
func checkRoles(cfg *config.Config, roles map[string]bool) error {
	switch {
	case roles[roleGateway] && roles[roleWorker]:
		return cfg.CheckServe()
	case cfg.Bus.URL == "":
		return &home.SettingError{Key: "bus.url", Remedy: "not set, so no other process can do what --role leaves out: set [bus] url and [store] url, or leave --role out"}
	case roles[roleGateway]:
		return cfg.CheckGateway()
	}
	return cfg.CheckServe()
}

// serveModel is the model of a server; nil where none is configured, because
// then it only sends.
func serveModel(ctx context.Context, cfg *config.Config, log *slog.Logger) (llm.Model, error) {
	if !cfg.Model.Configured && !cfg.Model.Demo {
		return nil, nil
	}
	return newModel(ctx, cfg, log)
}

// serve runs the server until ctx is done, reads the configuration again at
// SIGHUP, and offers the bot to an owner where it has none.
func (s *server) serve(ctx context.Context, load func() (*config.Config, error), listen string, tty terminal) error {
	f, err := s.newHTTPAccess()
	if err != nil {
		return err
	}
	address := s.settings.Load().HTTP.Listen
	if listen != "" {
		address = listen
	}
	if !s.roles[roleGateway] {
		address = listen // a worker alone is asked nothing, unless it is told to listen
	}
	socket, port, err := f.listen(address)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel()
	beside.Go(func() { s.reloads(ctx, load, f.reloaded) })
	for _, l := range s.channels {
		switch {
		case !s.roles[roleGateway] || l.config.Platform == "":
		case l.receive:
			beside.Go(func() { s.offer(ctx, l, tty.err) })
		default:
			beside.Go(func() { s.probe(ctx, l) })
		}
	}
	name := "none"
	if s.model != nil {
		name = modelName(s.model)
	}
	s.log.Info("serving", slog.String("role", s.role()), slog.Int("channels", len(s.platforms())), slog.String("model", name), slog.String("http", address), slog.String("home", s.home.Dir))
	return s.run(ctx, s.stages(func(ctx context.Context) error { return f.serve(ctx, socket, port) })...)
}

// reloads reads the configuration again at each SIGHUP.
func (s *server) reloads(ctx context.Context, load func() (*config.Config, error), reloaded func()) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-hup:
			s.reload(load, reloaded)
		case <-ctx.Done():
			return
		}
	}
}

func modelName(m llm.Model) string { return m.Info().Name }

// offerEvery is how often it is looked whether a channel needs an owner's code.
const offerEvery = time.Minute

// offer prints a link or a code for the bot's owner while it has none: once, and
// again whenever the last one has expired.
func (s *server) offer(ctx context.Context, l *endpoint, out io.Writer) {
	for last := ""; ; {
		last = s.offerAgain(ctx, l, out, last)
		select {
		case <-time.After(offerEvery):
		case <-ctx.Done():
			return
		}
	}
}

// offerAgain prints what is on offer if that is not the last code, and returns it.
func (s *server) offerAgain(ctx context.Context, l *endpoint, out io.Writer, last string) string {
	if owned, err := s.hasOwner(ctx, l); err != nil || owned {
		return last
	}
	code, err := s.home.Book.StandingOffer(ctx, l.name)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Error("no owner's code could be made", slog.String("channel", l.name), slog.Any("error", err))
		}
		return last
	}
	if code == last {
		return last
	}
	if _, err := account(ctx, l.config.Platform, l.channel); err != nil {
		s.log.Debug("the bot's name is not known yet", slog.String("channel", l.name), slog.Any("error", err))
	}
	if link := channels.InviteLink(l.channel, code); link != "" {
		fmt.Fprintf(out, "\n%s has no owner yet. Open this link within the hour and press Start: whoever does so first owns the bot.\n\n  %s\n\n", l.name, link)
		return code
	}
	fmt.Fprintf(out, "\n%s has no owner yet. Say this to the bot within the hour: whoever does so first owns it.\n\n  %sstart %s\n\n", l.name, channels.CommandPrefix(l.channel), code)
	return code
}

// newLogger logs text to a terminal and JSON elsewhere, unless it is set.
func newLogger(cfg *config.Config, out io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: cfg.Log.Level, ReplaceAttr: readable}
	text := cfg.Log.Format == "text"
	if f, ok := out.(*os.File); ok && cfg.Log.Format == "" {
		text = term.IsTerminal(int(f.Fd()))
	}
	if text {
		return slog.New(slog.NewTextHandler(out, o))
	}
	return slog.New(slog.NewJSONHandler(out, o))
}

// readable writes durations as people do: JSON has them in nanoseconds else.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().String())
	}
	return a
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
