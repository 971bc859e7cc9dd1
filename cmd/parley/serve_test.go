package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/config"
)

func TestLogsHaveReadableDurations(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		newLogger(&config.Config{Log: config.Log{Format: format}}, &out).Info("x", slog.Duration("took", 1500*time.Millisecond))
		if !strings.Contains(out.String(), "1.5s") {
			t.Errorf("%s: it is logged as %s", format, out.String())
		}
	}
}
