package operation

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/parleytest"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	if out, errs, code := w.Run("doctor"); code != 0 || !strings.Contains(out, "@parleybot") {
		t.Errorf("doctor: %d %q %q", code, out, errs)
	}
	w.Telegram.Fail(telegramtest.Fault{Act: telegramtest.Refuse, Status: 401, Description: "Unauthorized"})
	if out, _, code := w.Run("doctor"); code != parleytest.ExitFailed || !strings.Contains(out, "rejected the token") {
		t.Errorf("doctor with a bad token: %d %q", code, out)
	}
	if out, _, code := w.Run("config", "check"); code != 0 || strings.Contains(out, parleytest.Token) || !strings.Contains(out, "***") {
		t.Errorf("config check: %d %q", code, out)
	}
	if out, _, code := w.Run("version"); code != 0 || !strings.HasPrefix(out, "parley ") {
		t.Errorf("version: %d %q", code, out)
	}
}

// doctor names the other program that uses the port, and recognizes the home's own server.
func TestDoctorOnAPortThatIsTaken(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file := filepath.Join(n.cwd, "bot.toml")
	parleytest.Must(t, os.WriteFile(file, fmt.Appendf(nil, "[http]\nlisten = %q\n[model]\nname = \"demo\"\n", l.Addr()), 0o600))
	if out, _, code := n.run("--config", file, "doctor"); code != parleytest.ExitFailed || !strings.Contains(out, "wrong  http:") || !strings.Contains(out, "in use") || !strings.Contains(out, "bot.toml:2") {
		t.Errorf("exit code %d, %s", code, out)
	}
	w := parleytest.New(t, parleytest.EchoModel, "")
	o := parleytest.ListenHTTP(w)
	o.Up()
	if out, errs, code := o.Run("doctor"); code != parleytest.ExitDone || !strings.Contains(out, "which this home's server uses") {
		t.Errorf("beside its server: exit code %d, %s%s", code, out, errs)
	}
}

