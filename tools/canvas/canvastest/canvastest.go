// Package canvastest finds the browser with which tests look at what agents draw, and at the web page.
package canvastest

import (
	"os"
	"os/exec"
	"testing"
)

// ChromiumPath returns the browser's program, "" if there is none; .ci/chromium installs it.
func ChromiumPath() string {
	for _, name := range []string{os.Getenv("PARLEY_TEST_CHROMIUM"), "/usr/lib/chromium/chromium", "chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	return ""
}

// Chromium returns the browser's program. It skips the test if there is none, and fails it where tests must run.
func Chromium(t testing.TB) string {
	t.Helper()
	program := ChromiumPath()
	if program != "" {
		return program
	}
	if os.Getenv("CI") != "" {
		t.Fatal("there is no Chromium: run this below .ci/chromium")
	}
	t.Skip("there is no Chromium: .ci/chromium installs it, or name the program in PARLEY_TEST_CHROMIUM")
	return ""
}
