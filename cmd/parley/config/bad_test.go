package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/config"
)

// bot is a valid channel, below which a test adds faulty lines.
const bot = "[channels.telegram]\nbot_token = \"${T}\"\n"

type badCase struct {
	name string
	text string
	want string // every problem, one per line, without the file's name
}

func (c badCase) run(t *testing.T) {
	t.Run(c.name, func(t *testing.T) {
		_, err := try(t, c.text, vars{"T": "1:x", "U": "2:y", "L": "a-token-of-25-characters"})
		if _, ok := errors.AsType[*config.Error](err); !ok {
			t.Fatalf("Load = %v, want *config.Error", err)
		}
		lines := strings.Split(strings.TrimSpace(c.want), "\n")
		same(t, "problems", err.Error(), "parley.toml:"+strings.Join(lines, "\nparley.toml:"))
	})
}

func TestBadTraces(t *testing.T) {
	for _, c := range []badCase{
		{"no endpoint", "[trace]\ntext = true\n",
			`1: trace: has no endpoint: there's nowhere to send traces: write endpoint = "http://127.0.0.1:4318", or another collector's address`},
		{"not a URL", "[trace]\nendpoint = \"collector:4318\"\n",
			`2: trace.endpoint: not an address that begins with https:// or http://: write something like endpoint = "http://127.0.0.1:4318"`},
		{"texts without TLS", "[trace]\nendpoint = \"http://collector:4318\"\ntext = true\n",
			`2: trace.endpoint: without TLS, others could read the texts and headers in transit: write https://, or leave out text and headers; http:// is for a collector on this machine, such as "http://127.0.0.1:4318"`},
		{"a key without TLS", "[trace]\nendpoint = \"http://collector:4318\"\nheaders = [\"X-Key: ${L}\"]\n",
			`2: trace.endpoint: without TLS, others could read the texts and headers in transit: write https://, or leave out text and headers; http:// is for a collector on this machine, such as "http://127.0.0.1:4318"`},
		{"not a header", "[trace]\nendpoint = \"https://collector\"\nheaders = [\"${L}\"]\n",
			`3: trace.headers: it isn't NAME: VALUE: write something like headers = ["Authorization: Bearer ${TRACE_TOKEN}"]`},
	} {
		c.run(t)
	}
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"endpoint = \"http://collector:4318\"", "http://collector:4318/v1/traces"},
		{"endpoint = \"https://collector/v1/traces\"\ntext = true", "https://collector/v1/traces"},
		{"endpoint = \"http://127.0.0.1:4318/otlp/\"\nheaders = [\"X-Key: ${L}\"]", "http://127.0.0.1:4318/otlp/v1/traces"},
	} {
		got, err := try(t, "[trace]\n"+c.text+"\n", vars{"L": "a-token-of-25-characters"})
		if err != nil || got.Trace.URL() != c.want {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

func TestBadSubscriptions(t *testing.T) {
	const good = "[subscriptions.x]\nurl = \"https://a.example/p\"\nsecret = \"${L}\"\nevents = [\"turn.*\"]\n"
	for _, c := range []badCase{
		{"empty", "[subscriptions.x]",
			`1: subscriptions.x: has no url: there's nowhere to post events: write url = "https://HOST/PATH"
1: subscriptions.x: has no secret: the program couldn't tell whose events they are: write secret = "${file:PATH}"
1: subscriptions.x: doesn't name any events: write something like events = ["turn.*", "ask.*"]`},
		{"no TLS", strings.Replace(good, "https", "http", 1),
			`2: subscriptions.x.url: without TLS, others could read the events in transit: write https://, or http:// only for a program on this machine, such as "http://127.0.0.1:8080/parley"`},
		{"no TLS in a private network", strings.Replace(good, "https://a.example", "http://10.0.0.1", 1),
			`2: subscriptions.x.url: without TLS, others could read the events in transit: write https://, or http:// only for a program on this machine, such as "http://127.0.0.1:8080/parley"`},
		{"a password", strings.Replace(good, "https://", "https://u:p@", 1),
			`2: subscriptions.x.url: contains a name, a password or parameters, which logs would show: write only the address`},
		{"a short secret", strings.Replace(good, "${L}", "short", 1),
			`3: subscriptions.x.secret: short enough to guess: it needs at least 16 characters: make one with: openssl rand -hex 32`},
		{"a coded secret that was cut", strings.Replace(good, "${L}", "whsec_c2VjcmV0IG9mIHRoZSBzdWJzY3JpYmV", 1),
			`3: subscriptions.x.secret: starts with whsec_, but what follows isn't Base64: copy it again, up to the last =; or make one with: openssl rand -hex 32`},
		{"a short coded secret", strings.Replace(good, "${L}", "whsec_c2hvcnQtc2VjcmV0", 1),
			`3: subscriptions.x.secret: short enough to guess: it needs at least 16 characters: make one with: openssl rand -hex 32`},
		{"an unknown event", strings.Replace(good, "turn.*", "turn.end", 1),
			`4: subscriptions.x.events: unknown event "turn.end": write "turn.ended"`},
		{"an event like no other", strings.Replace(good, "turn.*", "*", 1),
			`4: subscriptions.x.events: unknown event "*": write one of "message.received", "turn.*", "turn.begun", "turn.waiting", "turn.resumed", "turn.ended", "tool.completed", "ask.*", "ask.opened", "ask.decided", "job.*", "job.begun", "job.ended", "task.*", "task.begun", "task.ended", "schedule.*", "schedule.added", "schedule.changed", "schedule.cancelled", "schedule.fired", "schedule.failed", "channel.*", "channel.up", "channel.down", "dead_letter.*", "dead_letter.buried", "dead_letter.replayed", "dead_letter.dropped"`},
	} {
		c.run(t)
	}
	for _, url := range []string{"https://a.example/p", "http://127.0.0.1:8080/p", "http://[::1]/p", "http://localhost/p", "https://10.0.0.1/p"} {
		c, err := try(t, strings.Replace(good, "https://a.example/p", url, 1), vars{"L": "a-token-of-25-characters"})
		if err != nil || c.Subscriptions["x"].URL != url || c.Subscriptions["x"].Text {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestBadKeysAndTypes(t *testing.T) {
	for _, c := range []badCase{
		{"unknown key", bot + `acess = "list"`,
			`3: channels.telegram.acess: unknown key: did you mean access?`},
		{"unknown key of another table", `bot_token = "x"`,
			`1: bot_token: unknown key: it belongs in [channels.NAME]`},
		{"unknown key like no other", "[serve]\nfrobnicate = 1",
			`2: serve.frobnicate: unknown key: the keys here are drain, max_in_flight`},
		{"unknown table", "\n[channel.telegram]",
			`2: channel: unknown key: did you mean [channels]?`},
		{"a value for a table", `limits = 3`,
			`1: limits: has to be a table, not an integer: write [limits] on its own line, and its settings below it`},
		{"a value for a channel", "[channels]\ntelegram = \"x\"",
			`2: channels.telegram: has to be a table, not a string: write [channels.telegram] on its own line, and its settings below it`},
		{"text for a number", "[limits]\nwaiting = \"20\"",
			`2: limits.waiting: has to be an integer, not a string: write something like waiting = 20`},
		{"number for a text", "[serve]\ndrain = 10",
			`2: serve.drain: has to be a string in quotes, not an integer: write something like drain = "10s"`},
		{"token without quotes", "[channels.telegram]\nbot_token = 123456",
			`2: channels.telegram.bot_token: has to be a string in quotes, not an integer: write something like bot_token = "${TELEGRAM_BOT_TOKEN}"`},
		{"text for a list", bot + `owners = "42"`,
			`3: channels.telegram.owners: has to be a list, not a string: write something like owners = ["42"]`},
		{"a percentage that is none", "[budget]\ntell_at = 101",
			`2: budget.tell_at: it's a percentage, so it can be at most 100: write something like tell_at = 80`},
		{"a percentage that is no number", "[budget]\ntell_at = \"80\"",
			`2: budget.tell_at: has to be an integer, not a string: write something like tell_at = 80`},
		{"a time limit that is none", "[jobs]\nmost = 4",
			`2: jobs.most: has to be a string in quotes, not an integer: write something like most = "4h"`},
		{"no agent to give tasks to", "[agents.main]\nmay_spawn = [\"mian\"]",
			`2: agents.main.may_spawn: no agent is called "mian": write "main", or add [agents.mian]`},
		{"a route to nobody", bot + `routes = [{ match = { mention = "ops" }, agent = "op" }]` + "\n[agents.ops]",
			`3: channels.telegram.routes: no agent is called "op": write "ops", or add [agents.op]`},
		{"a route without match", bot + "routes = [\n{ match = { chat = -7 }, agent = \"main\" },\n{ agent = \"main\" },\n]",
			`5: channels.telegram.routes: a route needs "match": a chat, a user or a mention: write something like routes = [{ match = { mention = "ops" }, agent = "ops" }]`},
		{"a route with an empty match", bot + `routes = [{ match = {}, agent = "main" }]`,
			`3: channels.telegram.routes: a route needs "match": a chat, a user or a mention: write something like routes = [{ match = { mention = "ops" }, agent = "ops" }]`},
		{"a route that matches what there is not", bot + `routes = [{ match = { chats = 7 }, agent = "main" }]`,
			`3: channels.telegram.routes: match has no "chats": write "chat"`},
		{"a route with an unknown key", bot + `routes = [{ match = { chat = 7 }, agents = "main" }]`,
			`3: channels.telegram.routes: a route has no "agents": write "agent"`},
		{"a route has no agent", bot + `routes = [{ match = { chat = 7 } }]`,
			`3: channels.telegram.routes: a route has no agent: write something like routes = [{ match = { mention = "ops" }, agent = "ops" }]`},
		{"a route by an empty word", bot + `routes = [{ match = { mention = "" }, agent = "main" }]`,
			`3: channels.telegram.routes: mention is "": write the mention, or leave it out`},
		{"a route by two words", bot + `routes = [{ match = { mention = "the ops" }, agent = "main" }]`,
			`3: channels.telegram.routes: the mention "the ops" isn't a word: write a word that people say after the bot's name, such as mention = "ops"`},
		{"a route by a command", bot + `routes = [{ match = { mention = "Stop" }, agent = "main" }]`,
			`3: channels.telegram.routes: the mention "Stop" is a command: choose another word`},
		{"a route by a channel's user", bot + `routes = [{ match = { user = "telegram:7" }, agent = "main" }]`,
			`3: channels.telegram.routes: "telegram:7" names a channel: write only what follows it: "7"`},
		{"speech without a key", "[speech]\nmodel = \"m\"",
			`1: speech: the server at the default URL needs a key, and there isn't one: write api_key = "${OPENAI_API_KEY}" there, or base_url for a server of your own`},
		{"speech of nothing", "[speech]\nprice_input = 15",
			`1: speech: it doesn't name a server or a model: write api_key = "${OPENAI_API_KEY}" there, or base_url for a server of your own`},
		{"speaking without speech", bot + "speak = \"asked\"",
			`3: channels.telegram.speak: nothing reads answers aloud: there is no [speech]: add [speech] with an api_key or a base_url, or write speak = "off"`},
		{"embeddings of no model", "[embeddings]\nbase_url = \"http://127.0.0.1:1/v1\"",
			`1: embeddings: it doesn't name a model: write model = "nomic-embed-text", or another embedding model that the server has`},
		{"embeddings without a key", "[embeddings]\nmodel = \"m\"",
			`1: embeddings: the model at the default URL needs a key, and there isn't one: write api_key = "${OPENAI_API_KEY}" there, or base_url for a server of your own`},
		{"a judge without calls", "[guard]\nmodel = \"m\"\n[models.m]\nname = \"m\"\nbase_url = \"http://127.0.0.1:1\"",
			`2: guard.model: it has no calls to judge: write judge = ["exec_shell(*)"] next to it`},
		{"calls without a judge", "[guard]\njudge = [\"exec_shell\"]",
			`2: guard.judge: no model is named to judge these calls: write model = "NAME" next to it, where NAME is that of a table [models.NAME]`},
		{"a judge that is the demo", "[guard]\nmodel = \"demo\"\njudge = [\"exec_shell\"]",
			`2: guard.model: the built-in demo can't judge calls: name a real model, in [models.NAME]`},
		{"a time limit of a judge", "[guard]\ntimeout = \"10ms\"",
			`2: guard.timeout: too small: the smallest is "1s": leave it out for the default; it can't be unlimited`},
		{"a fallback of an agent", "[models.big]\nname = \"m\"\nbase_url = \"http://127.0.0.1:1\"\n[agents.main]\nfallback = [\"bik\"]",
			`5: agents.main.fallback: no model is called "bik": write "big"`},
		{"an element of a list", "[agents.main]\nmay_message = [\n \"telegram:1\",\n 7,\n]\n" + bot,
			`4: agents.main.may_message: has to be a string in quotes, not an integer: write something like may_message = ["oncall", "telegram:42"]`},
		{"unknown word", bot + `access = "lists"`,
			`3: channels.telegram.access: unknown value "lists": write "list"`},
		{"word like no other", "[log]\nlevel = \"all of it\"",
			`2: log.level: unknown value "all of it": write one of "debug", "info", "warn", "error"`},
		{"unknown capability", "[agents.defaults]\ncapabilities = [\"file_reed\"]",
			`2: agents.defaults.capabilities: unknown value "file_reed": write "file_read"`},
		{"not TOML", "[serve]\ndrain = 10s",
			"2: not valid TOML: strings must be quoted: each line has to be [table], or key = value with strings in \"quotes\""},
		{"twice", "[serve]\n[serve]",
			"2: not valid TOML: table serve already exists: each line has to be [table], or key = value with strings in \"quotes\""},
		{"a bad name", "[channels.My_Bot]",
			`1: channels.My_Bot: not a valid name: use at most 64 characters: a-z, 0-9 and -`},
		{"a name of parley's own", "[channels.web]",
			`1: channels.web: the name web is reserved for Parley itself: choose another`},
		{"a token called like the owner", "[log]\n[tokens.owner]\ntoken = \"0123456789abcdef\"\nmay = [\"read\"]",
			`2: tokens.owner: the name owner is reserved for the local owner, whose token is in the home: choose another`},
		{"Slack's tokens in each other's place", "[channels.slack]\nbot_token = \"xapp-1-A\"\napp_token = \"xoxb-1-A\"",
			"2: channels.slack.bot_token: this is another kind of token: it begins with xapp-: write the one that begins with xoxb-; this one belongs in app_token\n" +
				"3: channels.slack.app_token: this is another kind of token: it begins with xoxb-: write the one that begins with xapp-; this one belongs in bot_token"},
		{"a user's token for a bot's", "[channels.slack]\nmode = \"send\"\nbot_token = \"xoxp-1-A\"",
			"3: channels.slack.bot_token: this is another kind of token: it begins with xoxp-: write the one that begins with xoxb-"},
	} {
		c.run(t)
	}
}

func TestBadNumbers(t *testing.T) {
	const remedy = ": leave it out for the default; it can't be unlimited"
	for _, c := range []badCase{
		{"nothing is unlimited", "[limits]\nuser_turns = 0", `2: limits.user_turns: too small: the smallest is 1` + remedy},
		{"negative", "[agents.main]\nmax_tool_iterations = -1", `2: agents.main.max_tool_iterations: too small: the smallest is 1` + remedy},
		{"less than none", bot + "history = -1", `3: channels.telegram.history: too small: the smallest is 0` + remedy},
		{"no days", "[retention]\ndays = 0", `2: retention.days: too small: the smallest is 1` + remedy},
		{"no money", "[budget]\nday = 0.0", `2: budget.day: too small: the smallest is 0.000001` + remedy},
		{"no number", "[budget]\nday = nan", `2: budget.day: too large: the largest is 1000000000: write a smaller one`},
		{"no time", "[serve]\ndrain = \"0s\"", `2: serve.drain: too small: the smallest is "1ms"` + remedy},
		{"not a time", "[serve]\ndrain = \"soon\"", `2: serve.drain: "soon" isn't a duration: write something like drain = "10s"`},
		{"too many", "[limits]\nwaiting = 3000000000", `2: limits.waiting: too large: the largest is 2147483647: write a smaller one`},
		{"not an address of the net", bot + `api_url = "telegram.example"`,
			`3: channels.telegram.api_url: not an address that begins with http:// or https://: write something like api_url = "http://127.0.0.1:8081"`},
		{"a password for a web server", "[model]\nbase_url = \"https://me:secret@host/v1\"",
			`2: model.base_url: contains a name, a password or parameters, which logs would show: write only the address`},
		{"not a place to listen", "[http]\nlisten = \"7275\"",
			`2: http.listen: "7275" isn't HOST:PORT: write something like listen = "127.0.0.1:7275", or "" for off`},
	} {
		c.run(t)
	}
}

func TestBadReferences(t *testing.T) {
	for _, c := range []badCase{
		{"missing variable", "[channels.telegram]\nbot_token = \"${NO_SUCH}\"",
			`2: channels.telegram.bot_token: ${NO_SUCH} isn't set: set the environment variable NO_SUCH, or read a file with ${file:PATH}`},
		{"missing file", "[channels.telegram]\nbot_token = \"${file:/no/such}\"",
			`2: channels.telegram.bot_token: the file /no/such doesn't exist: create it with mode 0600, or correct the path in ${file:…}`},
		{"not closed", "[channels.telegram]\nbot_token = \"${T\"",
			`2: channels.telegram.bot_token: a ${ has no }: add the }, or write $${ for a literal ${`},
		{"not a variable", "[channels.telegram]\nbot_token = \"${1:secret}\"",
			`2: channels.telegram.bot_token: ${…} contains no variable name: write ${VAR} or ${file:PATH}, or $${ for a literal ${`},
		{"an endless file", "[channels.telegram]\nbot_token = \"${file:/dev/zero}\"",
			`2: channels.telegram.bot_token: the file /dev/zero can't be read: not a regular file: let the user that runs parley read it, but nobody else`},
		{"empty", "[channels.telegram]\nbot_token = \"\"",
			`2: channels.telegram.bot_token: is empty: give it a value, or remove the line`},
		{"two words", "[channels.telegram]\nbot_token = \"${T} ${U}\"",
			`2: channels.telegram.bot_token: contains a space, a line break or a character that no key or token has: write only the secret`},
	} {
		c.run(t)
	}
}

func TestBadChannels(t *testing.T) {
	for _, c := range []badCase{
		{"no token", "[channels.telegram]",
			`1: channels.telegram.bot_token: is missing: write bot_token = "${TELEGRAM_BOT_TOKEN}", or set TELEGRAM_BOT_TOKEN`},
		{"no platform", "[channels.ops]\nbot_token = \"${T}\"",
			`1: channels.ops: it doesn't name a platform: write platform = "telegram", or "slack" or "discord"`},
		{"nearly a platform", "[channels.telegramm]\nbot_token = \"${T}\"",
			`1: channels.telegramm: it doesn't name a platform: did you mean [channels.telegram]? Otherwise, write platform = "telegram", or "slack" or "discord"`},
		{"Slack's token", bot + `app_token = "${U}"`,
			`3: channels.telegram.app_token: only Slack has one: remove it`},
		{"Slack without one", "[channels.slack]\nbot_token = \"${T}\"",
			`1: channels.slack.app_token: is missing: write app_token = "${SLACK_APP_TOKEN}", or set SLACK_APP_TOKEN`},
		{"no agent", bot + "agent = \"hleper\"\n[agents.helper]\n",
			`3: channels.telegram.agent: no agent is called "hleper": write "helper", or add [agents.hleper]`},
		{"members", bot + `access = "members"`,
			`3: channels.telegram.access: only Slack has "members": write "pairing" (an owner admits each person), or "list" with allow_from`},
		{"a list without list", bot + `allow_from = ["42"]`,
			`3: channels.telegram.allow_from: has no effect without access = "list": write access = "list", or remove allow_from`},
		{"list without a list", bot + `access = "list"`,
			`3: channels.telegram.access: "list" lets nobody in: allow_from and owners are empty: write allow_from = ["42"], or owners`},
		{"not an id", bot + "owners = [42, \"@alice\", \"telegram:7\"]",
			`3: channels.telegram.owners: "@alice" isn't a Telegram user's id: write the number: the bot tells it to anyone it turns away
			 3: channels.telegram.owners: "telegram:7" names a channel: write just the user: "7"`},
		{"groups that are none", bot + "chats = [-7, { chat = \"telegram:-8\" }, \"42\"]",
			`3: channels.telegram.chats: "telegram:-8" names a channel: write just the chat: "-8"
			 3: channels.telegram.chats: "42" isn't the id of a group on Telegram: write the number, which is negative`},
		{"no groups", bot + "chats = []",
			`3: channels.telegram.chats: doesn't name a chat: remove it if the bot should listen in every chat that it's in; otherwise write something like chats = ["C1", { chat = "C2", mention = "always" }]`},
		{"a group twice", bot + "chats = [-7, { chat = -7, mention = \"never\" }]",
			`3: channels.telegram.chats: it contains "-7" twice: remove one of them`},
		{"a group with what it has not", bot + "chats = [{ chat = -7, mentions = \"never\" }]",
			`3: channels.telegram.chats: a chat has no "mentions": write "mention"`},
		{"a group with an unknown word", bot + "chats = [{ chat = -7, mention = \"nevr\" }]",
			`3: channels.telegram.chats: unknown value "nevr": write "never"`},
		{"a group without an id", bot + "chats = [{ mention = \"never\" }]",
			`3: channels.telegram.chats: a chat has no id: write something like chats = ["C1", { chat = "C2", mention = "always" }]`},
		{"no Slack id", "[channels.slack]\nmode = \"send\"\nbot_token = \"${T}\"\nowners = [\"@alice\", \"U01ADMIN\", \"W7\"]",
			`4: channels.slack.owners: "@alice" isn't a Slack user's id: write the member ID, such as "U0123456789": it's in the person's profile, under ⋮`},
		{"twins", bot + "[channels.other]\nplatform = \"telegram\"\nbot_token = \"${T}\"",
			`2: channels.telegram.bot_token: the same token as channels.other: the two would take each other's messages: give it a bot of its own, or write mode = "send"`},
	} {
		c.want = strings.ReplaceAll(c.want, "\n\t\t\t ", "\n")
		c.run(t)
	}
}

func TestBadPlaces(t *testing.T) {
	for _, c := range []badCase{
		{"an agent's MCP server that there is not", bot + "[mcp.notes]\ncommand = \"notes\"\n[agents.main]\nmcp = [\"notes\", \"nots\"]",
			`6: agents.main.mcp: no MCP server is called "nots": write "notes", or add [mcp.nots]`},
		{"an MCP server that nobody has", bot + "[mcp.notes]\ncommand = \"notes\"\n[agents.main]\nmcp = []",
			`3: mcp.notes.agents: no agent has its tools: write agents = ["main"], or whichever agents should have them`},
		{"target of no channel", bot + "[targets]\nci = [\n \"telegram:1\",\n \"telegarm:2/3\"]",
			`6: targets.ci: no channel is called "telegarm": write "telegram:2/3"`},
		{"target of an unknown channel", bot + "[targets]\nci = [\"irc:1\"]",
			`4: targets.ci: no channel is called "irc": add [channels.irc], or use one of telegram`},
		{"target of nothing", bot + "[targets]\nci = []",
			`4: targets.ci: is empty: write something like ci = ["telegram:42"]`},
		{"target without a chat", bot + "[targets]\nci = [\"telegram\"]",
			`4: targets.ci: "telegram" isn't an address: write CHANNEL:CHAT or CHANNEL:CHAT/THREAD`},
		{"target of parley's own name", bot + "[targets]\nagent = [\"telegram:1\"]",
			`4: targets.agent: the name agent is reserved for Parley itself: choose another`},
		{"may_message", bot + "[targets]\noncall = [\"telegram:1\"]\n[agents.defaults]\nmay_message = [\"oncal\", \"nobody\", \"slack:1\"]",
			`6: agents.defaults.may_message: no target is called "oncal": write "oncall"
			 6: agents.defaults.may_message: no target is called "nobody": add it to [targets], or write an address: CHANNEL:CHAT
			 6: agents.defaults.may_message: no channel is called "slack": add [channels.slack], or use one of telegram`},
		{"shards of a home", "[bus]\nshards = 4", `2: bus.shards: [bus] shards without [bus] url: only a bus in Redis has shards: set [bus] url, or remove [bus] shards`},
		{"Sentinels without a name", "[bus]\nurl = \"redis+sentinel://:p@a:1,b:2\"\n[store]\nurl = \"postgres://h/d\"",
			`2: bus.url: doesn't say what the Sentinels call the master: write "redis+sentinel://HOST:PORT,HOST:PORT/NAME"`},
		{"bus without store", "[bus]\nurl = \"redis://127.0.0.1\"",
			`2: bus.url: [bus] url without [store] url: workers would share mail but not logs: set [store] url or DATABASE_URL, or remove [bus] url`},
		{"open webhook", bot + "[webhooks.json]\nto = \"telegram:1\"",
			`3: webhooks.json: has neither token nor secret: anybody could post: write token = "${file:PATH}", or secret if the sender signs`},
		{"webhook to nowhere", bot + "[webhooks.hook]\ntoken = \"${T}\"",
			`3: webhooks.hook: it doesn't name a kind: write kind = "json", "alertmanager" or "github"
			 3: webhooks.hook: has no "to": anything that doesn't match a route has nowhere to go: write to = "TARGET"`},
		{"webhook with an agent that is none", bot + "[agents.ops]\n[webhooks.json]\ntoken = \"${T}\"\nto = \"telegram:1\"\nagent = \"opps\"",
			`7: webhooks.json.agent: no agent is called "opps": write "ops", or add [agents.opps]`},
		{"group without an agent", bot + "[webhooks.json]\ntoken = \"${T}\"\nto = \"telegram:1\"\ngroup = \"{{ .a }}\"",
			`6: webhooks.json.group: has no effect without agent: write agent = "main", or remove it`},
		{"group of what has its own", bot + "[webhooks.github]\nsecret = \"${T}\"\nto = \"telegram:1\"\nagent = \"main\"\ngroup = \"{{ .a }}\"",
			`7: webhooks.github.group: is for plain JSON: github sends its own groups: remove it`},
		{"group that is no template", bot + "[webhooks.json]\ntoken = \"${T}\"\nto = \"telegram:1\"\nagent = \"main\"\ngroup = \"{{ if }}\"",
			`7: webhooks.json.group: can't be read: template:1: missing value for if: write something like group = "{{ .build.id }}"`},
		{"a channel in the place of conversations with webhooks", strings.Replace(bot, "telegram", "webhook", 1) + "platform = \"telegram\"\n[webhooks.json]\ntoken = \"${T}\"\nto = \"webhook:1\"\nagent = \"main\"",
			`1: channels.webhook: if a webhook has an agent, the name webhook is reserved for its conversations: choose another name for the channel`},
		{"route to nowhere", bot + "[webhooks.json]\ntoken = \"${T}\"\nto = \"telegram:1\"\n[[webhooks.json.routes]]\nmatch = { a = \"b\" }\nto = \"telegram:1\"\n[[webhooks.json.routes]]\nmatch = { a = \"b\" }\nto = \"ci\"",
			`9: webhooks.json.routes: no target is called "ci": add it to [targets], or write an address: CHANNEL:CHAT`},
		{"scopes", bot + "[targets]\nci = [\"telegram:1\"]\n[tokens.a]\ntoken = \"${L}\"\nmay = [\"send:cii\", \"rad\"]\n[tokens.b]",
			`7: tokens.a.may: no target is called "cii": write "ci"
			 7: tokens.a.may: unknown value "rad": write "read"
			 8: tokens.b: has no token: write token = "${file:PATH}"
			 8: tokens.b: isn't allowed to do anything: write something like may = ["read"]`},
	} {
		c.want = strings.ReplaceAll(c.want, "\n\t\t\t ", "\n")
		c.run(t)
	}
}

func TestEverythingIsReportedAtOnce(t *testing.T) {
	badCase{"many", bot + "allow_from = [1]\nfoo = 1\n[limits]\nwaiting = 0\n[log]\nlevel = \"loud\"\n[store]\nurl = 1", strings.Join([]string{
		`3: channels.telegram.allow_from: has no effect without access = "list": write access = "list", or remove allow_from`,
		`4: channels.telegram.foo: unknown key: the keys here are platform, mode, bot_token, app_token, receive, signing_secret, public_url, api_url, access, allow_from, owners, approvers, chats, mention, rate_limit, on_unknown, stream, files_mb, agent, routes, history, reactions, introduce, about, session, speak`,
		`6: limits.waiting: too small: the smallest is 1: leave it out for the default; it can't be unlimited`,
		`8: log.level: unknown value "loud": write one of "debug", "info", "warn", "error"`,
		`10: store.url: has to be a string in quotes, not an integer: write something like url = "postgres://127.0.0.1/parley"`,
	}, "\n")}.run(t)
}

func TestBadPlacesOfFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, c := range map[string]struct {
		o    config.Options
		env  vars
		want string
	}{
		"flag": {config.Options{File: "gone.toml", Home: "h"}, nil,
			"can't read the configuration gone.toml: no such file or directory: give the path of a file that exists and can be read"},
		"variable": {config.Options{Home: "h"}, vars{"PARLEY_CONFIG": "gone.toml"},
			"PARLEY_CONFIG (environment): can't read the configuration gone.toml: no such file or directory: give the path of a file that exists and can be read"},
		"folder": {config.Options{File: ".", Home: "h"}, nil,
			"can't read the configuration .: not a regular file: give the path of a file that exists and can be read"},
		"no home": {config.Options{}, nil,
			"Parley can't find a home: neither $HOME nor $PARLEY_HOME is set: give --home DIR"},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Env = c.env.look
			_, err := load(c.o)
			if err == nil {
				t.Fatal("it loads")
			}
			same(t, "problem", err.Error(), c.want)
		})
	}
}

func TestSecretsThatOthersCanRead(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	put(t, dir, "secret", "1:s3cret")
	literal := "[channels.telegram]\nbot_token = \"1:s3cret\"\n"
	referring := "[channels.telegram]\nbot_token = \"${file:secret}\"\n"
	for name, c := range map[string]struct {
		text       string
		file, body os.FileMode // modes of the secret file and of the configuration
		env        vars
		want       string
	}{
		"all closed":             {referring, 0o600, 0o600, nil, ""},
		"configuration open":     {referring, 0o600, 0o644, nil, ""},
		"literal, closed":        {literal, 0o600, 0o600, nil, ""},
		"mounted as credentials": {referring, 0o644, 0o644, vars{"CREDENTIALS_DIRECTORY": dir}, ""},
		"group may read": {referring, 0o640, 0o600, nil,
			"parley.toml:2: channels.telegram.bot_token: the file " + dir + "/secret can be read by others (mode 0640): run: chmod 600 " + dir + "/secret"},
		"others may read": {referring, 0o604, 0o600, vars{"CREDENTIALS_DIRECTORY": dir + "/elsewhere"},
			"parley.toml:2: channels.telegram.bot_token: the file " + dir + "/secret can be read by others (mode 0604): run: chmod 600 " + dir + "/secret"},
		"literal, open": {literal, 0o600, 0o644, nil,
			"parley.toml:2: the file contains a secret, and others can read it (mode 0644): run: chmod 600 " + dir + "/parley.toml"},
		"password in an address, open": {"[bus]\nurl = \"redis://:s3cret@h\"\n[store]\nurl = \"postgres://h/d?sslmode=disable\"\n", 0o600, 0o640, nil,
			"parley.toml:2: the file contains a secret, and others can read it (mode 0640): run: chmod 600 " + dir + "/parley.toml"},
		"password in a parameter, open": {"[store]\nurl = \"postgres://h/d?password=s3cret\"\n", 0o600, 0o644, nil,
			"parley.toml:2: the file contains a secret, and others can read it (mode 0644): run: chmod 600 " + dir + "/parley.toml"},
		"passwords from elsewhere, open":          {"[bus]\nurl = \"redis://:${file:secret}@h\"\n[store]\nurl = \"postgres://u:${file:secret}@h/d\"\n", 0o600, 0o644, nil, ""},
		"password parameter from elsewhere, open": {"[store]\nurl = \"postgres://h/d?password=${file:secret}\"\n", 0o600, 0o644, nil, ""},
		"parameters without a secret, open":       {"[store]\nurl = \"postgres://h/d?sslmode=disable\"\n", 0o600, 0o644, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			put(t, dir, "parley.toml", c.text)
			for file, mode := range map[string]os.FileMode{"secret": c.file, "parley.toml": c.body} {
				if err := os.Chmod(file, mode); err != nil {
					t.Fatal(err)
				}
			}
			_, err := load(config.Options{File: "parley.toml", Home: "h", Env: c.env.look})
			got := ""
			if err != nil {
				got = err.Error()
			}
			same(t, "problem", got, c.want)
		})
	}
}

// An administrator may run commands with the configuration of a systemd service. Its credentials are accepted,
// because the folder that has them is protected.
func TestCredentialsOfAService(t *testing.T) {
	const place = "/run/credentials"
	if err := os.Mkdir(place, 0o755); err == nil {
		t.Cleanup(func() { os.Remove(place) })
	}
	service, err := os.MkdirTemp(place, "test")
	if err != nil {
		t.Skip("only root has credentials: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(service) })
	put(t, service, "telegram", "1:s3cret")
	if err := os.Chmod(filepath.Join(service, "telegram"), 0o440); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put(t, dir, "parley.toml", "[channels.telegram]\nbot_token = \"${file:"+service+"/telegram}\"\n")
	if _, err := load(config.Options{File: filepath.Join(dir, "parley.toml"), Home: dir, Env: vars{}.look}); err != nil {
		t.Error(err)
	}
}
