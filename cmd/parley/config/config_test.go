package config_test

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/cmd/parley/config"
)

// vars is an environment.
type vars map[string]string

func (v vars) look(name string) (string, bool) {
	s, ok := v[name]
	return s, ok
}

// put writes a file that only its owner may read, and returns its path.
func put(t testing.TB, dir, name, body string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// try loads a file with this text as ./parley.toml, with an empty home.
func try(t *testing.T, text string, env vars) (*config.Config, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	put(t, ".", "parley.toml", text)
	return load(config.Options{File: "parley.toml", Home: "home", Env: env.look})
}

// good loads a file as try does, and fails the test if there is an error.
func good(t *testing.T, text string, env vars) *config.Config {
	t.Helper()
	c, err := try(t, text, env)
	if err != nil {
		t.Fatalf("Load:\n%v", err)
	}
	return c
}

// bare loads the configuration without a file.
func bare(t *testing.T, env vars) *config.Config {
	t.Helper()
	c, err := load(config.Options{Home: t.TempDir(), Env: env.look})
	if err != nil {
		t.Fatalf("Load:\n%v", err)
	}
	return c
}

// same fails the test unless got and want are equal.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func TestDefaults(t *testing.T) {
	home := t.TempDir()
	c, err := load(config.Options{Home: home, Env: vars{}.look})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "file", c.File, "")
	same(t, "home", c.Home, home)
	same(t, "workspace", c.Workspace, config.Workspace{Root: filepath.Join(home, "workspaces"), MaxMB: 200, UndoTurns: 20})
	same(t, "serve", c.Serve, config.Serve{Drain: 10 * time.Second, MaxInFlight: 4096})
	same(t, "log", c.Log, config.Log{Level: slog.LevelInfo})
	same(t, "limits", c.Limits, config.Limits{UserTurns: 3, UserTurnsHour: 120, UserTokensDay: 5_000_000, Waiting: 20, Outbound: 100_000})
	same(t, "model", c.Model, config.Model{API: "auto", Vision: "auto"})
	a := c.Agents["main"]
	same(t, "agents", len(c.Agents), 1)
	same(t, "iterations", []int{a.MaxToolIterations, a.ToolErrorLimit, a.MaxParallelTools, a.ContextTokens}, []int{20, 3, 5, 64_000})
	same(t, "capabilities", len(a.Capabilities), 2)
	same(t, "queue", a.Queue, "steer")
	same(t, "channels", len(c.Channels), 0)
	same(t, "notices", len(c.Notices()), 0)
	if err := c.CheckServe(); err != nil {
		t.Errorf("CheckServe with nothing that hears people: %v", err)
	}
}

func TestEarlierMessagesCanBeLeftUnread(t *testing.T) {
	for line, want := range map[string]int{"history = 0": 0, "history = 7": 7, "": config.DefaultHistory} {
		c := good(t, bot+"owners = [1]\n"+line+"\n[model]\nname = \"demo\"", vars{"T": "1:x"})
		same(t, line, c.Channels["telegram"].History, want)
	}
}

func TestAcceptance(t *testing.T) {
	for name, env := range map[string]vars{
		"personal-telegram.toml": {"TELEGRAM_BOT_TOKEN": "1:secret"},
		"team-slack.toml":        {"SLACK_BOT_TOKEN": "b", "SLACK_APP_TOKEN": "a", "OPENAI_API_KEY": "k"},
		"notifications.toml":     {},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			body, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{"slack", "discord", "telegram", "alertmanager", "github", "ci"} {
				put(t, dir, secret, "s-"+secret+"-0123456789abcdef\n")
			}
			// As in a checkout, others may read a file without secrets.
			file := put(t, dir, name, strings.ReplaceAll(string(body), "/run/secrets", dir))
			if err := os.Chmod(file, 0o644); err != nil {
				t.Fatal(err)
			}
			c, err := load(config.Options{File: file, Home: dir, Env: env.look})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.CheckServe(); err != nil {
				t.Errorf("parley serve wouldn't start: %v", err)
			}
			if notices := c.Notices(); len(notices) > 0 {
				t.Errorf("it is told %q", notices)
			}
			for name, ch := range c.Channels {
				if ch.BotToken == "" || strings.ContainsAny(string(ch.BotToken), "\n$") {
					t.Errorf("channel %s has no whole token", name)
				}
			}
		})
	}
}

