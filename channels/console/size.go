package console

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// A sizeMsg tells the prompt the size of the terminal.
type sizeMsg struct{ width, height int }

// followSize tells the prompt the terminal's size, now and whenever it changes, until stop is called.
func (w *window) followSize() (stop func()) {
	changes, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(changes, syscall.SIGWINCH)
	go func() {
		for {
			if width, height, err := term.GetSize(w.fd); err == nil && width > 0 && height > 0 {
				w.program.Send(sizeMsg{width, height})
			}
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
