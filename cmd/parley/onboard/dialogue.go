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
	in          *os.File
	out         io.Writer
	interactive bool // whether there is a person to ask
	questions   int  // how many questions were asked
}

// errLeft says that the person ended the dialogue early.
var errLeft = errors.New("you quit before the end; nothing was written")

// errBack says that the person wants to answer the previous question again.
var errBack = errors.New("go back a question")

// backCommand is what the person types to answer the previous question again.
const backCommand = "back"

// A step asks for some of the settings. It returns errBack if the person wants to go back.
type step func(ctx context.Context) error

// walk runs the steps in order. A step back leads to the last step that asked something.
func (d *dialogue) walk(ctx context.Context, steps []step) error {
	var asked []int // the earlier steps that have asked something
	for at := 0; at < len(steps); {
		before := d.questions
		err := steps[at](ctx)
		switch {
		case errors.Is(err, errBack) && len(asked) == 0:
			d.say(textFirstQuestion)
		case errors.Is(err, errBack):
			at, asked = asked[len(asked)-1], asked[:len(asked)-1]
		case err != nil:
			return err
		default:
			if d.questions > before {
				asked = append(asked, at)
			}
			at++
		}
	}
	return nil
}

// usualWidth is the assumed width of a terminal that doesn't report its own.
const usualWidth = 80

// say prints a text. It breaks lines that are wider than the terminal, between words.
func (d *dialogue) say(format string, args ...any) {
	width, _, err := term.GetSize(int(d.in.Fd()))
	if err != nil || width < 20 {
		width = usualWidth
	}
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		fmt.Fprintln(d.out, wrap(line, width-1))
	}
}

// wrap breaks a line between words, so that no line has more than width characters, unless a single
// word is longer. Lines after the first are indented like the first, and to the text of a list
// item.
func wrap(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	text := strings.TrimLeft(line, " ")
	indent := len(line) - len(text)
	if number, _, found := strings.Cut(text, ". "); found && len(number) <= 2 && strings.Trim(number, "0123456789") == "" {
		indent += len(number) + len(". ")
	}
	var out strings.Builder
	out.WriteString(line[:len(line)-len(text)])
	at := len(line) - len(text)
	for i, word := range strings.Fields(text) {
		length := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+length > width:
			out.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			out.WriteByte(' ')
			at++
		}
		out.WriteString(word)
		at += length
	}
	return out.String()
}

// maxLine is the longest answer, in bytes.
const maxLine = 4096

// readLine reads a line that the person types. It reads one byte at a time, because the input after
// the line belongs to the next question, or to the server that then runs in this terminal.
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
	return "", fmt.Errorf("the answer is longer than %d characters", maxLine)
}

// errKeys says that an answer contains characters that no setting may contain.
var errKeys = errors.New("the answer contains control characters, such as arrow keys")

// checkTyped returns what was typed as a text, or errKeys for control characters. These come from
// keys that have no meaning here, such as arrows.
func checkTyped(typed []byte) (string, error) {
	text := strings.TrimSpace(string(typed))
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return "", errKeys
	}
	return text, nil
}

// await returns the result of read, or an error as soon as ctx is done. Reading from a terminal
// cannot be canceled: it continues until the process ends.
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

// answer repeats a question until the person has answered it in characters that a setting may
// contain. It returns errBack for a step back.
func (d *dialogue) answer(ctx context.Context, read func() (string, error)) (string, error) {
	d.questions++
	for {
		typed, err := read()
		if errors.Is(err, errKeys) && ctx.Err() == nil {
			d.say(textAgain, err)
			continue
		}
		if err == nil && strings.EqualFold(typed, backCommand) {
			err = errBack
		}
		return typed, err
	}
}

// ask asks the person for a line. If the line is empty, ask returns usual.
func (d *dialogue) ask(ctx context.Context, what, usual string) (string, error) {
	if usual != "" {
		what += " [" + usual + "]"
	}
	typed, err := d.answer(ctx, func() (string, error) {
		fmt.Fprintf(d.out, "%s: ", what)
		return await(ctx, d.readLine)
	})
	if typed == "" {
		typed = usual
	}
	return typed, err
}

// askSecret asks for a text that is not shown while it is typed. It turns off the terminal's echo
// before it prints the question, so that a fast typist's first letters are not shown either.
func (d *dialogue) askSecret(ctx context.Context, question string) (string, error) {
	fd := int(d.in.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", fmt.Errorf("hide what is typed: %w", err)
	}
	defer func() { _ = term.Restore(fd, before) }() // changing the mode has just worked
	ends := struct {
		io.Reader
		io.Writer
	}{d.in, d.out}
	return d.answer(ctx, func() (string, error) {
		return await(ctx, func() (string, error) {
			typed, err := term.NewTerminal(ends, "").ReadPassword(question + " (not shown): ")
			if err != nil {
				return "", errLeft
			}
			return checkTyped([]byte(typed))
		})
	})
}

// confirm asks a question that the person answers with yes or no; just Enter means yes.
func (d *dialogue) confirm(ctx context.Context, question string) (bool, error) {
	for {
		typed, err := d.answer(ctx, func() (string, error) {
			fmt.Fprintf(d.out, "%s [Y/n] ", question)
			return await(ctx, d.readLine)
		})
		if err != nil {
			return false, err
		}
		switch strings.ToLower(typed) {
		case "", "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
		d.say(textYesOrNo)
	}
}

// A choice is one of the possible answers to a question: its name, and what is shown for it.
type choice struct{ name, title string }

// choose asks for one of several answers, which the person gives by number or name, and returns its name. Just Enter
// means the first.
func (d *dialogue) choose(ctx context.Context, question string, among []choice) (string, error) {
	d.say("\n%s", question)
	width := 0
	for _, c := range among {
		width = max(width, len(c.name))
	}
	for i, c := range among {
		d.say("  %2d  %-*s  %s", i+1, width, c.name, c.title)
	}
	for {
		typed, err := d.ask(ctx, textNumberOrName, "1")
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
		d.say(textNoChoice, typed, len(among))
	}
}
