package main

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/parleytest"
)

// serve says what to do next where nothing is configured.
func TestServeWithNothingConfigured(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	must(t, os.WriteFile(w.File, []byte("[http]\nlisten = \"\"\n"), 0o600))
	p := w.Serve()
	parleytest.WaitFor(t, "serve to be up", func() bool { return strings.Contains(p.Stderr.String(), `"serving"`) })
	for _, want := range []string{"Nothing is configured yet", "TELEGRAM_BOT_TOKEN", "parley config check", "the configuration is " + w.File} {
		if !strings.Contains(p.Stderr.String(), want) {
			t.Errorf("it says %s, want %q", p.Stderr.String(), want)
		}
	}
	must(t, p.Cmd.Process.Signal(syscall.SIGTERM))
	must(t, <-p.Ended)
}

func TestLogsHaveReadableDurations(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		newLogger(&config.Config{Log: config.Log{Format: format}}, &out).Info("x", slog.Duration("took", 1500*time.Millisecond))
		if !strings.Contains(out.String(), "1.5s") {
			t.Errorf("%s: it is logged as %s", format, out.String())
		}
	}
}
