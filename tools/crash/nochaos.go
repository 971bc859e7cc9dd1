//go:build !chaos

package crash

import "parley/tools"

// Points returns nil: in this build the process never kills itself.
func Points() func(string) { return nil }

// Tools returns none: only the build for tests has them.
func Tools() []tools.Tool { return nil }

// LocalWeb returns false: only in the build for tests can pages of this machine be read.
func LocalWeb() bool { return false }
