// Package testrace gives tests that run under the race detector a build of their own program without it, for
// processes beside them.
package testrace

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program is the environment variable that contains the path of the program that Run has built.
const program = "PARLEY_TEST_UNRACED"

// Program returns the path of the program without the race detector that Run has built. It returns "", which means
// the tests' own program, if that has no race detector.
func Program() string { return os.Getenv(program) }

// Run runs the tests of the package in the current folder. If they run under the race detector, Run first builds
// their program without it, for the processes that they start: those that supervise commands, and those that are
// killed. The detector makes starting a process take up to a second and multiplies its memory, and the tests' own
// process, which has the detector, also runs the code of these processes.
//
// Whatever the umask, other users may run the program: root's commands run it as another user.
func Run(tests func() int) int {
	if !Raced {
		if err := letAllRun("/proc/self/exe"); err != nil {
			fmt.Println(err)
			return 1
		}
		return tests()
	}
	dir, err := os.MkdirTemp("", "parley-unraced-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is a temporary one
	built := filepath.Join(dir, "test")
	if out, err := exec.CommandContext(context.Background(), "go", "test", "-c", "-vet=off", "-ldflags=-s", "-o", built, ".").CombinedOutput(); err != nil {
		fmt.Printf("build the tests without the race detector: %v\n%s", err, out)
		return 1
	}
	if err := letAllRun(built); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := os.Setenv(program, built); err != nil {
		fmt.Println(err)
		return 1
	}
	return tests()
}

// A Test is the part of a *testing.T that Elsewhere needs.
type Test interface {
	Helper()
	Name() string
	Context() context.Context
	Errorf(format string, args ...any)
}

// Elsewhere runs the whole test t in a process without the race detector, if this one has it, and reports whether
// it did. It is for tests in which one goroutine does much work in sequence: there the detector finds nothing and
// makes the work ten times as long. t must not be a subtest.
func Elsewhere(t Test) bool {
	t.Helper()
	if !Raced || Program() == "" {
		return false
	}
	cmd := exec.CommandContext(t.Context(), Program(), "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" ") {
		t.Errorf("without the race detector it ended with %v:\n%s", err, out)
	}
	return true
}

// letAllRun lets all users run a program, if this process is root.
func letAllRun(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Chmod(path, 0o755)
}
