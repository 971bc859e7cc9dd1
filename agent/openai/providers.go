package openai

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// A provider is what is known about a server before the first request. Everything else is learned from the server's
// refusals, once per process.
type provider struct {
	host    string // a host name, or the end of one if it begins with a dot
	dialect dialect
	// keyHeader is the header field for the key; "" means OpenAI's.
	keyHeader string
	// cacheMarksFor is the prefix of the names of models whose requests must mark how much of them is worth caching.
	// Servers find that out themselves for other models.
	cacheMarksFor string
	// responsesFor are patterns for the names of models that have to be asked through the Responses API, always
	// or when they have tools.
	responsesFor []string
	// hasAPIVersion reports that the URL may end in ?api-version=…
	hasAPIVersion bool
}

// providers lists the providers that this program knows something about.
func providers() []provider {
	return []provider{
		// The cache key directs the requests of one conversation to the machine that has already read its
		// beginning.
		{host: "api.openai.com", dialect: dialect{limit: limitMaxCompletionTokens, cacheKey: true, maxDescription: 1024}, responsesFor: []string{
			"gpt-5.[4-9]*", "gpt-[6-9]*", "*-codex*", "codex-*", "o[1-9]*-pro*", "gpt-*-pro*", "*-deep-research*", "computer-use-*",
		}},
		{host: ".openai.azure.com", dialect: dialect{maxDescription: 1024}, keyHeader: "api-key", hasAPIVersion: true},
		{host: ".cognitiveservices.azure.com", dialect: dialect{maxDescription: 1024}, keyHeader: "api-key", hasAPIVersion: true},
		{host: "api.mistral.ai", dialect: dialect{needsBridge: true, shortIDs: true}},
		{host: "api.cerebras.ai", dialect: dialect{limit: limitMaxCompletionTokens}},
		{host: "openrouter.ai", cacheMarksFor: "anthropic/"},
	}
}

// providerOf returns the provider at a host, or the zero provider if this program knows nothing about it.
func providerOf(host string) provider {
	host, _, _ = strings.Cut(host, ":")
	for _, p := range providers() {
		if host == p.host || strings.HasPrefix(p.host, ".") && strings.HasSuffix(host, p.host) {
			return p
		}
	}
	return provider{}
}

// dialectFor returns the dialect of the first request for a model.
func (p provider) dialectFor(model string) dialect {
	d := p.dialect
	d.responses = slices.ContainsFunc(p.responsesFor, func(pattern string) bool {
		wants, err := path.Match(pattern, model)
		return wants && err == nil
	})
	d.cacheMarks = p.cacheMarksFor != "" && strings.HasPrefix(model, p.cacheMarksFor)
	return d
}

// accepts reports whether a URL may have these query parameters. Only Azure's may have one, which names the
// version of its API.
func (p provider) accepts(parameters url.Values) bool {
	for name := range parameters {
		if !p.hasAPIVersion || name != "api-version" {
			return false
		}
	}
	return true
}
