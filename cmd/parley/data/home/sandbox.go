package home

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"

	"parley/cmd/parley/config"
	"parley/tools/sandbox"
)

// SandboxConfig returns the configured sandbox in the form that sandbox.Open accepts.
func SandboxConfig(c *config.Config, log *slog.Logger) sandbox.Config {
	s := c.Sandbox
	cfg := sandbox.Config{
		Mode: sandbox.Mode(s.Mode), MemoryMB: s.MemoryMB, Processes: s.Processes, TmpMB: s.TmpMB, Read: s.Read, Env: s.Env, Log: log,
	}
	for _, folder := range c.Folders() {
		cfg.Workspaces = append(cfg.Workspaces, folder.Dir)
	}
	switch {
	case slices.Contains(s.Network, config.FullNetwork):
		cfg.Network.Full = true
	case !slices.Contains(s.Network, config.NoNetwork):
		cfg.Network.Hosts = s.Network
	}
	return cfg
}

// SandboxMayBeWrong reports whether the settings ask for a sandbox that this machine may not support. Then the server
// serves nobody until OpenSandbox has returned. If SandboxMayBeWrong returns false, OpenSandbox's error is never about the settings.
func SandboxMayBeWrong(c *config.Config) bool {
	network := c.Sandbox.Network
	return c.Sandbox.Mode != string(sandbox.Auto) || len(network) > 0 && !slices.Contains(network, config.NoNetwork)
}

// OpenSandbox finds out which sandbox works on this machine. If none works, no commands are run: OpenSandbox returns nil, and logs
// that for the operator. It logs an error if commands are needed and root runs this program, because an ordinary
// user may get a sandbox; a warning if an agent has a capability for commands; otherwise just information. OpenSandbox
// returns a *config.SettingError if the machine cannot do what a setting demands. It has killed called, with the
// reason, for each command that the sandbox ends.
func OpenSandbox(ctx context.Context, c *config.Config, needed bool, log *slog.Logger, killed func(reason string)) (sandbox.Sandbox, error) {
	cfg := SandboxConfig(c, log)
	cfg.OnKill = func(reason sandbox.Reason) { killed(string(reason)) }
	box, err := sandbox.Open(ctx, cfg)
	if absent, ok := errors.AsType[*sandbox.AbsentError](err); ok {
		level := slog.LevelInfo
		switch {
		case needed && os.Geteuid() == 0:
			level = slog.LevelError
		case c.RunsCommands():
			level = slog.LevelWarn
		}
		log.Log(ctx, level, "no sandbox works on this machine, so agents have no tools that run commands, and read no documents",
			slog.Any("error", absent), slog.String("remedy", absent.Remedy()))
		return nil, nil
	}
	if wrong, ok := errors.AsType[*sandbox.SettingError](err); ok {
		where := cmp.Or(c.Origin(wrong.Key), c.Origin("sandbox.mode"))
		return nil, &config.SettingError{Where: where, Key: wrong.Key, Remedy: wrong.Wrong + ": " + wrong.Remedy}
	}
	if err != nil {
		return nil, err
	}
	log.Debug("commands run in a sandbox", slog.String("mode", string(box.Mode())))
	return box, nil
}
