package config

import (
	"parley/cmd/parley/config/schema"
)

// Embeddings is the model that turns texts into vectors, with which recall also finds what was said in other words;
// if Model is "", there is none.
type Embeddings struct {
	BaseURL string // "" means OpenAI's; no trailing slash
	APIKey  Secret
	Model   string
	// PriceInput is the price of a million tokens, in micro-dollars. Origin says whether it is set.
	PriceInput int64
}

// embeddingsSection declares the settings of the embedding model.
func embeddingsSection() section {
	return section{
		Section: schema.Section{Name: "embeddings", Settings: []schema.Setting{
			{Key: "base_url", Kind: schema.URL, Schemes: []string{"http", "https"}, Parameters: []string{"api-version"}, Example: `"http://127.0.0.1:11434/v1"`,
				Reload: schema.AtOnce, Fill: schema.Into(func(e *Embeddings) any { return &e.BaseURL })},
			{Key: "api_key", Kind: schema.Text, Secret: true, MayBeEmpty: true, Example: `"${OPENAI_API_KEY}"`,
				Reload: schema.AtOnce, Fill: schema.Into(func(e *Embeddings) any { return &e.APIKey })},
			{Key: "model", Kind: schema.Text, Example: `"nomic-embed-text"`, Reload: schema.AtOnce, Fill: schema.Into(func(e *Embeddings) any { return &e.Model })},
			{Key: "price_input", Kind: schema.Money, ZeroIsOff: true, Example: `0.02`, Reload: schema.AtOnce, Fill: schema.Into(func(e *Embeddings) any { return &e.PriceInput })},
		}},
		check: checkEmbeddings,
	}
}

// checkEmbeddings reports an embedding model without a name, or with neither a server nor a key.
func checkEmbeddings(l *loader) {
	model, server, key := l.Text("embeddings.model"), l.Text("embeddings.base_url"), l.Text("embeddings.api_key")
	switch {
	case model == "" && (server != "" || key != ""):
		l.Report(l.At("embeddings"), "embeddings", "it doesn't name a model", `write model = "nomic-embed-text", or another embedding model that the server has`)
	case model != "" && server == "" && key == "":
		l.Report(l.At("embeddings"), "embeddings", "the model at the default URL needs a key, and there isn't one",
			`write api_key = "${OPENAI_API_KEY}" there, or base_url for a server of your own`)
	}
}
