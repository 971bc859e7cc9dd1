package config_test

import (
	"strings"
	"testing"
)

func TestWeb(t *testing.T) {
	c := good(t, `[web]
search = "searxng"
base_url = "http://127.0.0.1:8888/"
allow = ["example.com", "*.Example.org", "1.1.1.1", "2606:4700::1111"]
deny = ["bücher.example"]
`, nil)
	same(t, "web", []any{c.Web.Search, c.Web.BaseURL, c.Web.Allow[1], c.Web.Deny}, []any{"searxng", "http://127.0.0.1:8888", "*.Example.org", []string{"bücher.example"}})
	for text, want := range map[string]string{
		`search = "bing"`:                 `write one of "brave"`,
		`search = "brave"`:                `write api_key = "${BRAVE_API_KEY}"`,
		`search = "tavily"`:               `write api_key = "${TAVILY_API_KEY}"`,
		`search = "searxng"`:              "write base_url",
		`api_key = "${K}"`:                "a key of no service",
		`base_url = "http://127.0.0.1"`:   "the URL of no service",
		`allow = ["https://example.com"]`: `"https://example.com" is not a host`,
		`deny = ["a.example", "*"]`:       `"*" is not a host`,
		`deny = ["a.*.example"]`:          "is not a host",
		`allow = ["example.com:443"]`:     "without scheme, port and path",
	} {
		if _, err := try(t, "[web]\n"+text+"\n", vars{"K": "secret"}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "parley.toml:2") {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}
