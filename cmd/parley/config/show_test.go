package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"parley/cmd/parley/config"
)

// sentinel is part of every secret in a test, and no output may contain it.
const sentinel = "s3ntinel"

const everySecret = `
[bus]
url = "redis://user:s3ntinel@127.0.0.1/0"
[store]
url = "postgres://user:${PW}@127.0.0.1/d?password=s3ntinel"
[model]
base_url = "https://127.0.0.1/v1"
api_key = "${KEY}"
[agents.main]
prompt = "${file:secret}"
[channels.telegram]
bot_token = "${file:secret}"
[channels.slack]
bot_token = "s3ntinel-b"
app_token = "s3ntinel-a"
[webhooks.json]
token = "s3ntinel"
secret = "s3ntinel"
to = "telegram:1"
[tokens.ci]
token = "s3ntinel-of-the-token"
may = ["read"]
[tools.mcp_servers.x]
env = { KEY = "s3ntinel" }
`

var secretVars = vars{"PW": sentinel, "KEY": sentinel, "DISCORD_BOT_TOKEN": sentinel}

// outputs returns everything that a configuration can print.
func outputs(t *testing.T, c *config.Config) string {
	t.Helper()
	var out bytes.Buffer
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(body)
	typed, err := json.Marshal([]any{c.Channels, c.HTTPAccess, c.DataStorage})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(typed)
	log := slog.New(slog.NewJSONHandler(&out, nil))
	log.Info("loaded", slog.Any("key", c.Model.APIKey), slog.Any("channels", c.Channels), slog.Any("front", c.HTTPAccess), slog.Any("keeping", c.DataStorage))
	ch := c.Channels["telegram"]
	fmt.Fprintf(&out, "%v %+v %#v %s %q\n", ch, ch, ch, ch.BotToken, ch.BotToken)
	fmt.Fprintf(&out, "%v %+v %#v\n", c.HTTPAccess, c.HTTPAccess, c.DataStorage)
	fmt.Fprintln(&out, c.Notices(), c.CheckServe(), c.Settings())
	return out.String()
}

func TestNothingSecretIsShown(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, ".", "secret", sentinel)
	put(t, ".", "parley.toml", everySecret)
	c, err := load(config.Options{File: "parley.toml", Home: "h", Env: secretVars.look})
	if err != nil {
		t.Fatal(err)
	}
	if string(c.Channels["telegram"].BotToken) != sentinel || string(c.Model.APIKey) != sentinel {
		t.Fatal("the secrets did not arrive, so that this test proves nothing")
	}
	out := outputs(t, c)
	if strings.Contains(out, sentinel) {
		t.Errorf("a secret is shown:\n%s", out)
	}
	if !strings.Contains(out, `url = "redis://user:***@127.0.0.1/0"`) {
		t.Errorf("the bus is not shown:\n%s", out)
	}
}

// Passwords in URLs are secret, including those in query parameters.
func TestPasswordsInAddressesAreSecrets(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, ".", "parley.toml", `
[bus]
url = "redis+sentinel://bot:redis-pw@10.0.0.1:26379,10.0.0.2:26379/main?sentinel_user=s&sentinel_password=trio-pw"
[store]
url = "postgres://bot:store-pw@10.0.0.3/parley?sslpassword=key-pw&sslmode=require"
`)
	c, err := load(config.Options{File: "parley.toml", Home: "h", Env: vars{}.look})
	if err != nil {
		t.Fatal(err)
	}
	got := c.Secrets()
	slices.Sort(got)
	if want := []string{"key-pw", "redis-pw", "store-pw", "trio-pw"}; !slices.Equal(got, want) {
		t.Errorf("the secrets are %q, want %q", got, want)
	}
}

// A value that a reference puts into a header is secret, whatever the header's name, and so is each header for
// traces.
func TestHeadersAreSecrets(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, ".", "secret", "from-file\n")
	put(t, ".", "parley.toml", `
[model]
base_url = "https://127.0.0.1/v1"
headers = ["X-Title: Parley on a server", "x-team: plus ${TEAM}"]
[mcp.notes]
url = "https://127.0.0.1/"
headers = ["x-space: shown", "x-place: ${PLACE}"]
agents = ["main"]
[mcp.program]
command = "notes"
env = ["PLACE=${HOME}", "FILE=${file:secret}"]
agents = ["main"]
[trace]
endpoint = "https://127.0.0.1/"
headers = ["x-honeycomb-team: ${KEY}", "x-data: of a server", "Authorization: Bearer written"]
`)
	c, err := load(config.Options{File: "parley.toml", Home: "h", Env: vars{"TEAM": "team", "PLACE": "place", "KEY": "key", "HOME": "home"}.look})
	if err != nil {
		t.Fatal(err)
	}
	got := c.Secrets()
	slices.Sort(got)
	if want := []string{"from-file", "key", "of a server", "place", "team", "written"}; !slices.Equal(slices.Compact(got), want) {
		t.Errorf("the secrets are %q, want %q", got, want)
	}
}

