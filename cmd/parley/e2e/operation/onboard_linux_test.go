package operation

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/discord/discordtest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

// A beginner is a person with an empty home, a model server and a terminal.
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

// below serves the model only below a path, as most servers do, and returns the address without the path.
func (b *beginner) below(path string) string {
	b.t.Helper()
	to, err := url.Parse(b.url)
	if err != nil {
		b.t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(path, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }})
	front := httptest.NewServer(mux)
	b.t.Cleanup(front.Close)
	return front.URL
}

// command returns a command that runs the program in the beginner's home.
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

// written returns the content of a file below the folder of the settings.
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

// From an empty home, a provider's key leads to an answer, and the key is only in its own file. If an input does not
// work, onboard asks again. A step back leads to the previous question, and onboard writes nothing until the end.
func TestOnboardWithAKey(t *testing.T) {
	t.Parallel()
	b := newBeginner(t)
	url := b.below("/v1/")
	s := parleytest.TakeSeat(t, b.command("onboard", "--listen", "none"))
	s.Sees("Whose model should answer?")
	s.Types("nobody")
	s.Sees(`There's no "nobody" here`)
	s.Types("other")
	s.Sees("The server's address")
	s.Types("not a url")
	s.Sees(`"not a url" isn't an address`)
	s.Types("http://127.0.0.1:1/v1")
	s.Sees("can't be reached")
	s.Types("back")
	s.SeesTimes("Whose model should answer?", 2)
	s.Types("other")
	s.SeesTimes("The server's address", 4)
	s.Types(url)
	s.Sees("Found it at http://127")
	s.Sees("(not shown)")
	s.Types("sk-of-a-beginner-0001")
	s.Sees("Models: 2")
	s.Types("7")
	s.Sees(`There's no "7" here`)
	s.Types("2")
	s.Sees("It answers.")
	s.Sees("Where will people talk to the bot?")
	s.Types("back")
	s.SeesTimes("The model's number or name", 3)
	s.Types("large")
	s.SeesTimes("It answers.", 2)
	s.Types("none")
	s.Sees("Write it?")
	if left, err := os.ReadDir(b.home); err != nil || len(left) > 0 {
		t.Errorf("before the end there is %v (%v)", left, err)
	}
	s.Types("y")
	s.Sees("you said Say hello to me")
	s.Ends()
	if strings.Contains(s.Content(), "sk-of-a-beginner") {
		t.Errorf("the key is to be seen:\n%s", s.Content())
	}
	settings := b.written("parley.toml")
	for _, want := range []string{`name = "large"`, `base_url = "` + url + `/v1"`, `api_key = "${file:secrets/model}"`, "[http]\nlisten = \"\"", "# "} {
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

// onboard does not write a model that its server lists but that does not answer.
func TestOnboardTriesTheModel(t *testing.T) {
	t.Parallel()
	b := newBeginner(t)
	model := agenttest.New(func(r agenttest.Request) agenttest.Response {
		if strings.Contains(string(r.Body), `"model":"small"`) {
			return agenttest.Fail(404, `{"error": {"message": "small was retired", "code": "model_not_found"}}`)
		}
		return parleytest.EchoModel(r)
	})
	model.Models = []string{"small", "large"}
	url := model.Start(t)
	s := parleytest.TakeSeat(t, b.command("onboard", "--listen", "none", "--base-url", url, "--provider", "ollama"))
	s.Types("1")
	s.Sees("small was retired")
	s.Types("2")
	s.Sees("It answers.")
	s.Types("none")
	s.Types("n")
	if err := <-s.Ended; err == nil {
		t.Error("it ended as if it had written something")
	}
	if left, err := os.ReadDir(b.home); err != nil || len(left) > 0 {
		t.Errorf("there is %v (%v)", left, err)
	}
}

// onboard finds a local model server without a key. It replaces an existing configuration only if the person agrees,
// and then keeps a copy.
func TestOnboardWithALocalServer(t *testing.T) {
	t.Parallel()
	b := newBeginner(t)
	onboard := func() *parleytest.Seat {
		return parleytest.TakeSeat(t, b.command("onboard", "--listen", "none", "--base-url", b.url, "--provider", "ollama"))
	}
	s := onboard()
	s.Sees("Models: 2")
	s.Types("") // chooses the first answer
	s.Sees("Where will people talk to the bot?")
	s.Types("none")
	s.Types("")
	s.Sees("you said Say hello to me")
	s.Ends()
	before := b.written("parley.toml")
	if !strings.Contains(before, `name = "small"`) || !strings.Contains(before, "window = 16384 ") || strings.Contains(before, "api_key") {
		t.Errorf("the settings:\n%s", before)
	}

	s = onboard()
	s.Sees("What do you want to do?")
	s.Types("\x04")
	if err := <-s.Ended; err == nil || b.written("parley.toml") != before {
		t.Errorf("without leave it ended with %v and these settings:\n%s", err, b.written("parley.toml"))
	}
	s = onboard()
	s.Sees("What do you want to do?")
	s.Types("replace")
	s.Sees("The model's number or name")
	s.Types("large")
	s.Sees("Where will people talk to the bot?")
	s.Types("none")
	s.Types("y")
	s.Sees("you said Say hello to me")
	s.Ends()
	kept, err := filepath.Glob(filepath.Join(b.home, ".parley", "parley.toml.before-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept is %q (%v), want one", kept, err)
	}
	if old := b.written(filepath.Base(kept[0])); old != before {
		t.Errorf("what was kept is\n%s", old)
	}
}

// A person who started with the demo model can replace it by a model, add another model behind that one, and add a
// channel. The rest of the file stays as it was, including comments and order.
func TestOnboardAdds(t *testing.T) {
	t.Parallel()
	b := newBeginner(t)
	platform := telegramtest.New(parleytest.Token, "parleybot")
	api, err := platform.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { platform.Close() })
	const others = "# mine\n[limits]\nwaiting = 7 # seven\n\n"
	parleytest.Must(t, os.Mkdir(filepath.Join(b.home, ".parley"), 0o700))
	file := filepath.Join(b.home, ".parley", "parley.toml")
	parleytest.Must(t, os.WriteFile(file, []byte(others+"[model] # who answers\nname = \"demo\" # for now\n\n[http]\nlisten = \"\"\n"), 0o600))
	s := parleytest.TakeSeat(t, b.command("onboard"))
	s.Sees("What do you want to do?")
	s.Types("model")
	s.Sees("Whose model should answer?")
	s.Types("other")
	s.Sees("The server's address")
	s.Types(b.url)
	s.Sees("(not shown)")
	s.Types("")
	s.Sees("Models: 2")
	s.Types("small")
	s.Sees("Write it?")
	s.Types("y")
	s.Sees("you said Say hello to me")
	s.Ends()
	if got, want := b.written("parley.toml"), others+"[model] # who answers\nname = \"small\"\nbase_url = \""+b.url+"\"\n\n[http]\nlisten = \"\"\n"; got != want {
		t.Fatalf("in the demo's place:\n%s\nwant\n%s", got, want)
	}
	const otherToken = "4343:another-bots-token-00000000000000000000"
	second, err := telegramtest.New(otherToken, "otherbot").Start("127.0.0.1:0")
	parleytest.Must(t, err)
	token, other := filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "token")
	parleytest.Must(t, os.WriteFile(token, []byte(parleytest.Token+"\n"), 0o600))
	parleytest.Must(t, os.WriteFile(other, []byte(otherToken+"\n"), 0o600))
	for _, args := range [][]string{
		{"--base-url", b.url, "--model", "large"},
		{"--provider", "ollama", "--base-url", b.url, "--model", "small"},
		{"--channel", "telegram", "--token-file", token, "--api-url", api},
		{"--channel", "telegram", "--token-file", other, "--api-url", second},
	} {
		if out, err := b.command(append([]string{"onboard", "--add"}, args...)...).CombinedOutput(); err != nil || !strings.Contains(string(out), "you said Say hello to me") {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	settings := b.written("parley.toml")
	rest, ok := strings.CutPrefix(settings, others+"[model] # who answers\nfallback = [\"other\", \"ollama\"]\nname = \"small\"\nbase_url = \""+b.url+"\"\n\n[http]\nlisten = \"\"\n")
	if !ok {
		t.Fatalf("what was there has changed:\n%s", settings)
	}
	for _, want := range []string{"[models.other]\nname = \"large\"", "[models.ollama]\nname = \"small\"", "[channels.telegram]\nbot_token", "[channels.telegram-2]\nplatform = \"telegram\""} {
		if !strings.Contains(rest, want) {
			t.Errorf("no %q was added:\n%s", want, rest)
		}
	}
	if out, err := b.command("onboard", "--add", "--channel", "telegram", "--token-file", token, "--api-url", api).CombinedOutput(); err == nil || !strings.Contains(string(out), "telegram already uses this bot") {
		t.Errorf("a bot that is there: %v\n%s", err, out)
	}
	// onboard adds nothing to a wrong file.
	parleytest.Must(t, os.WriteFile(file, []byte(settings+"[nonsense]\n"), 0o600))
	if out, err := b.command("onboard", "--add", "--base-url", b.url, "--model", "large").CombinedOutput(); err == nil || !strings.Contains(string(out), "nonsense") || b.written("parley.toml") != settings+"[nonsense]\n" {
		t.Errorf("to a wrong file: %v\n%s", err, out)
	}
}

// onboard itself explains the steps for each platform, with the texts to paste and the addresses to open.
func TestOnboardExplainsPlatforms(t *testing.T) {
	t.Parallel()
	b := newBeginner(t)
	const discordToken = "NDI0Mg.SECRETsecretSECRET.x"
	platform := discordtest.New(discordToken)
	api, err := platform.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { platform.Close() })
	s := parleytest.TakeSeat(t, b.command("onboard", "--listen", "none", "--provider", "demo", "--api-url", api))
	s.Sees("Where will people talk to the bot?")
	s.Types("telegram")
	s.Sees("https://t.me/BotFather")
	s.Types("back")
	s.SeesTimes("Where will people talk to the bot?", 2)
	s.Types("slack")
	s.Sees("socket_mode_enabled: true")
	s.Sees("begins with xapp-")
	s.Types("xoxp-a-token-of-a-person")
	s.Sees("the one you need starts with xoxb-")
	s.Types("back")
	s.SeesTimes("Where will people talk to the bot?", 3)
	s.Types("discord")
	s.Sees("Message Content Intent")
	s.Types(discordToken)
	s.Sees("https://discord.com/oauth2/authorize?client_id=" + discordtest.Bot)
	s.Types("")
	s.Sees("Who owns the bot?")
	for line := range strings.SplitSeq(s.Content(), "\n") {
		if len([]rune(line)) >= 80 && !strings.Contains(line, "https://") {
			t.Errorf("a line is broken at the edge: %q", line)
		}
	}
}

// ownersLink matches the link that serve prints for the future owner of the bot.
var ownersLink = regexp.MustCompile(`https://t\.me/parleybot\?start=([A-Za-z0-9_-]+)`)

// onboard tries out a Telegram bot, and in the end the bot answers its owner.
func TestOnboardWithTelegram(t *testing.T) {
	t.Parallel()
	b := newBeginner(t)
	platform := telegramtest.New(parleytest.Token, "parleybot")
	api, err := platform.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { platform.Close() })
	s := parleytest.TakeSeat(t, b.command("onboard", "--listen", "none", "--provider", "vllm", "--base-url", b.url, "--model", "small", "--api-url", api))
	s.Sees("Where will people talk to the bot?")
	s.Types("telegram")
	s.Sees("(not shown)")
	s.Types("4242:not-the-bots-token-0000000000000000000")
	s.Sees("Fix it")
	parleytest.WaitFor(t, "the question for the token", func() bool { return strings.Count(s.Shown.String(), "(not shown)") == 2 })
	s.Types(parleytest.Token)
	s.Sees("the bot is @parleybot")
	s.Types("not me")
	s.Sees("isn't a person's id")
	s.Types("") // the link decides who owns the bot
	s.Types("y")
	s.Sees("you said Say hello to me")
	s.Sees("Start serving Telegram now?")
	s.Types("y")
	var link []string
	parleytest.WaitFor(t, "the owner's link", func() bool {
		link = ownersLink.FindStringSubmatch(s.Shown.String())
		return link != nil
	})
	if strings.Contains(s.Content(), "was answered") {
		t.Error("it says that a message was answered, and there was none")
	}
	platform.Say(7, 7, "/start "+link[1])
	platform.Say(7, 7, "good morning")
	parleytest.WaitFor(t, "the answer", func() bool {
		return strings.Contains(strings.Join(parleytest.Texts(platform.Sent(7)), "\n"), "you said good morning")
	})
	s.Sees("The bot answered its first message on Telegram")
	if err := s.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.Ends()
	if strings.Contains(s.Content(), parleytest.Token) || strings.Contains(b.written("parley.toml"), parleytest.Token) {
		t.Error("the bot's token stands where it should not")
	}
	if got := b.written("secrets/telegram_bot_token"); got != parleytest.Token+"\n" {
		t.Errorf("the token's file has %q", got)
	}
}

