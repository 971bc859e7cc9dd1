// The program demo records a conversation in a terminal as a picture: `go run ./.ci/demo bin/parley
// docs/demo.svg` starts the program in an empty home, types what script.go says, and draws what the terminal
// shows. With -check it draws nothing, and fails if the existing picture lacks a row that the terminal shows at
// the end. It needs Linux.
//
// script.go says what is typed, record.go types it and records the terminal, and picture.go draws it.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	check := flag.Bool("check", false, "compare with the picture that is there")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, flag.Args(), *check)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run records the program that the arguments name, and writes the picture or compares it.
func run(ctx context.Context, args []string, check bool) error {
	if len(args) != 2 {
		return errors.New("usage: demo [-check] PROGRAM PICTURE")
	}
	frames, err := record(ctx, args[0], conversation())
	if err != nil {
		return err
	}
	if !check {
		return os.WriteFile(args[1], draw(frames), 0o644) //nolint:gosec // everybody looks at it
	}
	was, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	for _, row := range frames[len(frames)-1].rows {
		if !bytes.Contains(was, []byte(drawRow(row))) {
			return fmt.Errorf("%s does not show %s, which the program shows now: make demo draws it anew", args[1], drawRow(row))
		}
	}
	return nil
}