func TestNotificationsNeedNoModel(t *testing.T) {
	text := "[channels.telegram]\nmode = \"send\"\n[targets]\nci = [\"telegram:-10033\", \"telegram:1/7\"]\n"
	c := good(t, text, vars{"TELEGRAM_BOT_TOKEN": "1:x"})
	if err := c.CheckServe(); err != nil {
		t.Error(err)
	}
	same(t, "target", c.Targets["ci"], []bus.Address{{Channel: "telegram", Chat: "-10033"}, {Channel: "telegram", Chat: "1", Thread: "7"}})
}

func TestWhichFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, level string) string {
		return put(t, dir, name, "[log]\nlevel = \""+level+"\"\n")
	}
	inHome := write("home/parley.toml", "debug")
	local := write("parley.toml", "info")
	named := write("named.toml", "warn")
	flag := write("flag.toml", "error")

	for name, c := range map[string]struct {
		o    config.Options
		env  vars
		want string
	}{
		"flag before all":             {config.Options{File: flag, Home: home, LookLocal: true}, vars{"PARLEY_CONFIG": named}, flag},
		"variable before local":       {config.Options{Home: home, LookLocal: true}, vars{"PARLEY_CONFIG": named}, named},
		"local before home":           {config.Options{Home: home, LookLocal: true}, nil, local},
		"local only where looked for": {config.Options{Home: home}, nil, inHome},
		"home by variable":            {config.Options{}, vars{"PARLEY_HOME": home}, inHome},
		"flag before the variable":    {config.Options{Home: home}, vars{"PARLEY_HOME": dir}, inHome},
		"none":                        {config.Options{}, vars{"HOME": home}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Env = c.env.look
			got, err := load(c.o)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "file", got.File, c.want)
		})
	}
}

func TestEnvironmentAlone(t *testing.T) {
	c := bare(t, vars{"TELEGRAM_BOT_TOKEN": "1:x", "OPENAI_API_KEY": "k", "OPENAI_MODEL": "m", "OPENAI_BASE_URL": "http://h/v1/", "DISCORD_BOT_TOKEN": ""})
	same(t, "channels", slices.Sorted(maps.Keys(c.Channels)), []string{"telegram"})
	same(t, "token", string(c.Channels["telegram"].BotToken), "1:x")
	same(t, "access", c.Channels["telegram"].Access.Policy, "pairing")
	same(t, "model", c.Model, config.Model{Name: "m", BaseURL: "http://h/v1", APIKey: "k", API: "auto", Vision: "auto", Configured: true})
	if err := c.CheckServe(); err != nil {
		t.Error(err)
	}
}

func TestEnvironmentBesideAFile(t *testing.T) {
	env := vars{"TELEGRAM_BOT_TOKEN": "1:x", "SLACK_BOT_TOKEN": "s", "OPENAI_API_KEY": "k"}
	c := good(t, "[channels.me]\nplatform = \"telegram\"\n", env)
	same(t, "channels", slices.Sorted(maps.Keys(c.Channels)), []string{"me"})
	same(t, "token", string(c.Channels["me"].BotToken), "1:x")
	same(t, "key", string(c.Model.APIKey), "k")

	empty := good(t, "", env)
	same(t, "channels beside an empty file", len(empty.Channels), 0)
}