// If onboard cannot ask anybody, flags replace the answers, and onboard names what is missing.
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
		{"who answers", nil, parleytest.ExitUsage, "--provider"},
		{"a slip", []string{"--provider", "openia"}, parleytest.ExitUsage, `did you mean "openai"?`},
		{"no key", []string{"--provider", "mistral"}, parleytest.ExitUsage, "MISTRAL_API_KEY"},
		{"a platform that there is not", []string{"--provider", "demo", "--channel", "irc"}, parleytest.ExitUsage, "one of telegram, slack, discord, "},
		{"no token", []string{"--provider", "demo", "--channel", "slack"}, parleytest.ExitUsage, "SLACK_BOT_TOKEN"},
		{"nobody there", []string{"--base-url", "http://127.0.0.1:1/v1"}, parleytest.ExitFailed, "can't be reached"},
		{"all of it", []string{"--base-url", b.url, "--key-file", key}, parleytest.ExitDone, "parley chat"},
		{"once more", []string{"--base-url", b.url, "--key-file", key}, parleytest.ExitUsage, "--add or --yes"},
		{"and replaced", []string{"--base-url", b.url, "--key-file", key, "--yes", "--model", "medium"}, parleytest.ExitDone, "doesn't list medium"},
		{"replaced with another key", []string{"--base-url", b.url, "--key-file", another, "--yes", "--model", "medium"}, parleytest.ExitDone, "doesn't list medium"},
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
	// The configuration that was kept names the first file, so that file still contains its key.
	if first, second := b.written("secrets/model"), b.written("secrets/model-2"); first != "sk-in-a-file-0002\n" || second != "sk-in-a-file-0003\n" {
		t.Errorf("the files of the keys have %q and %q", first, second)
	}
}

// Each of these ways to start names parley onboard.
func TestOnboardIsNamed(t *testing.T) {
	t.Parallel()
	b := newBeginner(t)
	if out, err := b.command().CombinedOutput(); err == nil || !strings.Contains(string(out), "parley onboard") || !strings.Contains(string(out), "parley chat") {
		t.Errorf("parley alone: %v\n%s", err, out)
	}
	if out, err := b.command("chat", "-m", "what can you do?").CombinedOutput(); err != nil || !strings.Contains(string(out), "parley onboard") {
		t.Errorf("the demo: %v\n%s", err, out)
	}
	s := parleytest.TakeSeat(t, b.command("serve", "--listen", "none"))
	s.Sees("parley onboard")
	parleytest.Must(t, s.Cmd.Process.Signal(syscall.SIGTERM))
	s.Ends()
}
