package openai

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// A provider is what is known of a server before the first request. Anything else is
// learned from the server's refusals, once in the life of the process.
type provider struct {
	host    string // a name, or the end of a name if it begins with a dot
	dialect dialect
	// keyHeader is the header field for the key; "" is OpenAI's.
	keyHeader string
	// marksFor is the prefix of the names of models whose requests must mark how much of
	// them is worth caching. The servers of other models find that out themselves.
	marksFor string
	// responsesFor are patterns of the names of models that have to be asked by the
	// Responses API, at all or where they have tools.
	responsesFor []string
	// versioned reports that the address may end in ?api-version=…
	versioned bool
}

// providers lists the providers that this program knows something about.
func providers() []provider {
	return []provider{
		// The cache key sends the requests of one conversation to the machine that has read
		// its beginning before.
		{host: "api.openai.com", dialect: dialect{limit: limitNew, cacheKey: true, described: 1024}, responsesFor: []string{
			"gpt-5.[4-9]*", "gpt-[6-9]*", "*-codex*", "codex-*", "o[1-9]*-pro*", "gpt-*-pro*", "*-deep-research*", "computer-use-*",
		}},
		{host: ".openai.azure.com", dialect: dialect{described: 1024}, keyHeader: "api-key", versioned: true},
		{host: ".cognitiveservices.azure.com", dialect: dialect{described: 1024}, keyHeader: "api-key", versioned: true},
		{host: "api.mistral.ai", dialect: dialect{bridges: true, shortIDs: true}},
		{host: "api.cerebras.ai", dialect: dialect{limit: limitNew}},
		{host: "openrouter.ai", marksFor: "anthropic/"},
	}
}

// providerOf returns the provider at a host; the zero provider if this program knows nothing about
// it.
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
	d.cacheMarks = p.marksFor != "" && strings.HasPrefix(model, p.marksFor)
	return d
}

// accepts reports whether an address may have these query parameters: only Azure's may,
// to name the version of its interface.
func (p provider) accepts(parameters url.Values) bool {
	for name := range parameters {
		if !p.versioned || name != "api-version" {
			return false
		}
	}
	return true
}
