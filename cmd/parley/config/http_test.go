package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/config"
)

// strong is a token that nobody can guess.
const strong = "0123456789abcdef0123456789abcdef"

const httpText = `[http]
listen = "0.0.0.0:80"
hosts = ["parley.internal"]
[channels.telegram]
mode = "send"
[targets]
ops = ["telegram:1"]
[webhooks.alertmanager]
token = "${W}"
to = "ops"
routes = [{ match = { severity = "critical" }, to = ["ops", "telegram:2"] }, { match = { a = "b" }, to = "telegram:3" }]
template = "{{ .status | upper }}"
[webhooks.builds]
kind = "github"
secret = "${W}"
to = ["telegram:4/5"]
[tokens.ci]
token = "${K}"
may = ["send:ops", "send:telegram:9", "metrics"]
[retention]
days = 30
[bus]
url = "redis://h"
prefix = "p"
[store]
url = "postgres://h/d"
`

func httpVars() vars { return vars{"TELEGRAM_BOT_TOKEN": "1:x", "W": "w-secret", "K": strong} }

func TestHTTPAccess(t *testing.T) {
	c := good(t, httpText, httpVars())
	same(t, "http", c.HTTP, config.HTTP{Listen: "0.0.0.0:80", Hosts: []string{"parley.internal"}})
	same(t, "tokens", c.Tokens, map[string]config.Token{
		"ci": {Name: "ci", Token: strong, May: []string{"send:ops", "send:telegram:9", "metrics"}},
	})
	same(t, "webhooks", c.Webhooks, map[string]config.Webhook{
		"alertmanager": {
			Name: "alertmanager", Kind: "alertmanager", Token: "w-secret", To: []string{"ops"}, Template: "{{ .status | upper }}",
			Routes: []config.Route{
				{Match: map[string]string{"severity": "critical"}, To: []string{"ops", "telegram:2"}},
				{Match: map[string]string{"a": "b"}, To: []string{"telegram:3"}},
			},
		},
		"builds": {Name: "builds", Kind: "github", Secret: "w-secret", To: []string{"telegram:4/5"}},
	})
	same(t, "retention", c.Retention.Days, 30)
	same(t, "bus", []string{string(c.Bus.URL), c.Bus.Prefix, string(c.Store.URL)}, []string{"redis://h", "p", "postgres://h/d"})
}

// A route may lead nowhere; a whole webhook may not.
func TestARouteThatDrops(t *testing.T) {
	const webhook = "[channels.telegram]\nmode = \"send\"\n[webhooks.json]\ntoken = \"${W}\"\n"
	c := good(t, webhook+"to = \"telegram:1\"\nroutes = [{ match = { severity = \"info\" }, to = [] }]\n", httpVars())
	same(t, "routes", c.Webhooks["json"].Routes, []config.Route{{Match: map[string]string{"severity": "info"}, To: []string{}}})
	if _, err := try(t, webhook+"to = []\n", httpVars()); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("a webhook that leads nowhere: %v", err)
	}
}

