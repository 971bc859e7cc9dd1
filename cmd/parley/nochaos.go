//go:build !chaos

package main

import "parley/tools"

// killPoint is where tests kill the process; there is none in this build.
func killPoint() func(string) { return nil }

// trials are the tools that tests alone have; there are none in this build.
func trials() []tools.Tool { return nil }