// doctor finds rates for tools of servers and skills that don't exist. The server does not start with rates for other
// unknown tools.
func TestDoctorOnARateForNothing(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	file := filepath.Join(n.cwd, "bot.toml")
	text := "[http]\nlisten = \"\"\n[model]\nname = \"demo\"\n[mcp.notes]\ncommand = \"true\"\nagents = [\"main\"]\n[tools]\nrate = [\"dosc__find 9/h\", \"notes__* 9/h\", \"web_* 9/h\"]\n"
	parleytest.Must(t, os.WriteFile(file, []byte(text), 0o600))
	out, errs, _ := n.run("--config", file, "doctor")
	if strings.Count(out, "rates: ") != 1 || !strings.Contains(out, `"dosc__find 9/h" limits nothing`) || !strings.Contains(out, "bot.toml:9") {
		t.Errorf("doctor says\n%s%s", out, errs)
	}
	parleytest.Must(t, os.WriteFile(file, []byte(strings.Replace(text, "web_*", "wbe_fetch", 1)), 0o600))
	if out, errs, code := n.run("--config", file, "doctor"); code == parleytest.ExitDone || !strings.Contains(out+errs, `bot.toml:9: tools.rate: no tool is called "wbe_fetch": write "web_fetch 9/h"`) {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
}

// doctor finds missing files and folders that the settings name and that serve needs to start.
func TestDoctorOnFilesThatAreMissing(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	file := filepath.Join(n.cwd, "bot.toml")
	const text = "[http]\nlisten = \"\"\n[model]\nname = \"demo\"\n[knowledge]\ndir = \"facts\"\n[budget]\nprices = \"prices.json\"\n[audit]\nfile = \"logs/audit\"\n"
	parleytest.Must(t, os.WriteFile(file, []byte(text), 0o600))
	wants := func(state string) {
		t.Helper()
		out, _, code := n.run("--config", file, "doctor")
		for _, part := range []string{"knowledge", "prices", "audit"} {
			if !strings.Contains(out, state+part+": ") {
				t.Errorf("exit code %d, no %q of %s in %s", code, state, part, out)
			}
		}
		if state == "wrong  " && (code != parleytest.ExitFailed || !strings.Contains(out, "bot.toml:10")) {
			t.Errorf("exit code %d, %s", code, out)
		}
	}
	wants("wrong  ")
	for _, dir := range []string{"facts", "logs"} {
		parleytest.Must(t, os.Mkdir(filepath.Join(n.cwd, dir), 0o700))
	}
	parleytest.Must(t, os.WriteFile(filepath.Join(n.cwd, "prices.json"), []byte(`{"date": "2026-06-20", "models": {"m": {"input": 0.25, "output": 2}}}`), 0o600))
	wants("ok     ")
	if _, err := os.Stat(filepath.Join(n.cwd, "logs", "audit")); err == nil {
		t.Error("doctor has made the file")
	}
	parleytest.Must(t, syscall.Mkfifo(filepath.Join(n.cwd, "logs", "audit"), 0o600)) // a pipe without a reader
	for _, command := range []string{"doctor", "serve"} {
		if out, errs, code := n.run("--config", file, command); code == parleytest.ExitDone || !strings.Contains(out+errs, "logs/audit isn't a regular file") {
			t.Errorf("%s with a named pipe: exit code %d, %s%s", command, code, out, errs)
		}
	}
}

// doctor finds a database that was partly overwritten, and changes nothing.
func TestDoctorOnADamagedDatabase(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	if _, errs, code := n.run("chat", "-m", "hello"); code != parleytest.ExitDone {
		t.Fatalf("chat: exit code %d, %s", code, errs)
	}
	file := filepath.Join(n.cwd, "bot.toml")
	parleytest.Must(t, os.WriteFile(file, []byte("[http]\nlisten = \"\"\n[model]\nname = \"demo\"\n"), 0o600))
	homeDir := filepath.Join(n.dir, ".parley")
	if out, errs, code := n.run("--config", file, "doctor"); code != parleytest.ExitDone || strings.Count(out, "whole") != 1 {
		t.Errorf("undamaged: exit code %d, %s%s", code, out, errs)
	}
	for _, db := range []string{home.StoreFile} {
		path := filepath.Join(homeDir, db)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bad := bytes.Clone(good)
		copy(bad[4096:], bytes.Repeat([]byte("damage"), 2000))
		parleytest.Must(t, os.WriteFile(path, bad, 0o600))
		out, _, code := n.run("--config", file, "doctor")
		if code != parleytest.ExitFailed || !strings.Contains(out, "wrong  "+db) || !strings.Contains(out, "damaged") || !strings.Contains(out, "parley restore") {
			t.Errorf("%s: exit code %d, %s", db, code, out)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, bad) {
			t.Errorf("%s was changed: %v", db, err)
		}
		parleytest.Must(t, os.WriteFile(path, good, 0o600))
	}
}

func TestDoctorOnAFleet(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	out, _, code := m.fleet.Run("doctor")
	if code != parleytest.ExitFailed || !strings.Contains(out, "parley migrate") {
		t.Errorf("with data in the home: exit code %d, saying %s", code, out)
	}
	if _, stderr, code := m.migrate(); code != parleytest.ExitDone {
		t.Fatalf("exit code %d, saying %s", code, stderr)
	}
	out, _, code = m.fleet.Run("doctor")
	for _, want := range []string{"Redis at 127.0.0.1:", "appendfsync everysec", "PostgreSQL at 127.0.0.1:", "workspace", "@parleybot"} {
		if code != parleytest.ExitDone || !strings.Contains(out, want) {
			t.Errorf("exit code %d, saying %s, want %q", code, out, want)
		}
	}
	nobody := "[bus]\nurl = \"redis://:hunter2@127.0.0.1:1\"\n[store]\nurl = \"postgres://u:hunter2@127.0.0.1:1/d\"\n"
	if err := os.WriteFile(m.fleet.File, []byte(nobody), 0o600); err != nil {
		t.Fatal(err)
	}
	out, stderr, code := m.fleet.Run("doctor")
	for _, part := range []string{"bus", "store"} {
		if code != parleytest.ExitFailed || !strings.Contains(out, "wrong  "+part+":") || strings.Contains(out+stderr, "hunter2") {
			t.Errorf("where nobody listens: exit code %d, saying %s%s", code, out, stderr)
		}
	}
}

// doctor really calls the model, and distinguishes a wrong key, a wrong model name, an empty account, and a server that
// it cannot reach.
func TestDoctorAsksTheModel(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String() + "/v1"
	closed.Close()
	fail := func(status int, body string) agenttest.Script { return agenttest.Always(agenttest.Fail(status, body)) }
	for _, c := range []struct {
		what   string
		script agenttest.Script
		url    string
		wants  []string
		code   int
	}{
		{"a good answer", agenttest.Always(agenttest.Reply("ok")), "", []string{"ok     model: scripted at http://127.0.0.1", "answers in", "it can read 8192 tokens, according to the server's list of models"}, parleytest.ExitDone},
		{"a wrong key", fail(401, `{"error":{"message":"Incorrect API key provided.","type":"invalid_request_error","code":"invalid_api_key"}}`), "",
			[]string{"wrong  model:", "Incorrect API key provided.", "model.api_key (", "bot.toml:4"}, parleytest.ExitFailed},
		{"no such model", fail(404, `{"error":{"message":"The model 'scripted' does not exist","type":"invalid_request_error","code":"model_not_found"}}`), "",
			[]string{"wrong  model:", "does not exist", "model.name (", "bot.toml:2"}, parleytest.ExitFailed},
		{"an empty account", fail(429, `{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","code":"insufficient_quota"}}`), "",
			[]string{"wrong  model:", "You exceeded your current quota.", "add credit to the account", "bot.toml:4"}, parleytest.ExitFailed},
		{"a page instead of a server", fail(404, `<html><title>404 Not Found</title></html>`), "",
			[]string{"wrong  model:", "model.base_url (", "/v1", "bot.toml:3"}, parleytest.ExitFailed},
		{"a busy one", fail(503, `{"error":{"message":"Overloaded, try later."}}`), "", []string{"wrong  model:", "Overloaded, try later.", "try again"}, parleytest.ExitFailed},
		{"one that takes no tools", func(q agenttest.Request) agenttest.Response {
			if len(q.Tools()) > 0 {
				return agenttest.Fail(http.StatusBadRequest, `{"error":{"message":"scripted does not support tools"}}`)
			}
			return agenttest.Reply("ok")
		}, "", []string{"note   model:", "doesn't accept tools", "--jinja", "model.name ("}, parleytest.ExitDone},
		{"nobody there", nil, nobody, []string{"wrong  model:", "connection refused", "model.base_url ("}, parleytest.ExitFailed},
		{"no such host", nil, "http://no-such-host.invalid/v1", []string{"wrong  model:", "no-such-host.invalid", "DNS", "model.base_url ("}, parleytest.ExitFailed},
	} {
		url := c.url
		if url == "" {
			s := agenttest.New(c.script)
			s.Window = 8192
			url = s.Start(t)
		}
		file := filepath.Join(n.cwd, "bot.toml")
		text := fmt.Sprintf("[model]\nname = \"scripted\"\nbase_url = %q\napi_key = \"sk-of-the-test-0123456789\"\n[http]\nlisten = \"\"\n", url)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := n.run("--config", file, "doctor")
		if code != c.code || strings.Contains(out+errs, "sk-of-the-test") {
			t.Errorf("%s: exit code %d, %s%s", c.what, code, out, errs)
		}
		for _, want := range c.wants {
			if !strings.Contains(out, want) {
				t.Errorf("%s: it says %q, want %q", c.what, out, want)
			}
		}
	}
}
