package server

import (
	"context"
	"errors"
	"sync"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/tools/sandbox"
)

// commandSandbox is the sandbox in which commands run on this machine. Finding it takes longer than everything else
// at the start, so a caller that needs it waits.
type commandSandbox struct {
	settings *config.Config
	// open waits until the sandbox is known, and returns it, or nil if no commands are run.
	open func() (sandbox.Sandbox, error)
}

// findSandbox starts finding out which sandbox works. killed is called with the reason when the sandbox has ended a
// command.
func findSandbox(c Config, e *startup, killed func(reason string)) *commandSandbox {
	w := &commandSandbox{settings: c.Settings, open: func() (sandbox.Sandbox, error) { return nil, nil }}
	if !c.Commands || !c.Role.Works() && c.Role != Reader {
		return w
	}
	w.open = sync.OnceValues(func() (box sandbox.Sandbox, err error) {
		found := make(chan struct{})
		e.begin(func(ctx context.Context) {
			defer close(found)
			box, err = home.OpenSandbox(ctx, c.Settings, c.Role == Terminal || c.Settings.RunsCommands(), c.Log, killed)
		})
		<-found
		return box, err
	})
	if c.Role != Reader { // a Reader's command may need no sandbox
		e.begin(func(context.Context) { _, _ = w.open() }) // a caller who needs the sandbox calls open again, and gets the error
	}
	return w
}

// Load waits for the sandbox if the settings ask for one that this machine may not support.
func (w *commandSandbox) Load(context.Context) error {
	if !home.SandboxMayBeWrong(w.settings) {
		return nil
	}
	_, err := w.open()
	return err
}

// Run implements sandbox.Sandbox; it fails if no sandbox works on this machine.
func (w *commandSandbox) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	box, err := w.open()
	if err == nil && box == nil {
		err = errors.New("no sandbox works on this machine: parley doctor says what's missing")
	}
	if err != nil {
		return sandbox.Result{}, err
	}
	return box.Run(ctx, c)
}
