package config

import (
	"parley/cmd/parley/config/schema"
)

// Transcribe is the service that turns voice messages into text; if Model is "", there is none.
type Transcribe struct {
	BaseURL string // "" means OpenAI's
	APIKey  Secret
	Model   string
}

// transcribeSection declares the settings of the service that turns voice messages into text.
func transcribeSection() section {
	return section{Section: schema.Section{Name: "transcribe", Settings: []schema.Setting{
		{Key: "base_url", Kind: schema.URL, Schemes: []string{"http", "https"}, Example: `"http://127.0.0.1:8000/v1"`,
			Reload: schema.AtOnce, Fill: schema.Into(func(t *Transcribe) any { return &t.BaseURL })},
		{Key: "api_key", Kind: schema.Text, Secret: true, MayBeEmpty: true, Example: `"${OPENAI_API_KEY}"`,
			Reload: schema.AtOnce, Fill: schema.Into(func(t *Transcribe) any { return &t.APIKey })},
		{Key: "model", Kind: schema.Text, Example: `"whisper-1"`, Reload: schema.AtOnce, Fill: schema.Into(func(t *Transcribe) any { return &t.Model })},
	}}}
}
