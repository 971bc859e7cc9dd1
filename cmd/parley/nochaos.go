//go:build !chaos

package main

// killPoint is where tests kill the process; there is none in this build.
func killPoint() func(string) { return nil }
