// Package sandboxtest runs tests with a supervisor that is built without the race detector.
package sandboxtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// program is the environment variable with the path of the program that Run has built without the
// race detector.
const program = "PARLEY_TEST_UNRACED"

// Supervisor returns the program that supervises the commands of the tests that Run runs:
// "", which means the tests' own program, unless they run with the race detector.
func Supervisor() string { return os.Getenv(program) }

// Run runs the tests of the package in the current folder. If they run with the race
// detector, Run first builds the program that supervises their commands without it: the
// race detector makes the supervisor's start take a second and its memory many times as
// large, and finds nothing there, because the concurrent code is in the tests' own
// process.
func Run(tests func() int) int {
	if !Raced {
		return tests()
	}
	dir, err := os.MkdirTemp("", "parley-sandbox-test-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	built := filepath.Join(dir, "test")
	if out, err := exec.Command("go", "test", "-c", "-o", built, ".").CombinedOutput(); err != nil {
		fmt.Printf("build the supervisor: %v\n%s", err, out)
		return 1
	}
	if err := os.Setenv(program, built); err != nil {
		fmt.Println(err)
		return 1
	}
	return tests()
}
