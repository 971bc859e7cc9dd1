// Package terminal provides what commands need from the terminal that they run in: where they read
// and write, how they print others' words safely, and which conversation belongs to this terminal.
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
