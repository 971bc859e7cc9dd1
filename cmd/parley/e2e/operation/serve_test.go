package operation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"parley/cmd/parley/parleytest"
	"strings"
	"syscall"
	"testing"
)

// If nothing is configured, serve says what to do next.
func TestServeWithNothingConfigured(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	parleytest.Must(t, os.WriteFile(w.File, []byte("[http]\nlisten = \"\"\n"), 0o600))
	p := w.Serve()
	parleytest.WaitFor(t, "serve to be up", func() bool { return strings.Contains(p.Stderr.String(), `"serving"`) })
	for _, want := range []string{"There's nothing for anybody to talk to yet", "TELEGRAM_BOT_TOKEN", "parley config check", "the configuration is " + w.File} {
		if !strings.Contains(p.Stderr.String(), want) {
			t.Errorf("it says %s, want %q", p.Stderr.String(), want)
		}
	}
	parleytest.Must(t, p.Cmd.Process.Signal(syscall.SIGTERM))
	parleytest.Must(t, <-p.Ended)
}

// With a JSON log, each line of the log is JSON, because programs read it. A clean stop logs no warnings.
func TestEachLineOfTheLogIsJSON(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	settings := strings.Replace(string(text), "owners = [1]\n", "", 1)
	parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(settings, "[model]\n", "[model]\nwindow = 32000\n", 1)), 0o600))
	p := w.Serve()
	parleytest.WaitFor(t, "the owner's link", func() bool { return strings.Contains(p.Stderr.String(), "whoever does so first owns the bot") })
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 1)
	p.Stop()
	for line := range strings.Lines(p.Stderr.String()) {
		var record struct{ Level string }
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Errorf("%q is no JSON: %v", line, err)
		}
		if record.Level != "INFO" {
			t.Errorf("of a clean run it says %s", line)
		}
	}
}

// If serve is told to end while it waits for its database, it exits without an error.
func TestServeEndsWhileItStarts(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	parleytest.Must(t, err)
	t.Cleanup(func() { silent.Close() })
	w := parleytest.New(t, parleytest.EchoModel, fmt.Sprintf("[store]\nurl = \"postgres://x@%s/x?sslmode=disable\"\n", silent.Addr()))
	p := w.Serve()
	asked, err := silent.Accept() // the server gets no answer
	parleytest.Must(t, err)
	defer asked.Close()
	parleytest.Must(t, p.Cmd.Process.Signal(syscall.SIGTERM))
	if err := <-p.Ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestWhatStopsTheStart(t *testing.T) {
	t.Parallel()
	const channel = "[channels.telegram]\nbot_token = \"4242:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"\n"
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", channel + "acess = \"open\"\n", "parley.toml:3"},
		{"wrong type", "[limits]\nwaiting = \"many\"\n", "parley.toml:2"},
		{"missing variable", "[channels.telegram]\nbot_token = \"${NOSUCHVARIABLE}\"\n", "NOSUCHVARIABLE"},
		{"no model", channel, "model"},
		{"token of a wrong shape", "[model]\nname = \"demo\"\n[channels.telegram]\nbot_token = \"nonsense\"\n", "bot_token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := parleytest.New(t, parleytest.EchoModel, "")
			if err := os.WriteFile(w.File, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, errs, code := w.Run("serve")
			if code != parleytest.ExitConfig || !strings.Contains(errs, c.want) {
				t.Errorf("exit %d, %q; want 78 and %q", code, errs, c.want)
			}
		})
	}
	t.Run("token refused", func(t *testing.T) {
		w := parleytest.New(t, parleytest.EchoModel, "")
		text, err := os.ReadFile(w.File)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(w.File, bytes.Replace(text, []byte("4242:test"), []byte("4242:nope"), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		_, errs, code := w.Run("serve")
		if code != parleytest.ExitConfig || !strings.Contains(errs, "channels.telegram.bot_token") || !strings.Contains(errs, "parley.toml:") || strings.Contains(errs, "nope") {
			t.Errorf("exit %d, %q", code, errs)
		}
	})
	t.Run("home in use", func(t *testing.T) {
		w := parleytest.New(t, parleytest.EchoModel, "")
		p := w.Serve()
		w.Telegram.Say(2, 2, "hello")
		w.WaitSaid(2, 1)
		if _, errs, code := w.Run("serve"); code == 0 || !strings.Contains(errs, fmt.Sprint(p.Cmd.Process.Pid)) {
			t.Errorf("exit %d, %q; want the pid of the one that has it", code, errs)
		}
	})
}

func TestReload(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	p := w.Serve()
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 1)
	text, err := os.ReadFile(w.File)
	if err != nil {
		t.Fatal(err)
	}
	hup := func(content, want string) {
		t.Helper()
		if err := os.WriteFile(w.File, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := p.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		parleytest.WaitFor(t, want, func() bool { return strings.Contains(p.Stderr.String(), want) })
	}
	hup("[broken", "the old one stays in force")
	w.Telegram.Say(2, 2, "still here")
	w.WaitSaid(2, 2)
	hup(strings.Replace(string(text), "allow_from = [2, ", "allow_from = [", 1), "configuration read again")
	w.Telegram.Say(2, 2, "and now")
	if got := w.WaitSaid(2, 3)[2]; !strings.Contains(got, "don't know you") {
		t.Errorf("after the reload user 2 got %q", got)
	}
}
