package parleytest

import "strings"

// WithShell contains settings that let agents run commands and change files.
const WithShell = "\n[agents.defaults]\ncapabilities = [\"file_read\", \"file_write\", \"shell\"]\n"

// NeedsSandbox skips the test, visibly, if no sandbox works.
func (w *World) NeedsSandbox() {
	w.T.Helper()
	out, errs, _ := w.Run("doctor")
	switch {
	case strings.Contains(out, "ok     sandbox:"):
	case !strings.Contains(out, "sandbox:"):
		w.T.Fatalf("doctor hasn't looked for a sandbox: %s%s", out, errs)
	default:
		w.T.Skipf("NOT TESTED: no sandbox works on this machine: %s", out)
	}
}
