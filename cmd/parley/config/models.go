package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"parley/tools/spelling"
)

// Model has the settings of a model that answers.
type Model struct {
	// Name is the model's name. If it is "", it is gpt-5-mini at the default URL, and
	// elsewhere the first model that the server lists.
	Name    string
	BaseURL string // "" means the default URL; no trailing slash
	APIKey  Secret
	Vision  string // "auto" or "off"
	Window  int    // how many tokens of context it reads; 0 means that Parley finds out
	API     string // "auto", "chat" or "responses": the protocol in which it is asked
	// Reasoning is how much the model should reason, in its provider's word; "" leaves
	// that to the provider.
	Reasoning string
	Headers   []string // HTTP headers "NAME: VALUE" that are sent with each request
	Body      string   // a JSON object whose fields are added to each request; "" means none
	// FirstToken is the longest wait for the beginning of an answer, and Idle the longest
	// pause within one; 0 means the model's default.
	FirstToken time.Duration
	Idle       time.Duration
	// The prices of a million tokens, in micro-dollars. Origin says whether they are set.
	PriceInput, PriceCached, PriceOutput int64
	// Fallback names the models that are asked, in order, if this one does not answer.
	Fallback []string
	// Wait is how long a message waits if none of its models answers; 0 means that it is
	// given up at once.
	Wait time.Duration
	Demo bool // the built-in demo was asked for; the rest is empty then
	// Configured says that something can answer: a base URL, a key or the demo.
	// If not, chat uses the demo, and serve starts only without receiving channels.
	Configured bool
}

// An environment names the environment variables that fill the settings of a model.
type environment struct{ name, baseURL, apiKey string }

// modelSettings declares the settings of one model. The function modelOf takes what the settings'
// table describes, such as the Config, and returns the Model in it.
func modelSettings(modelOf func(dest any) *Model, env environment) []setting {
	return []setting{
		{key: "name", kind: asText, env: env.name, example: `"gpt-5-mini"`, since: first, fills: func(o any) any { return &modelOf(o).Name }},
		{key: "base_url", kind: asURL, schemes: []string{"http", "https"}, parameters: []string{"api-version"}, env: env.baseURL, inChat: env.baseURL != "", example: `"http://127.0.0.1:11434/v1"`,
			since: first, fills: func(o any) any { return &modelOf(o).BaseURL }},
		{key: "api_key", kind: asText, secret: true, mayBeEmpty: true, env: env.apiKey, inChat: env.apiKey != "", example: `"${OPENAI_API_KEY}"`,
			since: first, fills: func(o any) any { return &modelOf(o).APIKey }},
		{key: "vision", kind: asText, def: "auto", oneOf: built("auto", "off"), since: first, fills: func(o any) any { return &modelOf(o).Vision }},
		{key: "api", kind: asText, def: "auto", oneOf: built("auto", "chat", "responses"), since: first, fills: func(o any) any { return &modelOf(o).API }},
		{key: "window", kind: asCount, least: 1000, example: `32768`, since: first, fills: func(o any) any { return &modelOf(o).Window }},
		{key: "reasoning", kind: asText, example: `"low"`, since: first, fills: func(o any) any { return &modelOf(o).Reasoning }},
		{key: "headers", kind: asTexts, secret: true, example: `["X-Title: Parley"]`, since: first, fills: func(o any) any { return &modelOf(o).Headers }},
		{key: "body", kind: asText, example: `"{\"top_p\": 0.9}"`, since: first, fills: func(o any) any { return &modelOf(o).Body }},
		{key: "first_token", kind: asDuration, least: int64(time.Second), example: `"120s"`, since: first, fills: func(o any) any { return &modelOf(o).FirstToken }},
		{key: "idle", kind: asDuration, least: int64(time.Second), example: `"60s"`, since: first, fills: func(o any) any { return &modelOf(o).Idle }},
		{key: "price_input", kind: asMoney, zeroIsOff: true, example: `0.25`, since: first, fills: func(o any) any { return &modelOf(o).PriceInput }},
		{key: "price_cached", kind: asMoney, zeroIsOff: true, example: `0.025`, since: first, fills: func(o any) any { return &modelOf(o).PriceCached }},
		{key: "price_output", kind: asMoney, zeroIsOff: true, example: `2.0`, since: first, fills: func(o any) any { return &modelOf(o).PriceOutput }},
	}
}

// A ModelChoice says which model an agent asks: the table of its settings and, if the agent names
// another one at the same server, its name.
type ModelChoice struct {
	Table string // the table that has its server and its key: "model", or "models.NAME"
	Name  string // the model's name, where the agent gives one and the table does not
	Key   string // the setting that chose this model, for messages to the operator
	Demo  bool   // it is the built-in demo
}

// ModelsOf returns the models that an agent asks, in order. The first is the one that the
// agent names, or else that of [model]; the others are asked if it does not answer.
func (c *Config) ModelsOf(agent string) []ModelChoice {
	a := c.Agents[agent]
	list := []ModelChoice{{Table: "model", Key: "model.name", Demo: c.Model.Demo}}
	if _, further := c.Models[a.Model]; further {
		list[0] = ModelChoice{Table: "models." + a.Model, Key: "models." + a.Model + ".name"}
	} else if a.Model != "" && a.Model != c.Model.Name {
		list[0] = ModelChoice{Table: "model", Name: a.Model, Key: "agents." + agent + ".model", Demo: c.Model.Demo || a.Model == demoName}
	}
	fallback := a.Fallback
	if fallback == nil {
		fallback = c.Model.Fallback
	}
	for _, name := range fallback {
		if table := "models." + name; list[0].Table != table {
			list = append(list, ModelChoice{Table: table, Key: table + ".name"})
		}
	}
	return list
}

