package parleytest

import "strings"

// WithShell contains settings that let agents run commands and change files.
const WithShell = "\n[agents.defaults]\ncapabilities = [\"file_read\", \"file_write\", \"shell\"]\n"

// NeedsSandbox skips the test, visibly, if no sandbox works.
func (w *World) NeedsSandbox() {
	w.T.Helper()
	out, _, _ := w.Run("doctor")
	if !strings.Contains(out, "ok     sandbox:") {
		w.T.Skipf("NOT TESTED: no sandbox works on this machine: %s", out)
	}
}
