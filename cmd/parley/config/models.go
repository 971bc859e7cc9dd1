package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"time"

	"parley/cmd/parley/config/schema"
	"parley/tools/spelling"
)

// Model holds the settings of a model that answers.
type Model struct {
	// Name is the model's name. If it is "", Parley uses gpt-5-mini at the default URL, and elsewhere
	// the first model that the server lists.
	Name    string
	BaseURL string // "" means the default URL; no trailing slash
	APIKey  Secret
	Vision  string // "auto" or "off"
	Window  int    // how many tokens of context it reads; 0 means that Parley finds out
	API     string // "auto", "chat" or "responses": the protocol for requests
	// Reasoning is how much the model should reason, in its provider's term; "" leaves that to the
	// provider.
	Reasoning string
	Headers   []string // HTTP headers "NAME: VALUE" that are sent with each request
	Body      string   // a JSON object whose fields are added to each request; "" means none
	// FirstToken is the longest wait for the beginning of an answer, and Idle the longest pause
	// within one; 0 means the model's default.
	FirstToken time.Duration
	Idle       time.Duration
	// These are the prices of a million tokens, in micro-dollars. Origin says whether they are set.
	PriceInput, PriceCached, PriceOutput int64
	// Fallback names the models that are asked, in order, if this one doesn't answer.
	Fallback []string
	// Wait is how long a message waits if none of its agent's models answers; 0 means that it is given
	// up at once.
	Wait time.Duration
	Demo bool // whether the built-in demo was requested; then the other fields except Configured are empty
	// Configured says that something can answer: a base URL, a key or the demo is set. If not, chat
	// uses the demo, and serve starts only if no channel receives.
	Configured bool
}

// demoName is the name of the built-in model.
const demoName = "demo"

// modelSection declares the settings of the model that answers for agents that name none.
func modelSection() section {
	settings := append(modelSettings(),
		schema.Setting{Key: "fallback", Kind: schema.Texts, Example: `["backup"]`, Fill: schema.Into(func(m *Model) any { return &m.Fallback })},
		schema.Setting{Key: "wait", Kind: schema.Duration, Least: int64(time.Second), Example: `"1h"`, Reload: schema.AtOnce, Fill: schema.Into(func(m *Model) any { return &m.Wait })})
	for i := range settings {
		switch set := &settings[i]; set.Key {
		case "name":
			set.Env = "OPENAI_MODEL"
		case "base_url":
			set.Env, set.EnvStops, set.EnvIf = "OPENAI_BASE_URL", true, func(v *schema.Values) bool { return !isDemo(v) }
		case "api_key":
			set.Env, set.EnvStops, set.EnvIf = keyVariable, true, mayTakeKey
		}
	}
	return section{
		Section: schema.Section{Name: "model", Settings: settings},
		prepare: func(l *loader) {
			if isDemo(l.Values) {
				l.Remove("model.base_url")
				l.Remove("model.api_key")
			}
		},
		check: func(l *loader) {
			checkHeadersAndBody(l, "model")
			checkFallback(l, "model.fallback")
			checkAnswered(l)
			for _, table := range agentTables(l) {
				checkAgentModel(l, table)
			}
		},
	}
}

// modelsSection declares the settings of additional models.
func modelsSection() section {
	return section{
		Section: schema.Section{Name: "models", Named: true, Settings: modelSettings()},
		check: func(l *loader) {
			for _, name := range l.Names("models") {
				checkHeadersAndBody(l, "models."+name)
				checkFurtherModel(l, "models."+name)
			}
		},
	}
}

