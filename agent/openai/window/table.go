package window

import (
	"net/url"
	"strings"
)

// A family is a group of models at one provider that have windows of the same size.
type family struct {
	host   string // a host name, or the end of one if it begins with a dot
	prefix string // of the models' names; the longest that matches counts
	tokens int
}

// publishedSizes returns the sizes that providers publish but that are missing from their lists of models, as
// of November 2026. They apply only to the providers' own servers: elsewhere a model with the same name may be
// started with a smaller window.
func publishedSizes() []family {
	openai, azure := "api.openai.com", ".openai.azure.com"
	google, deepseek, xai, moonshot := "generativelanguage.googleapis.com", "api.deepseek.com", "api.x.ai", "api.moonshot.ai"
	var all []family
	for _, host := range []string{openai, azure} {
		all = append(all,
			family{host, "gpt-5", 272_000}, // not counting the tokens of its answer
			family{host, "gpt-5-chat", 128_000},
			family{host, "gpt-4.1", 1_047_576},
			family{host, "gpt-4o", 128_000},
			family{host, "gpt-4-turbo", 128_000},
			family{host, "gpt-4", 8_192},
			family{host, "gpt-4-32k", 32_768},
			family{host, "gpt-3.5-turbo", 16_385},
			family{host, "o1", 200_000}, family{host, "o1-mini", 128_000}, family{host, "o1-preview", 128_000},
			family{host, "o3", 200_000}, family{host, "o4-mini", 200_000},
		)
	}
	return append(all,
		family{"api.anthropic.com", "claude-", 200_000},
		family{google, "gemini-", 1_048_576}, family{google, "models/gemini-", 1_048_576},
		family{google, "gemma-", 8_192}, family{google, "gemma-3-", 32_768},
		family{deepseek, "deepseek-", 65_536},
		family{xai, "grok-", 131_072}, family{xai, "grok-4", 256_000},
		family{moonshot, "kimi-k2", 131_072}, family{moonshot, "moonshot-v1-8k", 8_192}, family{moonshot, "moonshot-v1-32k", 32_768},
		family{moonshot, "moonshot-v1-128k", 131_072},
	)
}

// publishedSize returns the published size of a model's window at a server, or 0 if none is known.
func publishedSize(base, model string) int {
	u, err := url.Parse(base)
	if err != nil {
		return 0
	}
	host := strings.ToLower(u.Hostname())
	tokens, longest := 0, -1
	for _, k := range publishedSizes() {
		there := host == k.host || strings.HasPrefix(k.host, ".") && strings.HasSuffix(host, k.host)
		if there && strings.HasPrefix(model, k.prefix) && len(k.prefix) > longest {
			tokens, longest = k.tokens, len(k.prefix)
		}
	}
	return tokens
}
