//go:build linux

// This file's name comes first, and so does its test.

package sandbox_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// If the tests run as root, they run a second time as the user nobody, because people run Parley both ways.
func TestAsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the tests are run by an ordinary user as it is")
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "parley-sandbox-test-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	tmp, program := filepath.Join(dir, "tmp"), filepath.Join(dir, "program", "test")
	must(t, os.MkdirAll(tmp, 0o755))
	must(t, os.Chown(tmp, nobody, nobody))
	must(t, os.Mkdir(filepath.Dir(program), 0o755))
	raw, err := os.ReadFile(testProgram(t))
	must(t, err)
	must(t, os.WriteFile(program, raw, 0o755))
	for _, path := range []string{dir, tmp, filepath.Dir(program), program} {
		must(t, os.Chmod(path, 0o755)) // regardless of the umask
	}
	cmd := exec.Command(program, "-test.v", "-test.timeout=30m")
	cmd.Dir = tmp
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + tmp, "TMPDIR=" + tmp}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	t.Parallel() // this waits for the end of all tests that are not parallel
	err = cmd.Wait()
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "NOT TESTED") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if err != nil {
		t.Errorf("as user %d: %v\n%s", nobody, err, &out)
	}
}
