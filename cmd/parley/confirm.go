package main

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/term"
	"parley/cmd/parley/terminal"
)

// confirm asks the person whether to go on, and returns an error if they don't agree. Without a terminal it requires
// --yes.
func confirm(tty terminal.Terminal, yes bool, question string) error {
	if yes {
		return nil
	}
	if !term.IsTerminal(int(tty.In.Fd())) {
		return &usageError{question + textAddYes}
	}
	fmt.Fprintf(tty.Err, "%s [y/N] ", question)
	var answer string
	if _, err := fmt.Fscanln(tty.In, &answer); err != nil || !strings.HasPrefix(strings.ToLower(answer), "y") {
		return errors.New("nothing was done")
	}
	return nil
}
