//go:build !linux

package sandbox

import (
	"context"
	"errors"
)

// Main carries out what this program runs itself for: nothing, on this system.
func Main([]string) (code int, asked bool) { return 0, false }

// Open finds no walls: they are the Linux kernel's.
func Open(_ context.Context, cfg Config) (*Box, error) {
	if cfg.Mode == Auto {
		return nil, &AbsentError{[]Attempt{{Bubblewrap, errors.New("it needs Linux"), "run parley on Linux, or in a container"}}}
	}
	return nil, &SettingError{"sandbox.mode", string(cfg.Mode) + " needs Linux", `leave it out, or set "auto": then nothing is run`}
}

// Run runs nothing: Open gives no Box here.
func (b *Box) Run(context.Context, Command) (Result, error) {
	return Result{}, errors.ErrUnsupported
}
