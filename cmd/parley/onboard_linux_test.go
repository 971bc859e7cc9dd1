package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

// A beginner is somebody with an empty home, a model's server, and a terminal.
type beginner struct {
	t     *testing.T
	model *agenttest.Server
	url   string
	home  string
}

func newBeginner(t *testing.T) *beginner {
	t.Helper()
	b := &beginner{t: t, model: agenttest.New(parleytest.EchoModel), home: t.TempDir()}
	b.model.Models = []string{"small", "large"}
	b.url = b.model.Start(t)
	return b
}

// command is the program in the beginner's home.
func (b *beginner) command(args ...string) *exec.Cmd {
	b.t.Helper()
	path, err := parleytest.Binary()
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.home, "TMPDIR=" + os.TempDir()}
	cmd.Dir = b.t.TempDir()
	return cmd
}

// written is a file below the folder of the settings.
func (b *beginner) written(name string) string {
	b.t.Helper()
	path := filepath.Join(b.home, ".parley", name)
	raw, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		b.t.Errorf("%s has mode %v (%v), want one that only its owner reads", name, info.Mode(), err)
	}
	return string(raw)
}

// ends waits for the end of what runs at a terminal.
func (s *seat) ends() {
	s.t.Helper()
	if err := <-s.ended; err != nil {
		s.t.Fatalf("it ended with %v:\n%s", err, s.onScreen())
	}
}

// From an empty home a provider's key leads to an answer, and stands in no file but its own.
func TestOnboardWithAKey(t *testing.T) {
	t.Parallel()
	b := newBeginner(t)
	s := take(t, b.command("onboard", "--listen", "none"))
	s.sees("Whose model answers?")
	s.types("nobody")
	s.sees(`There is no "nobody" here`)
	s.types("other")
	s.sees("Its address")
	s.types(b.url)
	s.sees("it is not shown")
	s.types("sk-of-a-beginner-0001")
	s.sees("2 models")
	s.types("large")
	s.sees("Where do people talk to it?")
	s.types("none")
	s.sees("you said Say hello to me")
	s.ends()
	if strings.Contains(s.onScreen(), "sk-of-a-beginner") {
		t.Errorf("the key is to be seen:\n%s", s.onScreen())
	}
	settings := b.written("parley.toml")
	for _, want := range []string{`name = "large"`, `base_url = "` + b.url + `"`, `api_key = "${file:secrets/model}"`, "[http]\nlisten = \"\"", "# "} {
		if !strings.Contains(settings, want) {
			t.Errorf("the settings have no %q:\n%s", want, settings)
		}
	}
	if key := b.written("secrets/model"); key != "sk-of-a-beginner-0001\n" || strings.Contains(settings, "sk-of") {
		t.Errorf("the key's file has %q; the settings:\n%s", key, settings)
	}
	if got := b.model.Requests(); len(got) == 0 || got[len(got)-1].Header.Get("Authorization") != "Bearer sk-of-a-beginner-0001" {
		t.Errorf("the model was not asked with the key: %d requests", len(got))
	}
}

// A server of one's own is found without a key, and a configuration that is there is
// replaced only where that is wanted, and kept.
func TestOnboardWithALocalServer(t *testing.T) {
	t.Parallel()
	b := newBeginner(t)
	onboard := func() *seat {
		return take(t, b.command("onboard", "--listen", "none", "--base-url", b.url, "--provider", "ollama"))
	}
	s := onboard()
	s.sees("2 models")
	s.types("") // the first
	s.sees("Where do people talk to it?")
	s.types("none")
	s.sees("you said Say hello to me")
	s.ends()
	before := b.written("parley.toml")
	if !strings.Contains(before, `name = "small"`) || !strings.Contains(before, "window = 16384 ") || strings.Contains(before, "api_key") {
		t.Errorf("the settings:\n%s", before)
	}

	s = onboard()
	s.sees("Replace it?")
	s.types("")
	if err := <-s.ended; err == nil || b.written("parley.toml") != before {
		t.Errorf("without leave it ended with %v and these settings:\n%s", err, b.written("parley.toml"))
	}
	s = onboard()
	s.sees("Replace it?")
	s.types("y")
	s.sees("Which model")
	s.types("large")
	s.sees("Where do people talk to it?")
	s.types("none")
	s.sees("you said Say hello to me")
	s.ends()
	kept, err := filepath.Glob(filepath.Join(b.home, ".parley", "parley.toml.before-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept is %q (%v), want one", kept, err)
	}
	if old := b.written(filepath.Base(kept[0])); old != before {
		t.Errorf("what was kept is\n%s", old)
	}
}

