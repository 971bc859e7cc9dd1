//go:build !chaos

package crash

import (
	"time"

	"parley/tools"
)

// Points returns nil: this build never kills itself.
func Points() func(string) { return nil }

// Tools returns no tools: they exist only in the build for tests.
func Tools() []tools.Tool { return nil }

// MostRest returns 0: only the build for tests has nodes come back sooner than usual.
func MostRest() time.Duration { return 0 }

// LocalWeb returns false: only the build for tests can read pages on this machine.
func LocalWeb() bool { return false }
