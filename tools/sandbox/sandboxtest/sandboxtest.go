// Package sandboxtest runs tests whose commands are supervised without the race detector.
package sandboxtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// program names the variable that holds the tests' program without the race detector.
const program = "PARLEY_TEST_UNRACED"

// Supervisor is the program that supervises the commands of the tests that Run runs: "",
// which is the test's own, where no races are looked for.
func Supervisor() string { return os.Getenv(program) }

// Run runs the tests of the package in whose folder it is. Where they look for races it
// first builds the program that supervises their commands, and runs inside, without: the
// race detector makes its start take a second and its memory many times as large, and
// sees nothing there, because what runs side by side is in the tests.
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
