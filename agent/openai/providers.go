package openai

import (
	"net/url"
	"strings"

	"parley/agent/llm"
)

// A provider is what is known of a server before it is asked. What is not written here is
// learned from its refusals, once for as long as the process runs.
type provider struct {
	host    string // a name, or with a dot in front the end of one
	dialect dialect
	// keyHeader is where the key goes; "" is where OpenAI has it.
	keyHeader string
	// marksFor is how the names of those models begin whose requests have to say up to
	// where they are worth keeping; the servers of other models find out for themselves.
	marksFor string
	// versioned says that the address may end in ?api-version=…
	versioned bool
}

// providers are those of which something is known.
func providers() []provider {
	return []provider{
		// Requests of one conversation reach the machine that has read it before by their
		// cache key.
		{host: "api.openai.com", dialect: dialect{limit: limitNew, cacheKey: true}},
		{host: ".openai.azure.com", keyHeader: "api-key", versioned: true},
		{host: ".cognitiveservices.azure.com", keyHeader: "api-key", versioned: true},
		{host: "api.mistral.ai", dialect: dialect{bridges: true, shortIDs: true}},
		{host: "api.cerebras.ai", dialect: dialect{limit: limitNew}},
		{host: "openrouter.ai", marksFor: "anthropic/"},
	}
}

// providerOf is what is known of the server at a host.
func providerOf(host string) provider {
	host, _, _ = strings.Cut(host, ":")
	for _, p := range providers() {
		if host == p.host || strings.HasPrefix(p.host, ".") && strings.HasSuffix(host, p.host) {
			return p
		}
	}
	return provider{}
}

// dialectFor is how to ask for a model at first.
func (p provider) dialectFor(model string) dialect {
	d := p.dialect
	d.cacheMarks = p.marksFor != "" && strings.HasPrefix(model, p.marksFor)
	return d
}

// takes tells whether an address may have these parameters behind it: Azure's tell which
// version of its interface is meant.
func (p provider) takes(parameters url.Values) bool {
	for name := range parameters {
		if !p.versioned || name != "api-version" {
			return false
		}
	}
	return true
}

// beginning is the same for all requests that begin alike: a conversation's, as long as it
// is not summarised.
func beginning(r llm.Request) string {
	var text strings.Builder
	text.WriteString(r.System)
	if len(r.Messages) > 0 {
		for _, b := range r.Messages[0].Blocks {
			text.WriteString(b.Text)
		}
	}
	return digest(text.String(), 32)
}

// markForCache marks up to where a request is worth keeping: the instructions and the
// tools before them, and all up to what was said last.
func markForCache(messages []wireMessage) {
	mark := func(role string, from int) {
		for i := from; i >= 0 && i < len(messages); i-- {
			if m := messages[i]; m.Role == role && m.Content != nil {
				m.Content.markEnd()
				return
			}
		}
	}
	mark("system", 0)
	mark("user", len(messages)-1)
}

// markEnd marks a content's end.
func (c *wireContent) markEnd() {
	if len(c.parts) == 0 {
		c.parts, c.text = []wirePart{{Type: "text", Text: c.text}}, ""
	}
	c.parts[len(c.parts)-1].Cache = &wireCache{Type: "ephemeral"}
}