func TestKeyStaysFromTheFilesServer(t *testing.T) {
	env := vars{"OPENAI_API_KEY": "k"}
	c := good(t, "[model]\nbase_url = \"https://elsewhere.example/v1\"\n", env)
	same(t, "key", string(c.Model.APIKey), "")
	same(t, "configured", c.Model.Configured, true)
	same(t, "notices", len(c.Notices()), 1)

	meant := good(t, "[model]\nbase_url = \"https://elsewhere.example/v1\"\napi_key = \"${OPENAI_API_KEY}\"\n", env)
	same(t, "key where it is meant", string(meant.Model.APIKey), "k")
	same(t, "notices", len(meant.Notices()), 0)

	fromEnv := bare(t, vars{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://h/v1"})
	same(t, "key where both come from the environment", string(fromEnv.Model.APIKey), "k")
}

func TestDemoBeatsTheEnvironment(t *testing.T) {
	c := good(t, "[model]\nname = \"demo\"\n[channels.telegram]\n", vars{
		"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://h/v1", "OPENAI_MODEL": "m", "TELEGRAM_BOT_TOKEN": "1:x",
	})
	same(t, "model", c.Model, config.Model{Demo: true, Configured: true})
	if err := c.CheckServe(); err != nil {
		t.Error(err)
	}
}

func TestServeWantsAModel(t *testing.T) {
	token := vars{"TELEGRAM_BOT_TOKEN": "1:x"}
	for name, c := range map[string]struct {
		text string
		env  vars
		want string
	}{
		"none": {"[channels.telegram]\n", token,
			`parley.toml:1: channels.telegram: it receives messages, but no model answers them: set OPENAI_API_KEY; or [model] base_url for your own server; or [model] name = "demo"; or mode = "send" here`},
		"a name alone": {"[channels.telegram]\n[model]\nname = \"gpt-5-mini\"\n", token,
			`parley.toml:3: model.name: the model at the default URL needs a key, and there isn't one: set OPENAI_API_KEY, or write [model] base_url for a server of your own`},
		"the default URL by name": {"[channels.telegram]\n[model]\nbase_url = \"https://api.openai.com/v1\"\n", vars{"TELEGRAM_BOT_TOKEN": "1:x", "OPENAI_API_KEY": "k"},
			`parley.toml:3: model.base_url: the server named here needs a key, and Parley doesn't send it the one in the environment unless you say so: write api_key = "${OPENAI_API_KEY}" next to it`},
		"a webhook with an agent": {"[channels.telegram]\nmode = \"send\"\n[webhooks.json]\ntoken = \"x\"\nto = \"telegram:1\"\nagent = \"main\"\n", token,
			`parley.toml:3: webhooks.json: it has an agent, but no model answers: set OPENAI_API_KEY; or [model] base_url for your own server; or [model] name = "demo"; or remove agent here`},
		"sends only":                     {"[channels.telegram]\nmode = \"send\"\n", token, ""},
		"a further model of the agent's": {"[channels.telegram]\n[agents.defaults]\nmodel = \"big\"\n[models.big]\nname = \"m\"\nbase_url = \"http://127.0.0.1/v1\"\n", token, ""},
		"a model without a server": {"[channels.telegram]\nmode = \"send\"\n[agents.ops]\nmodel = \"bik\"\n[models.big]\nname = \"m\"\nbase_url = \"http://127.0.0.1/v1\"\n", token,
			`parley.toml:4: agents.ops.model: no model is called "bik", and [model] has no server to ask for it: write "big", or write [model] base_url or api_key`},
		"a model for titles without a server": {"[channels.telegram]\nmode = \"send\"\n[agents.main]\nmodel = \"big\"\ntitles = \"bik\"\n[models.big]\nname = \"m\"\nbase_url = \"http://127.0.0.1/v1\"\n", token,
			`parley.toml:5: agents.main.titles: no model is called "bik", and [model] has no server to ask for it: write "big", or write [model] base_url or api_key`},
		"a judge without a server": {"[channels.telegram]\nmode = \"send\"\n[guard]\nmodel = \"bik\"\njudge = [\"exec_shell\"]\n[models.big]\nname = \"m\"\nbase_url = \"http://127.0.0.1/v1\"\n", token,
			`parley.toml:4: guard.model: no model is called "bik", and [model] has no server to ask for it: write "big", or write [model] base_url or api_key`},
		"another model of the demo's": {"[channels.telegram]\n[model]\nname = \"demo\"\n[agents.ops]\nmodel = \"m\"\n", token,
			`parley.toml:5: agents.ops.model: no model is called "m", and [model] is the demo, which has no other models: add [models.m]`},
		"own server": {"[channels.telegram]\n[model]\nbase_url = \"http://127.0.0.1/v1\"\n", token, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := good(t, c.text, c.env).CheckServe(); err != nil {
				got = err.Error()
			}
			same(t, "CheckServe", got, c.want)
		})
	}
}

// Environment variables of other programs stop only the server, never a chat.
func TestForeignVariablesStopServeAlone(t *testing.T) {
	for name, c := range map[string]struct {
		env  vars
		want string
	}{
		"bus without store": {vars{"REDIS_URL": "redis://h"}, "REDIS_URL (environment): bus.url: [bus] url without [store] url"},
		"another database":  {vars{"DATABASE_URL": "mysql://h/db"}, "DATABASE_URL (environment): store.url: not an address"},
		"half of Slack":     {vars{"SLACK_BOT_TOKEN": "x", "OPENAI_API_KEY": "k"}, "SLACK_BOT_TOKEN (environment): channels.slack.app_token: is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			err := bare(t, c.env).CheckServe()
			if _, ok := errors.AsType[*config.Error](err); !ok || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("CheckServe = %v, want %s…", err, c.want)
			}
		})
	}
}