// A command that uses no secrets isn't stopped by one that can't be read, even in a list.
func TestWithoutSecrets(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, ".", "parley.toml", "[mcp.notes]\ncommand = \"notes\"\nenv = [\"KEY=${NO_KEY}\"]\nagents = [\"main\"]\n")
	c, err := load(config.Options{File: "parley.toml", Home: "h", WithoutSecrets: true, Env: vars{}.look})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "environment", len(c.MCP["notes"].Env), 0)
}

// breakLine returns a line with each common typing mistake.
func breakLine(line string) []string {
	return []string{
		strings.ReplaceAll(line, `"`, ""),
		strings.TrimSuffix(line, `"`),
		strings.Replace(line, " = ", " ", 1),
		strings.Replace(line, `= "`, `= [ "`, 1) + " ]",
		"x" + line,
		line + "\n" + line,
		strings.Replace(line, "://", ":/", 1),
		strings.Replace(line, `"`, `" `, 1),
		strings.Replace(line, sentinel, "${"+sentinel+"-}", 1),
		strings.Replace(line, sentinel, `\x`+sentinel, 1),
		strings.Replace(line, `= "`, "= 12345.", 1),
	}
}

// No error about any broken line of the file above contains the secret.
func TestNoErrorTellsASecret(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, ".", "secret", sentinel)
	lines := strings.Split(everySecret, "\n")
	failed := 0
	for i, line := range lines {
		for _, broken := range append(breakLine(line), "[model]\nbase_url = \"https://u:s3ntinel@127.0.0.1/?token=s3ntinel\"") {
			changed := slices.Clone(lines)
			changed[i] = broken
			put(t, ".", "parley.toml", strings.Join(changed, "\n"))
			_, err := load(config.Options{File: "parley.toml", Home: "h", Env: secretVars.look})
			if err == nil {
				continue
			}
			failed++
			body, jerr := json.Marshal(err)
			if jerr != nil {
				t.Fatal(jerr)
			}
			if said := err.Error() + string(body); strings.Contains(said, sentinel) {
				t.Errorf("%q tells the secret: %s", broken, said)
			}
		}
	}
	if failed < 150 {
		t.Errorf("only %d of the broken files were refused", failed)
	}
}

func TestPrintIsTOMLWithOrigins(t *testing.T) {
	text := `[agents.defaults]
prompt = "a\"b\\c\n\u0007é"
[channels.telegram]
access = "open"
chats = [-7, { chat = "-8", mention = "never" }]
routes = [{ match = { user = 9, mention = "ops" }, agent = "main" }]
[targets]
a = ["telegram:1"]
[webhooks.json]
token = "${W}"
to = ["a", "telegram:2"]
routes = [{ match = { "repository.name" = "x" }, to = "a" }]
[budget]
day = 2
month = 0.5
[agents.main]
may_spawn = ["main"]
`
	c := good(t, text, vars{"TELEGRAM_BOT_TOKEN": "1:x", "W": "w"})
	var out bytes.Buffer
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := toml.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatalf("what it prints is not TOML: %v\n%s", err, out.String())
	}
	agent := back["agents"].(map[string]any)["main"].(map[string]any)
	same(t, "prompt", agent["prompt"], "a\"b\\c\n\aé")
	same(t, "month", back["budget"].(map[string]any)["month"], 0.5)
	for _, want := range []string{
		"# file: " + c.File + "\n", "# home: " + c.Home + "\n",
		"\n[channels.telegram]\nplatform = \"telegram\"  # default\n",
		"\nbot_token = \"***\"  # TELEGRAM_BOT_TOKEN (environment)\n",
		"\naccess = \"open\"  # parley.toml:4\n",
		"\nchats = [\"-7\", { chat = \"-8\", mention = \"never\" }]  # parley.toml:5\n",
		"\nroutes = [{ match = { \"mention\" = \"ops\", \"user\" = \"9\" }, agent = \"main\" }]  # parley.toml:6\n",
		"\ntoken = \"***\"  # parley.toml:10, ${W}\n",
		"\nroutes = [{ match = { \"repository.name\" = \"x\" }, to = [\"a\"] }]  # parley.toml:12\n",
		"\nday = 2.0  # parley.toml:14\n", "\nmay_spawn = [\"main\"]  # parley.toml:17\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not print %q:\n%s", want, out.String())
		}
	}
}

func TestJSON(t *testing.T) {
	c := good(t, "[budget]\nday = 2\n[tools.mcp_servers.files]\ncommand = \"x\"\n", nil)
	body, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		File     string
		Home     string
		Settings []struct {
			Key      string
			Value    any
			From     string
			NoEffect bool `json:"no_effect"`
		}
		Notices []string
	}
	if err := json.Unmarshal(body, &back); err != nil {
		t.Fatal(err)
	}
	same(t, "file", back.File, c.File)
	shown := map[string][]any{}
	for _, s := range back.Settings {
		shown[s.Key] = []any{s.Value, s.From, s.NoEffect}
	}
	same(t, "a setting", shown["budget.day"], []any{2.0, "parley.toml:2", false})
	same(t, "one without effect", shown["tools.mcp_servers"][1:], []any{"parley.toml:3", true})
	same(t, "notices", back.Notices, []string{"parley.toml:3: tools.mcp_servers: no effect yet"})
}

