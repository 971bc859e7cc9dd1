//go:build !chaos

package crash

import "parley/tools"

// Points is where tests kill the process; there is none in this build.
func Points() func(string) { return nil }

// Tools are the tools that tests alone have; there are none in this build.
func Tools() []tools.Tool { return nil }
