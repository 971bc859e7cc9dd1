// Package terminal is what the commands share of the terminal that they run in:
// where they read and write, what they print of others' words, and which
// conversation is this terminal's.
package terminal

import (
	"io"
	"os"
)

// A Terminal is where a command reads and writes.
type Terminal struct {
	In       *os.File
	Out, Err io.Writer
}