func TestReload(t *testing.T) {
	before := bot + "[limits]\nuser_turns = 3\nwaiting = 5\n[serve]\ndrain = \"1s\"\n"
	after := "\n" + bot + "access = \"list\"\nallow_from = [1]\nowners = [2]\n[limits]\nuser_turns = 4\nwaiting = 6\n[targets]\na = [\"telegram:1\"]\n[agents.defaults]\nmay_message = [\"a\"]\nqueue = \"followup\"\n"
	env := vars{"T": "1:x"}
	old, next := good(t, before, env), good(t, after, env)
	c, changes, err := config.Reload(old, next)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "live", changes.Live, []string{
		"agents.main.may_message", "channels.telegram.access", "channels.telegram.allow_from", "channels.telegram.owners",
		"limits.user_turns", "targets.a",
	})
	same(t, "restart", changes.Restart, []string{"agents.main.queue", "limits.waiting", "serve.drain", "workspace.root"})
	same(t, "access", c.Channels["telegram"].Access, config.Access{Policy: "list", AllowFrom: []string{"1"}, Owners: []string{"2"}, Mention: "threads"})
	same(t, "limits", c.Limits, config.Limits{UserTurns: 4, UserTurnsHour: 120, UserTokensDay: 5_000_000, Waiting: 5, Outbound: 100_000})
	same(t, "agent", []any{c.Agents["main"].MayMessage, c.Agents["main"].Queue}, []any{[]string{"a"}, "steer"})
	same(t, "targets", len(c.Targets["a"]), 1)
	same(t, "old", old.Limits.UserTurns, 3)

	// Reload with the old file reverses every change.
	c, _, err = config.Reload(c, old)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "access again", c.Channels["telegram"].Access, old.Channels["telegram"].Access)
	same(t, "targets again", len(c.Targets), 0)
}

// Routes change at once if the agents they lead to don't change; otherwise they wait for the restart, together with
// the agents.
func TestReloadOfRoutes(t *testing.T) {
	env := vars{"T": "1:x"}
	route := func(to string) string { return "routes = [{ match = { mention = \"x\" }, agent = \"" + to + "\" }]\n" }
	const ops = "[agents.ops]\n"
	old := good(t, bot+ops, env)
	c, changes, err := config.Reload(old, good(t, bot+route("ops")+ops, env))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "live", changes.Live, []string{"channels.telegram.routes"})
	same(t, "routes", c.Channels["telegram"].Routes, []config.AgentRoute{{Mention: "x", Agent: "ops"}})
	c, changes, err = config.Reload(old, good(t, bot+route("new")+ops+"[agents.new]\n", env))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "restart", changes.Restart[:2], []string{"agents.new", "channels.telegram.routes"})
	same(t, "routes to a new agent", len(c.Channels["telegram"].Routes), 0)
}

func TestReloadOfChannels(t *testing.T) {
	env := vars{"T": "1:x", "DISCORD_BOT_TOKEN": "d"}
	old := good(t, bot, env)
	next := good(t, bot+"[channels.discord]\n[targets]\na = [\"discord:1\"]\n[agents.main]\nmay_message = [\"a\"]\n", env)
	c, changes, err := config.Reload(old, next)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "restart", changes.Restart, []string{"channels.discord", "agents.main.may_message", "targets.a", "workspace.root"})
	same(t, "live", len(changes.Live), 0)
	same(t, "channels", len(c.Channels), 1)
	same(t, "targets", len(c.Targets), 0)
}

func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*.toml")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(body))
	}
	f.Add(everySecret)
	f.Add("[[webhooks.a.routes]]\nmatch.x = 1\n[webhooks.a.routes.to]\n[[webhooks.a.routes]]\n")
	f.Add("targets.\"a.b\" = [[], {}, 1.0, 1979-05-27, true]\n[model]\nbase_url = \"http:///${file:.}$${\"")
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		file := put(t, dir, "parley.toml", text)
		c, err := load(config.Options{File: file, Home: dir, Env: vars{"TELEGRAM_BOT_TOKEN": "1:x", "SLACK_BOT_TOKEN": "s"}.look})
		if err != nil {
			_ = err.Error()
			return
		}
		outputs(t, c)
		if _, _, err := config.Reload(c, c); err != nil {
			t.Errorf("Reload: %v", err)
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	file := filepath.Join("testdata", "team-slack.toml")
	dir := b.TempDir()
	for b.Loop() {
		_, err := load(config.Options{File: file, Home: dir, Env: vars{"SLACK_BOT_TOKEN": "b", "SLACK_APP_TOKEN": "a"}.look})
		if err != nil {
			b.Fatal(err)
		}
	}
}