func TestValues(t *testing.T) {
	text := `
[serve]
drain = "1.5d12h"
[workspace]
root = "files/${SUB}"
[agents.defaults]
max_tool_iterations = 7
prompt = "costs $${5} and $5"
[agents.helper]
queue = "followup"
[channels.telegram]
bot_token = "${file:token}"
api_url = "http://127.0.0.1:8081/"
access = "list"
allow_from = [42, "43"]
owners = [44]
agent = "helper"
`
	t.Chdir(t.TempDir())
	put(t, ".", "token", "1:two-newlines\r\n")
	put(t, ".", "parley.toml", text)
	c, err := load(config.Options{File: "parley.toml", Home: "home", Env: vars{"SUB": "a b"}.look})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(c.File)
	same(t, "drain", c.Serve.Drain, 48*time.Hour)
	same(t, "root", c.Workspace.Root, filepath.Join(folder, "files", "a b"))
	same(t, "home", c.Home, filepath.Join(folder, "home"))
	same(t, "helper", []any{c.Agents["helper"].MaxToolIterations, c.Agents["helper"].Queue}, []any{7, "followup"})
	same(t, "main", []any{c.Agents["main"].MaxToolIterations, c.Agents["main"].Queue}, []any{7, "steer"})
	same(t, "literal", c.Agents["main"].Prompt, "costs ${5} and $5")
	same(t, "token", string(c.Channels["telegram"].BotToken), "1:two-newlines")
	same(t, "api_url", c.Channels["telegram"].APIURL, "http://127.0.0.1:8081")
	same(t, "access", c.Channels["telegram"].Access, config.Access{Policy: "list", AllowFrom: []string{"42", "43"}, Owners: []string{"44"}, Mention: "threads"})
}

func TestNoEffectYet(t *testing.T) {
	text := `[http]
listen = ""
[agents.defaults]
capabilities = ["file_read"]
[channels.discord]
bot_token = "${D}"
[channels.telegram]
approvers = [1]
[tools.mcp_servers.files]
command = "x"
[retention]
days = 30
`
	c := good(t, text, vars{"D": "d", "TELEGRAM_BOT_TOKEN": "1:x", "REDIS_URL": "redis://h", "DATABASE_URL": "postgres://h/d"})
	same(t, "notices", c.Notices(), []string{
		"parley.toml:9: tools.mcp_servers: no effect yet",
	})
}

// The model that judges calls is chosen like an agent's model. The demo model judges nothing.
func TestJudge(t *testing.T) {
	const judge, further = "[guard]\njudge = [\"exec_shell\"]\nmodel = ", "[models.small]\nname = \"s\"\nbase_url = \"http://127.0.0.1/s\"\n"
	for _, c := range []struct{ text, want string }{
		{"[model]\nbase_url = \"http://127.0.0.1/v1\"\n", ""},
		{"[model]\nbase_url = \"http://127.0.0.1/v1\"\nname = \"m\"\n" + judge + "\"m\"\n", "model  model.name"},
		{"[model]\nbase_url = \"http://127.0.0.1/v1\"\n" + judge + "\"t\"\n", "model t guard.model"},
		{"[model]\nname = \"demo\"\n" + judge + "\"small\"\n" + further, "models.small  models.small.name"},
		{judge + "\"t\"\n", ""},
	} {
		got := ""
		if choice, ok := good(t, c.text, nil).Judge(); ok {
			got = choice.Table + " " + choice.Name + " " + choice.Key
		}
		same(t, c.text, got, c.want)
	}
	same(t, "by default", good(t, "", nil).Guard, config.Guard{Timeout: 5 * time.Second})
}

// Only a model that the operator names makes titles, and the demo model makes none.
func TestTitlesOf(t *testing.T) {
	const further = "[models.small]\nname = \"s\"\nbase_url = \"http://127.0.0.1/s\"\n"
	for _, c := range []struct{ text, want string }{
		{"[model]\nbase_url = \"http://127.0.0.1/v1\"\n", ""},
		{"[model]\nbase_url = \"http://127.0.0.1/v1\"\nname = \"m\"\n[agents.main]\ntitles = \"m\"\n", "model  model.name"},
		{"[model]\nbase_url = \"http://127.0.0.1/v1\"\n[agents.defaults]\ntitles = \"t\"\n", "model t agents.main.titles"},
		{"[model]\nname = \"demo\"\n[agents.main]\ntitles = \"small\"\n" + further, "models.small  models.small.name"},
		{"[model]\nbase_url = \"http://127.0.0.1/v1\"\n[agents.main]\ntitles = \"demo\"\n", ""},
		{"[agents.main]\ntitles = \"t\"\n", ""},
	} {
		got := ""
		if choice, ok := good(t, c.text, nil).TitlesOf(config.MainAgent); ok {
			got = choice.Table + " " + choice.Name + " " + choice.Key
		}
		same(t, c.text, got, c.want)
	}
}
