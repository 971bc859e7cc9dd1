package console

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// A sizeMsg tells the prompt that the terminal's size may have changed. It does not contain the size: if two
// messages arrived in the wrong order, the second one would restore an old size.
type sizeMsg struct{}

// size returns the terminal's size; false if it has none.
func (w *window) size() (width, height int, ok bool) {
	width, height, err := term.GetSize(w.fd)
	return width, height, err == nil && width > 0 && height > 0
}

// followSize tells the prompt to check the terminal's size, now and whenever it changes, until stop is called.
func (w *window) followSize() (stop func()) {
	changes, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(changes, syscall.SIGWINCH)
	go func() {
		for {
			w.program.Send(sizeMsg{})
			select {
			case <-changes:
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(changes)
		close(done)
	}
}