// ownersLink is what serve prints for whoever is to own the bot.
var ownersLink = regexp.MustCompile(`https://t\.me/parleybot\?start=([A-Za-z0-9_-]+)`)

// A Telegram bot is tried out, and answers its owner in the end.
func TestOnboardWithTelegram(t *testing.T) {
	t.Parallel()
	b := newBeginner(t)
	platform := telegramtest.New(parleytest.Token, "parleybot")
	api, err := platform.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { platform.Close() })
	s := take(t, b.command("onboard", "--listen", "none", "--provider", "vllm", "--base-url", b.url, "--model", "small", "--api-url", api))
	s.sees("Where do people talk to it?")
	s.types("telegram")
	s.sees("it is not shown")
	s.types("4242:not-the-bots-token-0000000000000000000")
	s.sees("Try again?")
	s.types("y")
	parleytest.WaitFor(t, "the question for the token", func() bool { return strings.Count(s.shown.String(), "it is not shown") == 2 })
	s.types(parleytest.Token)
	s.sees("the bot is @parleybot")
	s.types("") // who owns it is found out by the link
	s.sees("you said Say hello to me")
	s.sees("Serve Telegram now?")
	s.types("y")
	var link []string
	parleytest.WaitFor(t, "the owner's link", func() bool {
		link = ownersLink.FindStringSubmatch(s.shown.String())
		return link != nil
	})
	platform.Say(7, 7, "/start "+link[1])
	platform.Say(7, 7, "good morning")
	parleytest.WaitFor(t, "the answer", func() bool {
		return strings.Contains(strings.Join(parleytest.Texts(platform.Sent(7)), "\n"), "you said good morning")
	})
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.ends()
	if strings.Contains(s.onScreen(), parleytest.Token) || strings.Contains(b.written("parley.toml"), parleytest.Token) {
		t.Error("the bot's token stands where it should not")
	}
	if got := b.written("secrets/telegram_bot_token"); got != parleytest.Token+"\n" {
		t.Errorf("the token's file has %q", got)
	}
}

// Where nobody can be asked, flags do it, and what is missing is named.
func TestOnboardByFlags(t *testing.T) {
	t.Parallel()
	b := newBeginner(t)
	key, another := filepath.Join(t.TempDir(), "key"), filepath.Join(t.TempDir(), "another")
	for file, text := range map[string]string{key: "sk-in-a-file-0002\n", another: "sk-in-a-file-0003\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"who answers", nil, exitUsage, "--provider"},
		{"a slip", []string{"--provider", "openia"}, exitUsage, `did you mean "openai"?`},
		{"no key", []string{"--provider", "mistral"}, exitUsage, "MISTRAL_API_KEY"},
		{"a platform that there is not", []string{"--provider", "demo", "--channel", "irc"}, exitUsage, "one of telegram, slack, discord, "},
		{"no token", []string{"--provider", "demo", "--channel", "slack"}, exitUsage, "SLACK_BOT_TOKEN"},
		{"nobody there", []string{"--base-url", "http://127.0.0.1:1/v1"}, exitFailed, "cannot be reached"},
		{"all of it", []string{"--base-url", b.url, "--key-file", key}, exitDone, "parley chat"},
		{"once more", []string{"--base-url", b.url, "--key-file", key}, exitUsage, "--yes"},
		{"and replaced", []string{"--base-url", b.url, "--key-file", key, "--yes", "--model", "medium"}, exitDone, "does not list medium"},
		{"replaced with another key", []string{"--base-url", b.url, "--key-file", another, "--yes", "--model", "medium"}, exitDone, "does not list medium"},
	} {
		cmd := b.command(append([]string{"onboard", "--listen", "none"}, c.args...)...)
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: %v, exit code %d (want %d), saying, without %q:\n%s", c.name, err, code, c.code, c.says, out)
		}
	}
	if settings := b.written("parley.toml"); !strings.Contains(settings, `name = "medium"`) || !strings.Contains(settings, "${file:secrets/model-2}") {
		t.Errorf("the settings:\n%s", settings)
	}
	// The configuration that was kept names the first file, so that one still has its key.
	if first, second := b.written("secrets/model"), b.written("secrets/model-2"); first != "sk-in-a-file-0002\n" || second != "sk-in-a-file-0003\n" {
		t.Errorf("the files of the keys have %q and %q", first, second)
	}
}