func TestTooManyAddresses(t *testing.T) {
	list := func(from, n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("%q", fmt.Sprintf("telegram:%d", from+i))
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	const start = "[channels.telegram]\nmode = \"send\"\n[targets]\n"
	const hook = "[webhooks.json]\ntoken = \"${W}\"\nto = "
	good(t, start+"a = "+list(0, 100)+"\nb = "+list(50, 50)+"\n"+hook+`["a", "b", "telegram:7"]`+"\n", httpVars())
	for text, want := range map[string]string{
		start + "a = " + list(0, 101) + "\n":                                                "parley.toml:4: targets.a: leads to 101 addresses",
		start + "a = " + list(0, 60) + "\nb = " + list(60, 60) + "\n" + hook + `["a", "b"]`: "parley.toml:8: webhooks.json.to: leads to 120 addresses",
	} {
		if _, err := try(t, text, httpVars()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestHTTPAccessLeftOut(t *testing.T) {
	c := good(t, "", nil)
	same(t, "http", c.HTTP, config.HTTP{Listen: "127.0.0.1:7275", Hosts: []string{}})
	same(t, "for ever", c.Retention.Days, 0)
	same(t, "tokens and webhooks", len(c.Tokens)+len(c.Webhooks), 0)

	off := good(t, "[http]\nlisten = \"\"\n", nil)
	same(t, "off", off.HTTP.Listen, "")
	same(t, "notices", len(off.Notices()), 0)
}

func TestListeningBeyondThisMachine(t *testing.T) {
	const told = `parley.toml:2: http.listen: others can reach it, but neither [tokens] nor [webhooks] lets anybody in: add [tokens.NAME], or write listen = "127.0.0.1:7275"`
	for listen, notices := range map[string][]string{
		"0.0.0.0:7275": {told}, ":7275": {told}, "[::]:7275": {told}, "parley.internal:80": {told},
		"127.0.0.1:80": nil, "127.9.9.9:80": nil, "[::1]:80": nil, "localhost:80": nil,
	} {
		c := good(t, "[http]\nlisten = \""+listen+"\"\n", nil)
		same(t, listen, c.Notices(), notices)
	}
	admits := good(t, "[http]\nlisten = \":80\"\n[tokens.a]\ntoken = \""+strong+"\"\nmay = [\"read\"]\n", nil)
	same(t, "with a token", len(admits.Notices()), 0)
}

func TestBadHTTPAccess(t *testing.T) {
	const hook = bot + "[webhooks.json]\ntoken = \"${T}\"\nto = \"telegram:1\"\n"
	for _, c := range []badCase{
		{"hosts", "[http]\nhosts = [\"parley.internal\", \"http://x\", \"h:80\"]",
			`2: http.hosts: "http://x" isn't a host name: write only the name, without a scheme or port
2: http.hosts: "h:80" isn't a host name: write only the name, without a scheme or port`},
		{"short token", "[tokens.a]\ntoken = \"${T}\"\nmay = [\"read\"]",
			`2: tokens.a.token: short enough to guess: it needs at least 16 characters: make one with: openssl rand -hex 32`},
		{"one token twice", "[tokens.a]\ntoken = \"${L}\"\nmay = [\"read\"]\n[tokens.b]\ntoken = \"${L}\"\nmay = [\"send\"]",
			`5: tokens.b.token: the same token as tokens.a: Parley couldn't tell the two apart: give it one of its own: openssl rand -hex 32`},
		{"scope of no channel", bot + "[tokens.a]\ntoken = \"${L}\"\nmay = [\n \"send:telegram:1\",\n \"send:telegarm:1\"]",
			`7: tokens.a.may: no channel is called "telegarm": write "telegram:1"`},
		{"scope of no target", bot + "[tokens.a]\ntoken = \"${L}\"\nmay = [\"send:\"]",
			`5: tokens.a.may: no target is called "": add it to [targets], or write an address: CHANNEL:CHAT`},
		{"GitHub without a signature", bot + "[webhooks.github]\ntoken = \"${T}\"\nto = \"telegram:1\"",
			`3: webhooks.github: has no secret: GitHub signs, and sends no token: write secret = "${file:PATH}", the one that you gave GitHub`},
		{"Alertmanager with one", bot + "[webhooks.alertmanager]\nsecret = \"${T}\"\nto = \"telegram:1\"",
			`3: webhooks.alertmanager: has no token: Alertmanager sends one, and can't sign: write token = "${file:PATH}", the one in Alertmanager's http_config`},
		{"template", hook + "template = '''\n{{ .a }}\n{{ if }}'''",
			`6: webhooks.json.template: can't be read: template:2: missing value for if: write something like template = "**{{ .title }}** {{ .body }}"`},
		{"template's function", hook + "template = \"{{ .a | shout }}\"",
			`6: webhooks.json.template: can't be read: template:1: function "shout" not defined: write something like template = "**{{ .title }}** {{ .body }}"`},
		{"template with a secret", hook + "template = \"{{ ${T} }}\"",
			`6: webhooks.json.template: can't be read: write something like template = "**{{ .title }}** {{ .body }}"`},
	} {
		c.run(t)
	}
}

func TestReceivingOverHTTP(t *testing.T) {
	const slack = "[channels.slack]\nbot_token = \"xoxb-1\"\nreceive = \"http\"\nsigning_secret = \"${L}\"\n"
	c := good(t, slack+"[channels.telegram]\nbot_token = \"1:x\"\nreceive = \"http\"\npublic_url = \"https://t.example/bots/\"\n"+
		"[http]\nlisten = \"0.0.0.0:7275\"\npublic_url = \"https://bot.example\"\n", vars{"L": "0123456789abcdef"})
	same(t, "slack", []any{c.Channels["slack"].ByHTTP(), c.Channels["slack"].PublicURL, string(c.Channels["slack"].SigningSecret)},
		[]any{true, "https://bot.example", "0123456789abcdef"})
	same(t, "telegram", c.Channels["telegram"].PublicURL, "https://t.example/bots")
	same(t, "notices of a server that others reach", len(c.Notices()), 0)
	if err := c.CheckGateway(); err != nil {
		t.Error("an app token is asked for: ", err)
	}

	for _, c := range []badCase{
		{"no address", slack,
			`3: http.public_url: is missing: the platform has to know where to reach this server: write [http] public_url = "https://bot.example.com"`},
		{"no signature", "[channels.slack]\nbot_token = \"xoxb-1\"\nreceive = \"http\"\npublic_url = \"https://a.b\"",
			`1: channels.slack.signing_secret: is missing: write signing_secret = "${SLACK_SIGNING_SECRET}", or set SLACK_SIGNING_SECRET`},
		{"an address without TLS", slack + "public_url = \"http://a.b\"",
			`5: channels.slack.public_url: the platform only sends requests over https: write "https://…", the address of the proxy in front of this server`},
		{"nobody listens", slack + "public_url = \"https://a.b\"\n[http]\nlisten = \"\"",
			`3: channels.slack.receive: the platform's requests have nowhere to go: [http] listen is "": write [http] listen = "127.0.0.1:7275", behind a proxy that does TLS`},
		{"only sending", slack + "public_url = \"https://a.b\"\nmode = \"send\"",
			`3: channels.slack.receive: contradicts mode = "send": the channel receives nothing: remove one of the two`},
		{"another platform's way", "[channels.slack]\nbot_token = \"xoxb-1\"\napp_token = \"xapp-1\"\nreceive = \"poll\"",
			`4: channels.slack.receive: Slack doesn't support that: write one of "socket", "http"`},
		{"a secret without a use", "[channels.slack]\nbot_token = \"xoxb-1\"\napp_token = \"xapp-1\"\nsigning_secret = \"${L}\"",
			`4: channels.slack.signing_secret: has no effect without receive = "http": write receive = "http", or remove it`},
		{"another platform's secret", bot + "signing_secret = \"${L}\"\nreceive = \"http\"\npublic_url = \"https://a.b\"",
			`3: channels.telegram.signing_secret: only Slack has one: remove it`},
	} {
		c.run(t)
	}
}

func TestReloadOfHTTPAccess(t *testing.T) {
	old := good(t, httpText, httpVars())
	changed := strings.NewReplacer(
		"0.0.0.0:80", "0.0.0.0:81", `"parley.internal"`, `"other.internal"`, `to = "ops"`, `to = "telegram:7"`, "| upper", "| lower",
		"[webhooks.builds]", "[webhooks.others]", "[tokens.ci]", "[tokens.cd]", "days = 30", "days = 31",
	).Replace(httpText)
	next := good(t, changed, httpVars())
	c, changes, err := config.Reload(old, next)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "live", changes.Live, []string{
		"webhooks.builds", "webhooks.others", "tokens.ci", "tokens.cd",
		"http.hosts", "webhooks.alertmanager.template", "webhooks.alertmanager.to",
	})
	same(t, "restart", changes.Restart, []string{"http.listen", "retention.days", "workspace.root"})
	same(t, "http", c.HTTP, config.HTTP{Listen: "0.0.0.0:80", Hosts: []string{"other.internal"}})
	same(t, "tokens", c.Tokens, next.Tokens)
	same(t, "webhooks", c.Webhooks, next.Webhooks)
	same(t, "retention", c.Retention.Days, 30)

	c, _, err = config.Reload(c, old)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "tokens again", c.Tokens, old.Tokens)
	same(t, "webhooks again", c.Webhooks, old.Webhooks)
}

// A webhook that leads to a channel that doesn't run yet waits for a restart; a token doesn't.
func TestReloadOfHTTPAccessWithAnotherChannel(t *testing.T) {
	old := good(t, httpText, httpVars())
	changed := strings.NewReplacer(`to = "ops"`, `to = "slack:C1"`, "[webhooks.builds]", "[webhooks.others]", "[tokens.ci]", "[tokens.cd]").Replace(httpText)
	next := good(t, changed+"[channels.slack]\nmode = \"send\"\nbot_token = \"x\"\n", httpVars())
	c, changes, err := config.Reload(old, next)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "live", changes.Live, []string{"tokens.ci", "tokens.cd"})
	same(t, "restart", changes.Restart, []string{"channels.slack", "webhooks.builds", "webhooks.others", "webhooks.alertmanager.to", "workspace.root"})
	same(t, "tokens", c.Tokens, next.Tokens)
	same(t, "webhooks", c.Webhooks, old.Webhooks)
}

// A token file that other users can read is refused.
func TestTokensInFiles(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "ci", strong+"\n")
	file := put(t, dir, "parley.toml", "[tokens.ci]\ntoken = \"${file:ci}\"\nmay = [\"read\"]\n")
	load := func() (*config.Config, error) {
		return load(config.Options{File: file, Home: dir, Env: vars{}.look})
	}
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "token", string(c.Tokens["ci"].Token), strong)
	if err := os.Chmod(filepath.Join(dir, "ci"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := load(); err == nil {
		t.Error("a token that everybody can read is taken")
	}
}
