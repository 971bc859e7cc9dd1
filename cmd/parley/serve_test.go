package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
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

// Who is told to end while it waits for its database has not failed.
func TestServeEndsWhileItStarts(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { silent.Close() })
	w := parleytest.New(t, parleytest.EchoModel, fmt.Sprintf("[store]\nurl = \"postgres://x@%s/x?sslmode=disable\"\n", silent.Addr()))
	p := w.Serve()
	asked, err := silent.Accept() // and nothing is answered
	must(t, err)
	defer asked.Close()
	must(t, p.Cmd.Process.Signal(syscall.SIGTERM))
	if err := <-p.Ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}
