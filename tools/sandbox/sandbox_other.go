//go:build !linux

package sandbox

import (
	"context"
	"errors"
)

// Main handles the commands with which this program runs itself: there are none on this system.
func Main([]string) (code int, asked bool) { return 0, false }

// Open returns an error, because sandboxes need the Linux kernel: an *AbsentError for Auto, else
// a *SettingError.
func Open(_ context.Context, cfg Config) (*Box, error) {
	if cfg.Mode == Auto {
		return nil, &AbsentError{[]Attempt{{Bubblewrap, errors.New("it needs Linux"), "run parley on Linux, or in a container"}}}
	}
	return nil, &SettingError{"sandbox.mode", string(cfg.Mode) + " needs Linux", `leave it out, or set "auto": then nothing is run`}
}

// Run returns an error; Open returns no Box on this system.
func (b *Box) Run(context.Context, Command) (Result, error) {
	return Result{}, errors.ErrUnsupported
}

// CheckPersonal returns nil: no commands run in any directory on this system.
func CheckPersonal(string) error { return nil }
