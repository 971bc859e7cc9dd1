package llm_test

import (
	"testing"

	"parley/agent/llm"
)

// TestOwnServers checks which servers count as the operator's own.
func TestOwnServers(t *testing.T) {
	for _, own := range []string{
		"http://localhost:11434/v1", "http://127.0.0.1:8080", "http://[::1]:1234/v1", "http://[::ffff:10.1.2.3]/v1",
		"http://192.168.1.20:1234/v1", "http://169.254.7.7/v1", "http://ollama:11434/v1", "http://GPU.lan/v1",
		"https://models.corp.internal/v1", "http://box.local:8000", "http://x.localhost/v1",
	} {
		if !llm.IsOwnServer(own) {
			t.Errorf("%s counts as a public server", own)
		}
	}
	for _, public := range []string{
		"https://api.openai.com/v1", "http://8.8.8.8/v1", "https://[2606:4700::1111]/v1", "https://local.example.com/v1",
		"https://notlocalhost.com", "", "://nonsense",
	} {
		if llm.IsOwnServer(public) {
			t.Errorf("%q counts as the operator's own server", public)
		}
	}
}