// modelSettings declares the settings of one model.
func modelSettings() []schema.Setting {
	return []schema.Setting{
		{Key: "name", Kind: schema.Text, Example: `"gpt-5-mini"`, Fill: schema.Into(func(m *Model) any { return &m.Name })},
		{Key: "base_url", Kind: schema.URL, Schemes: []string{"http", "https"}, Parameters: []string{"api-version"}, Example: `"http://127.0.0.1:11434/v1"`,
			Fill: schema.Into(func(m *Model) any { return &m.BaseURL })},
		{Key: "api_key", Kind: schema.Text, Secret: true, MayBeEmpty: true, Example: `"${OPENAI_API_KEY}"`,
			Fill: schema.Into(func(m *Model) any { return &m.APIKey })},
		{Key: "vision", Kind: schema.Text, Default: "auto", OneOf: []string{"auto", "off"}, Fill: schema.Into(func(m *Model) any { return &m.Vision })},
		{Key: "api", Kind: schema.Text, Default: "auto", OneOf: []string{"auto", "chat", "responses"}, Fill: schema.Into(func(m *Model) any { return &m.API })},
		{Key: "window", Kind: schema.Count, Least: 1000, Example: `32768`, Fill: schema.Into(func(m *Model) any { return &m.Window })},
		{Key: "reasoning", Kind: schema.Text, Example: `"low"`, Fill: schema.Into(func(m *Model) any { return &m.Reasoning })},
		{Key: "headers", Kind: schema.Texts, Secret: true, Headers: schema.References, Example: `["X-Title: Parley"]`, Fill: schema.Into(func(m *Model) any { return &m.Headers })},
		{Key: "body", Kind: schema.Text, Example: `"{\"top_p\": 0.9}"`, Fill: schema.Into(func(m *Model) any { return &m.Body })},
		{Key: "first_token", Kind: schema.Duration, Least: int64(time.Second), Example: `"120s"`, Fill: schema.Into(func(m *Model) any { return &m.FirstToken })},
		{Key: "idle", Kind: schema.Duration, Least: int64(time.Second), Example: `"60s"`, Fill: schema.Into(func(m *Model) any { return &m.Idle })},
		{Key: "price_input", Kind: schema.Money, ZeroIsOff: true, Example: `0.25`, Fill: schema.Into(func(m *Model) any { return &m.PriceInput })},
		{Key: "price_cached", Kind: schema.Money, ZeroIsOff: true, Example: `0.025`, Fill: schema.Into(func(m *Model) any { return &m.PriceCached })},
		{Key: "price_output", Kind: schema.Money, ZeroIsOff: true, Example: `2.0`, Fill: schema.Into(func(m *Model) any { return &m.PriceOutput })},
	}
}

// isDemo reports whether the built-in demo answers in place of a model.
func isDemo(v *schema.Values) bool { return v.Text("model.name") == demoName }

// keyVariable is the environment variable that contains the model's key.
const keyVariable = "OPENAI_API_KEY"

// mayTakeKey reports whether the model's key may be taken from the environment. It may not if the
// file names a server, which may not be the one that the key belongs to. If there is a key that
// therefore isn't used, mayTakeKey notifies the operator.
func mayTakeKey(v *schema.Values) bool {
	if isDemo(v) {
		return false
	}
	if v.At("model.base_url").File == "" {
		return true
	}
	if _, ok := v.Env(keyVariable); ok {
		v.Notify(schema.Problem{
			Var: keyVariable, Key: "model.api_key", Wrong: "Parley doesn't send it to the base_url in the file",
			Remedy: `write api_key = "${` + keyVariable + `}" there if you want that`,
		})
	}
	return false
}

// checkHeadersAndBody reports headers of a model's requests that cannot be sent, and a body that isn't a JSON object.
func checkHeadersAndBody(l *loader, table string) {
	checkHeaders(l, table, `["X-Title: Parley"]`)
	var fields map[string]any
	if body := l.Text(table + ".body"); body != "" && json.Unmarshal([]byte(body), &fields) != nil {
		l.Report(l.At(table+".body"), table+".body", "it isn't a JSON object", `write something like body = '{"top_p": 0.9}'`)
	}
}

// checkFurtherModel reports a model in [models.NAME] that has no name, or neither a server nor a key.
func checkFurtherModel(l *loader, table string) {
	if l.Text(table+".name") == "" {
		l.Report(l.At(table), table, "it doesn't name a model", `write name = "gpt-5-mini" there`)
	}
	if l.Text(table+".base_url") == "" && l.Text(table+".api_key") == "" {
		l.Report(l.At(table), table, "the model at the default URL needs a key, and there isn't one",
			`write api_key = "${OPENAI_API_KEY}" there, or base_url for a server of your own`)
	}
}

