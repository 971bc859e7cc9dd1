package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/channels/console/consoletest"
)

const (
	width, height = 80, 24
	patience      = 30 * time.Second // how long to wait for what a step should show
	prompt        = "› "
)

// A frame is what the terminal shows for a while.
type frame struct {
	rows   [][]consoletest.Span
	cursor [2]int // column and row
	holds  time.Duration
}

// A recorder types into a program's terminal, and records what the terminal shows.
type recorder struct {
	keys     io.Writer
	terminal *consoletest.Terminal
	ended    <-chan error // gets the program's error, or nil, when the program ends
	frames   []frame
}

// record starts the program on a terminal, types the lines one after another, and returns what the terminal showed.
func record(ctx context.Context, program string, lines []line) (frames []frame, err error) {
	dir, err := os.MkdirTemp("", "demo-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cmd, err := chat(ctx, program, dir)
	if err != nil {
		return nil, err
	}
	front, back, err := consoletest.OpenPTY(width, height)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, front.Close()) }()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = back, back, back
	if err = errors.Join(cmd.Start(), back.Close()); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	r := &recorder{keys: front, terminal: consoletest.NewTerminal(width, height), ended: ended}
	go func() { _, _ = io.Copy(r.terminal, front) }() // ends with an error when the terminal is closed
	go func() { ended <- cmd.Wait() }()
	defer func() {
		_ = cmd.Process.Kill() // the program may have ended
		<-ended
	}()
	for _, l := range lines {
		if err := r.say(ctx, l); err != nil {
			return nil, err
		}
	}
	r.frames[len(r.frames)-1].holds = 5 * time.Second
	return r.frames, nil
}

// chat returns the command that runs "parley chat" with dir as the user's home, and creates the script's files in
// the folder where it runs.
func chat(ctx context.Context, program, dir string) (*exec.Cmd, error) {
	program, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return nil, err
	}
	for name, content := range files() {
		if err := os.WriteFile(filepath.Join(work, name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, program, "chat", "--workspace", ".")
	cmd.Dir = work
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "TMPDIR=" + dir}
	return cmd, nil
}

// say types a line, and waits for its answer.
func (r *recorder) say(ctx context.Context, l line) error {
	if err := r.wait(ctx, "the prompt", r.idle); err != nil {
		return err
	}
	r.take(time.Second)
	for n := 0; n < len(l.typed); {
		next := min(n+2, len(l.typed))
		if _, err := io.WriteString(r.keys, l.typed[n:next]); err != nil {
			return err
		}
		n = next
		if err := r.wait(ctx, l.typed[:n], func(rows []string) bool { return r.typed(rows) == l.typed[:n] }); err != nil {
			return err
		}
		r.take(90 * time.Millisecond)
	}
	r.frames[len(r.frames)-1].holds = 700 * time.Millisecond
	if _, err := io.WriteString(r.keys, "\r"); err != nil {
		return err
	}
	answered := func(rows []string) bool { return r.idle(rows) && strings.Contains(strings.Join(rows, "\n"), l.answer) }
	if err := r.wait(ctx, l.answer, answered); err != nil {
		return err
	}
	r.take(3 * time.Second)
	return nil
}

// idle reports whether the program is waiting for a line, and nothing has been typed yet.
func (r *recorder) idle(rows []string) bool {
	return r.typed(rows) == "" && !slices.ContainsFunc(rows, func(row string) bool { return strings.HasPrefix(row, "… ") })
}

// typed returns what is typed so far: the text between the prompt and the cursor. It returns "?" if the cursor's line
// has no prompt, because the program is drawing.
func (r *recorder) typed(rows []string) string {
	x, y := r.terminal.Cursor()
	row := []rune(rows[y] + strings.Repeat(" ", width)) // Rows returns rows without trailing blanks
	text, is := strings.CutPrefix(string(row[:x]), prompt)
	if !is {
		return "?"
	}
	return text
}

// wait waits until shows returns true for the terminal's rows; what describes that for the error.
func (r *recorder) wait(ctx context.Context, what string, shows func(rows []string) bool) error {
	for deadline := time.Now().Add(patience); ; {
		rows := r.terminal.Rows()
		if shows(rows) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited in vain for %q; the terminal shows\n%s", what, strings.Join(rows, "\n"))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-r.ended:
			return fmt.Errorf("the program has ended (%w); the terminal shows\n%s", err, strings.Join(rows, "\n"))
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// take adds a frame with what the terminal shows now, to be shown for as long as holds says.
func (r *recorder) take(holds time.Duration) {
	x, y := r.terminal.Cursor()
	r.frames = append(r.frames, frame{r.terminal.Spans(), [2]int{x, y}, holds})
}
