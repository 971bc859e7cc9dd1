//go:build linux

package doctor

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"parley/cmd/parley/config"
	"parley/tools/canvas/canvastest"
	"parley/tools/sandbox"
	"parley/tools/testrace"
)

func TestDoctorOnTheBrowser(t *testing.T) {
	if got := checkCanvas(t.Context(), &config.Config{}, nil, nil); got != nil {
		t.Errorf("without a browser: %+v", got)
	}
	cfg := &config.Config{Canvas: config.Canvas{Browser: "/bin/false"}}
	if got := checkCanvas(t.Context(), cfg, nil, errors.New("no walls")); len(got) != 1 || got[0].State != wrong || !strings.Contains(got[0].Detail, "no walls") {
		t.Errorf("without a sandbox: %+v", got)
	}
	missing := &config.Config{Canvas: config.Canvas{Browser: "/nowhere/chromium"}}
	if got := checkCanvas(t.Context(), missing, nil, errors.New("no walls")); len(got) != 1 || got[0].State != wrong || !strings.Contains(got[0].Detail, "isn't installed") || !strings.Contains(got[0].Remedy, "full path") {
		t.Errorf("of a program that isn't there: %+v", got)
	}
	box, err := sandbox.Open(t.Context(), sandbox.Config{
		Mode: sandbox.Bubblewrap, MemoryMB: 512, Processes: 64, TmpMB: 64, Supervisor: testrace.Program(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Skipf("NOT TESTED: this machine has no sandbox: %v", err)
	}
	if got := checkCanvas(t.Context(), cfg, box, nil); len(got) != 1 || got[0].State != wrong || !strings.Contains(got[0].Detail, "the browser failed") || !strings.Contains(got[0].Remedy, "memory_mb") {
		t.Errorf("of a program that is no browser: %+v", got)
	}
	cfg.Canvas.Browser = canvastest.Chromium(t)
	if got := checkCanvas(t.Context(), cfg, box, nil); len(got) != 1 || got[0].State != fine && !strings.Contains(got[0].Detail, "took longer") { // on a busy machine
		t.Errorf("of a browser: %+v", got)
	}
}