// checkFallback reports names in the list of fallbacks at this path for which there is no table
// [models.NAME].
func checkFallback(l *loader, path string) {
	for i, name := range l.Texts(path) {
		if !l.Mentioned(path) || slices.Contains(l.Names("models"), name) {
			continue
		}
		l.Report(l.ElementAt(path, i), path, fmt.Sprintf("no model is called %q", name), modelRemedy(l, name))
	}
}

// modelRemedy returns what to do about a model's name for which there is no table [models.NAME].
func modelRemedy(l *loader, name string) string {
	if near := spelling.Nearest(name, l.Names("models")); near != "" {
		return fmt.Sprintf("write %q", near)
	}
	return "add [models." + name + "]"
}

// checkAgentModel reports an agent's fallbacks that don't exist, and a model, for answers or for
// titles, for which no server is known.
func checkAgentModel(l *loader, table string) {
	checkFallback(l, table+".fallback")
	checkNamedModel(l, table+".model")
	checkNamedModel(l, table+".titles")
}

// checkNamedModel reports that no server is known for the model that the setting at path names: a
// model that is not in [models] is requested from the server of [model].
func checkNamedModel(l *loader, path string) {
	name := l.Text(path)
	if !l.Mentioned(path) || name == "" || name == demoName || slices.Contains(l.Names("models"), name) {
		return
	}
	switch {
	case l.Text("model.name") == name:
	case l.Text("model.name") == demoName:
		l.reportForAgents(l.At(path), path,
			fmt.Sprintf("no model is called %q, and [model] is the demo, which has no other models", name),
			modelRemedy(l, name))
	case l.Text("model.base_url") == "" && l.Text("model.api_key") == "":
		l.reportForAgents(l.At(path), path,
			fmt.Sprintf("no model is called %q, and [model] has no server to ask for it", name),
			modelRemedy(l, name)+`, or write [model] base_url or api_key`)
	}
}

// hasOwnModel reports whether an agent names the demo or a model in [models], so that it does not
// need [model].
func hasOwnModel(l *loader, agent string) bool {
	name := l.Text("agents." + agent + ".model")
	return name == demoName || slices.Contains(l.Names("models"), name)
}

// needsModel returns the path of the first table that is useless without a model, such as a channel
// that receives, and the fault to report if [model] is not configured; "" if no table needs [model].
func needsModel(l *loader) (path string, without *schema.Fault) {
	const remedy = `set OPENAI_API_KEY; or [model] base_url for your own server; or [model] name = "demo"; or `
	for _, name := range l.Names("channels") {
		if path := "channels." + name; l.Text(path+".mode") == "chat" && slices.ContainsFunc(agentsOf(l, path), func(agent string) bool { return !hasOwnModel(l, agent) }) {
			return path, &schema.Fault{Wrong: "it receives messages, but no model answers them", Remedy: remedy + `mode = "send" here`}
		}
	}
	for _, name := range l.Names("webhooks") {
		if path := "webhooks." + name; l.Text(path+".agent") != "" && !hasOwnModel(l, l.Text(path+".agent")) {
			return path, &schema.Fault{Wrong: "it has an agent, but no model answers", Remedy: remedy + "remove agent here"}
		}
	}
	return "", nil
}

// checkAnswered reports channels or webhooks that nothing would answer because no model is
// configured.
func checkAnswered(l *loader) {
	hears, what := needsModel(l)
	name, base, key := l.Text("model.name"), l.Text("model.base_url"), l.Text("model.api_key")
	if hears == "" || name == demoName {
		return
	}
	u, err := url.Parse(base)
	own := base == "" || err == nil && u.Hostname() == "api.openai.com"
	switch {
	case !own || key != "":
	case base == "" && name == "":
		l.reportForAgents(l.At(hears), hears, what.Wrong, what.Remedy)
	case base == "":
		l.reportForAgents(l.At("model.name"), "model.name",
			"the model at the default URL needs a key, and there isn't one",
			"set OPENAI_API_KEY, or write [model] base_url for a server of your own")
	default:
		l.reportForAgents(l.At("model.base_url"), "model.base_url",
			"the server named here needs a key, and Parley doesn't send it the one in the environment unless you say so",
			`write api_key = "${OPENAI_API_KEY}" next to it`)
	}
}
