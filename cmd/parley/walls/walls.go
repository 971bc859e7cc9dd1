// Package walls opens the sandbox in which commands of agents run, as the settings
// describe it.
package walls

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"

	"parley/cmd/parley/config"
	"parley/tools/sandbox"
)

// SandboxConfig returns the configured sandbox in the form that sandbox.Open takes.
func SandboxConfig(c *config.Config, log *slog.Logger) sandbox.Config {
	s := c.Sandbox
	cfg := sandbox.Config{
		Mode: sandbox.Mode(s.Mode), MemoryMB: s.MemoryMB, Processes: s.Processes, TmpMB: s.TmpMB, Read: s.Read, Env: s.Env, Log: log,
	}
	switch {
	case slices.Contains(s.Network, config.FullNetwork):
		cfg.Network.Full = true
	case !slices.Contains(s.Network, config.NoNetwork):
		cfg.Network.Hosts = s.Network
	}
	return cfg
}

// MayBeWrong reports whether the settings ask for a sandbox that this machine may not have. Then
// nobody is served until that is known. If it returns false, Open's error is never about the
// settings.
func MayBeWrong(c *config.Config) bool {
	network := c.Sandbox.Network
	return c.Sandbox.Mode != string(sandbox.Auto) || len(network) > 0 && !slices.Contains(network, config.NoNetwork)
}

// DeferredSandbox is a sandbox that may not be open yet: a caller that runs a command waits for it.
type DeferredSandbox func() (sandbox.Sandbox, error)

// Run implements sandbox.Sandbox: it waits for the sandbox and runs a command in it.
func (l DeferredSandbox) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	box, err := l()
	if err != nil {
		return sandbox.Result{}, err
	}
	if box == nil {
		return sandbox.Result{}, errors.New("no sandbox works on this machine")
	}
	return box.Run(ctx, c)
}

// Open finds out which sandbox works on this machine. If none works there are no commands: it
// returns nil, and logs that for the operator. It returns a *config.SettingError if the machine
// cannot do what a setting demands. killed is called, with the reason, for each command that the
// sandbox ends.
func Open(ctx context.Context, c *config.Config, log *slog.Logger, killed func(reason string)) (sandbox.Sandbox, error) {
	cfg := SandboxConfig(c, log)
	cfg.OnKill = func(reason sandbox.Reason) { killed(string(reason)) }
	box, err := sandbox.Open(ctx, cfg)
	if absent, ok := errors.AsType[*sandbox.AbsentError](err); ok {
		level := slog.LevelInfo
		if c.RunsCommands() {
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
