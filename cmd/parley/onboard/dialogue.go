package onboard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// A dialogue asks a person at a terminal for settings, one line at a time.
type dialogue struct {
	in   *os.File
	out  io.Writer
	asks bool // there is somebody who can be asked
}

func (d *dialogue) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// errLeft says that the person has ended the dialogue before its end.
var errLeft = errors.New("left before the end; nothing was written")

// maxLine is the longest answer, in bytes.
const maxLine = 4096

// readLine reads a line that the person types. It reads a byte at a time, because what comes
// after the line belongs to the next question, or to the server that runs then in this terminal.
func (d *dialogue) readLine() (string, error) {
	var typed []byte
	for one := make([]byte, 1); len(typed) < maxLine; {
		n, err := d.in.Read(one)
		switch {
		case n == 1 && one[0] == '\n':
			return checkTyped(typed)
		case n == 1:
			typed = append(typed, one[0])
		case err != nil:
			return "", errLeft
		}
	}
	return "", fmt.Errorf("more than %d characters were typed as one answer", maxLine)
}

// checkTyped returns what was typed as a text, or an error for control characters. These
// come from keys that mean nothing here, such as arrows, and no setting has any.
func checkTyped(typed []byte) (string, error) {
	text := strings.TrimSpace(string(typed))
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return "", errors.New("what was typed has control characters in it; nothing was written")
	}
	return text, nil
}

// await returns the result of read, or an error as soon as ctx is done. A read of a terminal
// cannot be cancelled: it goes on until the process ends.
func await(ctx context.Context, read func() (string, error)) (string, error) {
	type outcome struct {
		text string
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		text, err := read()
		done <- outcome{text, err}
	}()
	select {
	case o := <-done:
		return o.text, o.err
	case <-ctx.Done():
		return "", errLeft
	}
}

// ask asks the person for a line. If the line is empty, ask returns the usual answer.
func (d *dialogue) ask(ctx context.Context, what, usual string) (string, error) {
	if usual != "" {
		what += " [" + usual + "]"
	}
	fmt.Fprintf(d.out, "%s: ", what)
	typed, err := await(ctx, d.readLine)
	if typed == "" {
		typed = usual
	}
	return typed, err
}

// askSecret asks for a text that is not shown while it is typed. The terminal is told to
// show nothing before the question is printed, so that a fast typist's first letters are
// not shown either.
func (d *dialogue) askSecret(ctx context.Context, question string) (string, error) {
	fd := int(d.in.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", fmt.Errorf("hide what is typed: %w", err)
	}
	defer func() { _ = term.Restore(fd, before) }() // it was possible a moment ago
	ends := struct {
		io.Reader
		io.Writer
	}{d.in, d.out}
	return await(ctx, func() (string, error) {
		typed, err := term.NewTerminal(ends, "").ReadPassword(question + " (it is not shown): ")
		if err != nil {
			return "", errLeft
		}
		return checkTyped([]byte(typed))
	})
}

// confirm asks a yes-or-no question. If the person just presses Enter, it returns the usual
// answer.
func (d *dialogue) confirm(ctx context.Context, question string, usual bool) (bool, error) {
	letters := "y/N"
	if usual {
		letters = "Y/n"
	}
	for {
		fmt.Fprintf(d.out, "%s [%s] ", question, letters)
		typed, err := await(ctx, d.readLine)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(typed) {
		case "":
			return usual, nil
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
		d.say("y or n, please.")
	}
}

// A choice is one of the possible answers to a question: its name, and what is shown for it.
type choice struct{ name, title string }

// choose asks for one of several answers, which the person gives by its number or its name, and
// returns its name.
func (d *dialogue) choose(ctx context.Context, question string, among []choice) (string, error) {
	d.say("\n%s", question)
	for i, c := range among {
		d.say("  %2d  %s", i+1, c.title)
	}
	for {
		typed, err := d.ask(ctx, "Number or name", "1")
		if err != nil {
			return "", err
		}
		if n, err := strconv.Atoi(typed); err == nil && n >= 1 && n <= len(among) {
			return among[n-1].name, nil
		}
		for _, c := range among {
			if strings.EqualFold(typed, c.name) {
				return c.name, nil
			}
		}
		d.say("There is no %q here: a number from 1 to %d, please.", typed, len(among))
	}
}
