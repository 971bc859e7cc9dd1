package window

import (
	"net/url"
	"strings"
)

// A known is a family of models at one provider.
type known struct {
	host   string // or the end of it, from a dot on
	prefix string // of the models' names
	tokens int
}

// table is what providers publish whose lists of models do not say it, as of November
// 2026. It is of their own servers alone: elsewhere a model of the same name may be started
// with a smaller window. The longest prefix counts.
func table() []known {
	openai, azure := "api.openai.com", ".openai.azure.com"
	google, deepseek, xai, moonshot := "generativelanguage.googleapis.com", "api.deepseek.com", "api.x.ai", "api.moonshot.ai"
	var all []known
	for _, host := range []string{openai, azure} {
		all = append(all,
			known{host, "gpt-5", 272_000}, // without what it may answer
			known{host, "gpt-5-chat", 128_000},
			known{host, "gpt-4.1", 1_047_576},
			known{host, "gpt-4o", 128_000},
			known{host, "gpt-4-turbo", 128_000},
			known{host, "gpt-4", 8_192},
			known{host, "gpt-4-32k", 32_768},
			known{host, "gpt-3.5-turbo", 16_385},
			known{host, "o1", 200_000}, known{host, "o1-mini", 128_000}, known{host, "o1-preview", 128_000},
			known{host, "o3", 200_000}, known{host, "o4-mini", 200_000},
		)
	}
	return append(all,
		known{"api.anthropic.com", "claude-", 200_000},
		known{google, "gemini-", 1_048_576}, known{google, "models/gemini-", 1_048_576},
		known{google, "gemma-", 8_192}, known{google, "gemma-3-", 32_768},
		known{deepseek, "deepseek-", 65_536},
		known{xai, "grok-", 131_072}, known{xai, "grok-4", 256_000},
		known{moonshot, "kimi-k2", 131_072}, known{moonshot, "moonshot-v1-8k", 8_192}, known{moonshot, "moonshot-v1-32k", 32_768},
		known{moonshot, "moonshot-v1-128k", 131_072},
	)
}

// published is what the table has of a model at a server, or 0.
func published(base, model string) int {
	u, err := url.Parse(base)
	if err != nil {
		return 0
	}
	host := strings.ToLower(u.Hostname())
	tokens, longest := 0, -1
	for _, k := range table() {
		there := host == k.host || strings.HasPrefix(k.host, ".") && strings.HasSuffix(host, k.host)
		if there && strings.HasPrefix(model, k.prefix) && len(k.prefix) > longest {
			tokens, longest = k.tokens, len(k.prefix)
		}
	}
	return tokens
}
