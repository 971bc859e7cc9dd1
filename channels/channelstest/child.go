package channelstest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// childPlace is the environment variable that makes a process a child; its value is the place of the child's book.
const childPlace = "CHANNELSTEST_CHILD"

// reportPrefix marks a child's reports among the output of the testing package.
const reportPrefix = "said: "

// inChild runs the child's part and returns true if this process is a child.
func inChild(t *testing.T, h Harness) bool {
	place := os.Getenv(childPlace)
	if place == "" {
		return false
	}
	err := writeForever(t.Context(), h.Open(t, place), func(line string) { fmt.Println(reportPrefix + line) })
	t.Fatal(err)
	return true
}

// killedChild runs the same test in a child process, kills it with SIGKILL once it has reported the given number of
// lines, and returns everything that it reported.
func killedChild(t *testing.T, place string, lines int) []string {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+name+"$", "-test.v")
	cmd.Env = append(os.Environ(), childPlace+"="+place)
	out, err := cmd.StdoutPipe()
	requireNoError(t, err)
	requireNoError(t, cmd.Start())
	var said []string
	for scan := bufio.NewScanner(out); scan.Scan(); {
		line, ok := strings.CutPrefix(scan.Text(), reportPrefix)
		if !ok {
			continue
		}
		if said = append(said, line); len(said) == lines {
			requireNoError(t, cmd.Process.Kill())
		}
	}
	if err := cmd.Wait(); err == nil || len(said) < lines {
		t.Fatalf("child said %d lines and ended with %v", len(said), err)
	}
	return said
}
