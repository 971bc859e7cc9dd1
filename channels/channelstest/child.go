package channelstest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// childPlace is set for a child, and names the place of its book.
const childPlace = "CHANNELSTEST_CHILD"

// saidPrefix marks what a child says among what the testing package prints.
const saidPrefix = "said: "

// inChild runs a child's part, if this process is one.
func inChild(t *testing.T, h Harness) bool {
	place := os.Getenv(childPlace)
	if place == "" {
		return false
	}
	err := writeForever(t.Context(), h.Open(t, place), func(line string) { fmt.Println(saidPrefix + line) })
	t.Fatal(err)
	return true
}

// killedChild runs this very test in a child, kills it with -9 once it has said
// so many lines, and returns all that it said.
func killedChild(t *testing.T, place string, lines int) []string {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+name+"$", "-test.v")
	cmd.Env = append(os.Environ(), childPlace+"="+place)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var said []string
	for scan := bufio.NewScanner(out); scan.Scan(); {
		line, ok := strings.CutPrefix(scan.Text(), saidPrefix)
		if !ok {
			continue
		}
		if said = append(said, line); len(said) == lines {
			must(t, cmd.Process.Kill())
		}
	}
	if err := cmd.Wait(); err == nil || len(said) < lines {
		t.Fatalf("child said %d lines and ended with %v", len(said), err)
	}
	return said
}
