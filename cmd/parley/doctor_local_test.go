package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/home"
	"parley/cmd/parley/parleytest"
)

// doctor sees what else has the port, and knows its own server.
func TestDoctorOnAPortThatIsTaken(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file := filepath.Join(n.cwd, "bot.toml")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "[http]\nlisten = %q\n[model]\nname = \"demo\"\n", l.Addr()), 0o600))
	if out, _, code := n.run("--config", file, "doctor"); code != exitFailed || !strings.Contains(out, "wrong  http:") || !strings.Contains(out, "in use") || !strings.Contains(out, "bot.toml:2") {
		t.Errorf("exit code %d, %s", code, out)
	}
	w := parleytest.New(t, parleytest.EchoModel, "")
	o := listening(w)
	o.up()
	if out, errs, code := o.Run("doctor"); code != exitDone || !strings.Contains(out, "which the server of this home has") {
		t.Errorf("beside its server: exit code %d, %s%s", code, out, errs)
	}
}

// doctor finds a database of which a part was overwritten, and changes nothing.
func TestDoctorOnADamagedDatabase(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	if _, errs, code := n.run("chat", "-m", "hello"); code != exitDone {
		t.Fatalf("chat: exit code %d, %s", code, errs)
	}
	file := filepath.Join(n.cwd, "bot.toml")
	must(t, os.WriteFile(file, []byte("[http]\nlisten = \"\"\n[model]\nname = \"demo\"\n"), 0o600))
	homeDir := filepath.Join(n.dir, ".parley")
	if out, errs, code := n.run("--config", file, "doctor"); code != exitDone || strings.Count(out, "whole") != 3 {
		t.Errorf("undamaged: exit code %d, %s%s", code, out, errs)
	}
	for _, db := range []string{home.StoreFile, home.BookFile} {
		path := filepath.Join(homeDir, db)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bad := bytes.Clone(good)
		copy(bad[4096:], bytes.Repeat([]byte("damage"), 2000))
		must(t, os.WriteFile(path, bad, 0o600))
		out, _, code := n.run("--config", file, "doctor")
		if code != exitFailed || !strings.Contains(out, "wrong  "+db) || !strings.Contains(out, "damaged") || !strings.Contains(out, "parley restore") {
			t.Errorf("%s: exit code %d, %s", db, code, out)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, bad) {
			t.Errorf("%s was changed: %v", db, err)
		}
		must(t, os.WriteFile(path, good, 0o600))
	}
}

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

// What people wrote moves no cursor and turns no line in the terminal of who looks.
func TestCommandsPrintNoEscapeSequences(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	p := w.Serve()
	w.Telegram.Say(2, 2, "safe\x1b]0;title\x07\x1b[2J\u202eevil")
	w.Said(2, 1)
	out, errs, code := w.Run("sessions", "main:telegram:2")
	if code != exitDone || !strings.Contains(out, "safe") || strings.ContainsAny(out, "\x1b\x07\u202e") {
		t.Errorf("exit code %d, %q %s", code, out, errs)
	}
	p.Kill()
}
