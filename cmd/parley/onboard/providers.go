package onboard

import (
	"cmp"
	"fmt"

	"parley/agent/openai"
)

// A provider is a company, or a program on the person's own machine, whose models can be used.
type provider struct {
	name, title string
	baseURL     string
	env         string // the environment variable that usually contains its users' key
	keys        string // the address at which its users find their keys; "" for none
	model       string // the model to begin with; "" means to ask the server which models it has
	local       bool   // whether it runs on the person's own machine and needs no key
	window      int    // how many tokens it is asked to read at once; 0 leaves that to the provider
}

// ollamaWindow is how many tokens a model run by Ollama is asked to read at once: enough for the instructions, the
// tools and a conversation, and not too much for a small graphics card.
const ollamaWindow = 16_384

// providers returns the providers that are offered, in that order.
func providers() []provider {
	return []provider{
		{name: "openai", title: "OpenAI", baseURL: openai.DefaultURL, env: "OPENAI_API_KEY", keys: "https://platform.openai.com/api-keys", model: openai.DefaultName},
		{name: "anthropic", title: "Anthropic", baseURL: "https://api.anthropic.com/v1", env: "ANTHROPIC_API_KEY", keys: "https://console.anthropic.com/settings/keys"},
		{name: "gemini", title: "Google Gemini", baseURL: "https://generativelanguage.googleapis.com/v1beta/openai", env: "GEMINI_API_KEY", keys: "https://aistudio.google.com/apikey"},
		{name: "mistral", title: "Mistral", baseURL: "https://api.mistral.ai/v1", env: "MISTRAL_API_KEY", keys: "https://console.mistral.ai/api-keys"},
		{name: "deepseek", title: "DeepSeek", baseURL: "https://api.deepseek.com", env: "DEEPSEEK_API_KEY", keys: "https://platform.deepseek.com/api_keys"},
		{name: "groq", title: "Groq", baseURL: "https://api.groq.com/openai/v1", env: "GROQ_API_KEY", keys: "https://console.groq.com/keys"},
		{name: "cerebras", title: "Cerebras", baseURL: "https://api.cerebras.ai/v1", env: "CEREBRAS_API_KEY", keys: "https://cloud.cerebras.ai"},
		{name: "openrouter", title: "OpenRouter", baseURL: "https://openrouter.ai/api/v1", env: "OPENROUTER_API_KEY", keys: "https://openrouter.ai/settings/keys"},
		{name: "ollama", title: "Ollama", baseURL: "http://127.0.0.1:11434/v1", local: true, window: ollamaWindow},
		{name: "lmstudio", title: "LM Studio", baseURL: "http://127.0.0.1:1234/v1", local: true},
		{name: "llamacpp", title: "llama.cpp", baseURL: "http://127.0.0.1:8080/v1", local: true},
		{name: "vllm", title: "vLLM", baseURL: "http://127.0.0.1:8000/v1", local: true},
	}
}

// These two choices are not in the table.
const (
	otherProvider = "other" // any server that speaks OpenAI's chat completions
	demoProvider  = "demo"  // the built-in model
)

// providerNamed returns the provider with that name; false if there is none.
func providerNamed(name string) (provider, bool) {
	switch name {
	case demoProvider:
		return provider{name: demoProvider}, true
	case otherProvider:
		return provider{name: otherProvider, env: "OPENAI_API_KEY"}, true
	}
	for _, p := range providers() {
		if p.name == name {
			return p, true
		}
	}
	return provider{}, false
}

// UnusedKey returns a notice that the environment contains a provider's key that nothing reads as long as no model is
// configured, or "". env looks up an environment variable.
func UnusedKey(env func(name string) (string, bool)) string {
	for _, p := range providers() {
		if key, _ := env(p.env); p.env != "" && key != "" {
			return fmt.Sprintf(textNotRead, p.env, p.title)
		}
	}
	return ""
}

// providerChoices returns all choices of providers.
func providerChoices() []choice {
	var all []choice
	for _, p := range providers() {
		title := p.title
		if p.local {
			title += ", on this machine"
		}
		all = append(all, choice{p.name, title})
	}
	return append(all,
		choice{otherProvider, "another server that speaks OpenAI's chat completions"},
		choice{demoProvider, "none yet: the built-in demo, for a first look"})
}

// label returns what the person sees as the provider: its title or, if it has none, its server's address.
func (p provider) label() string { return cmp.Or(p.title, p.baseURL) }