// HasModel reports whether a model is configured that answers for an agent: one of [models] that
// the agent names, or else that of [model].
func (c *Config) HasModel(agent string) bool {
	first := c.ModelsOf(agent)[0]
	return c.Model.Configured || first.Demo || first.Table != "model"
}

// AnyModel reports whether a model is configured that answers for any of the agents.
func (c *Config) AnyModel() bool {
	for name := range c.Agents {
		if c.HasModel(name) {
			return true
		}
	}
	return false
}

// OnlyDemo reports whether the built-in demo answers and no real model does.
func (c *Config) OnlyDemo() bool {
	for name := range c.Agents {
		if !c.ModelsOf(name)[0].Demo {
			return false
		}
	}
	return true
}

// Budget bounds what models may cost, in micro-dollars.
type Budget struct {
	UserDay    int64  // of one person in a day
	SessionDay int64  // of one conversation in a day; 0 means no limit
	Day, Month int64  // of everybody
	TellAt     int    // the percentage of a cap at which owners are warned
	Prices     string // the file with the list of prices; "" means the program's own list
	// Written says that the operator has set a cap, here or for an agent.
	Written bool
}

// budgetSections declares the settings of what models may cost.
func budgetSections() []section {
	return []section{{name: "budget", settings: []setting{
		{key: "user_day", kind: asMoney, def: int64(2_000_000), least: 1, since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Budget.UserDay })},
		{key: "session_day", kind: asMoney, least: 1, example: `1.0`, since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Budget.SessionDay })},
		{key: "day", kind: asMoney, def: int64(20_000_000), least: 1, since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Budget.Day })},
		{key: "month", kind: asMoney, def: int64(200_000_000), least: 1, since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Budget.Month })},
		{key: "tell_at", kind: asCount, def: int64(80), least: 1, since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Budget.TellAt })},
		{key: "prices", kind: asPath, example: `"prices.json"`, since: first, fills: into(func(c *Config) any { return &c.Budget.Prices })},
	}}}
}

// checkBudget reports a share of a cap that is never reached, so that nobody would be told.
func (l *loader) checkBudget() {
	if at, ok := l.values["budget.tell_at"].v.(int64); ok && at > 100 {
		l.report(l.places["budget.tell_at"], "budget.tell_at", "it is a percentage: the largest is 100", "write for example tell_at = 80")
	}
}

// checkModels reports models in [models.NAME] that cannot be asked, and fallbacks that do not
// exist.
func (l *loader) checkModels() {
	tables := []string{"model"}
	for _, name := range l.names["models"] {
		tables = append(tables, "models."+name)
	}
	for _, table := range tables {
		l.checkHeaders(table, `["X-Title: Parley"]`)
		var fields map[string]any
		if body := l.str(table + ".body"); body != "" && json.Unmarshal([]byte(body), &fields) != nil {
			l.report(l.places[table+".body"], table+".body", "it is no JSON object", `write for example body = '{"top_p": 0.9}'`)
		}
	}
	for _, name := range l.names["models"] {
		table := "models." + name
		if l.str(table+".name") == "" {
			l.report(l.places[table], table, "it names no model", `write name = "gpt-5-mini" there`)
		}
		if l.str(table+".base_url") == "" && l.str(table+".api_key") == "" {
			l.report(l.places[table], table, "the model at the default URL wants a key, and there is none",
				`write api_key = "${OPENAI_API_KEY}" there, or base_url for a server of your own`)
		}
	}
	l.checkFallback("model.fallback")
	for _, name := range append([]string{defaults}, l.names["agents"]...) {
		l.checkAgentModel("agents." + name)
		l.checkAgentNames("agents." + name + ".may_spawn")
	}
}

// checkFallback reports names in the list of fallbacks at this path that no table [models.NAME]
// has.
func (l *loader) checkFallback(path string) {
	for i, name := range l.list(path) {
		if !l.mentioned(path) || slices.Contains(l.names["models"], name) {
			continue
		}
		l.report(l.element(path, i), path, fmt.Sprintf("no model is called %q", name), l.modelRemedy(name))
	}
}

// modelRemedy says what to do about a model's name that no table [models.NAME] has.
func (l *loader) modelRemedy(name string) string {
	if near := spelling.Nearest(name, l.names["models"]); near != "" {
		return fmt.Sprintf("write %q", near)
	}
	return "add [models." + name + "]"
}

// checkAgentModel reports an agent's fallbacks that do not exist, and a model that no
// server is known for: one that is not among [models] is asked of the server of [model].
func (l *loader) checkAgentModel(table string) {
	l.checkFallback(table + ".fallback")
	path := table + ".model"
	name := l.str(path)
	if !l.mentioned(path) || name == "" || name == demoName || slices.Contains(l.names["models"], name) {
		return
	}
	switch {
	case l.str("model.name") == name:
	case l.str("model.name") == demoName:
		l.answering = append(l.answering, l.places[path].problemAt(path, &fault{
			wrong:  fmt.Sprintf("no model is called %q, and the demo of [model] is no server that has others", name),
			remedy: l.modelRemedy(name),
		}))
	case l.str("model.base_url") == "" && l.str("model.api_key") == "":
		l.answering = append(l.answering, l.places[path].problemAt(path, &fault{
			wrong:  fmt.Sprintf("no model is called %q, and [model] has no server that could be asked for it", name),
			remedy: l.modelRemedy(name) + `, or write [model] base_url or api_key`,
		}))
	}
}

// hasOwnModel reports whether an agent names the demo or a model of [models], so that it does not
// need [model].
func (l *loader) hasOwnModel(agent string) bool {
	name := l.str("agents." + agent + ".model")
	return name == demoName || slices.Contains(l.names["models"], name)
}
