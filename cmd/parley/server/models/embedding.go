package models

import (
	"cmp"
	"log/slog"
	"sync"
	"time"

	"parley/agent/llm"
	"parley/agent/openai"
	"parley/cmd/parley/config"
	"parley/sessions/bill"
	"parley/sessions/search"
)

// A Spender records the cost of model calls that are made for nobody in particular.
type Spender interface {
	Note(model string, at time.Time, s bill.Sum)
}

// NewMeanings makes an index that also finds what was said in other words, if the settings name an embedding model.
func NewMeanings(table *search.Table, settings func() *config.Config, plain func(string) string, spender Spender, log *slog.Logger) *search.Meanings {
	e := &embeddings{settings: settings, spender: spender, log: log}
	return search.NewMeanings(search.MeaningsConfig{Table: table, With: e.current, Plain: plain, Log: log})
}

// embeddings makes the client of the embedding model, again whenever its settings change.
type embeddings struct {
	settings func() *config.Config
	spender  Spender
	log      *slog.Logger

	mu   sync.Mutex
	of   config.Embeddings // the settings from which made was made
	made search.Embedding
}

// current returns the model according to the current settings.
func (e *embeddings) current() search.Embedding {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.settings()
	if c.Embeddings == e.of {
		return e.made
	}
	made, err := NewEmbedding(c, e.spender)
	if err != nil { // the settings were checked
		e.log.Error("no vectors can be made of what was said", slog.Any("error", err))
	}
	e.of, e.made = c.Embeddings, made
	return made
}

// NewEmbedding makes the client of the embedding model; the zero Embedding if the settings name none. spender may
// be nil.
func NewEmbedding(c *config.Config, spender Spender) (search.Embedding, error) {
	s := c.Embeddings
	if s.Model == "" {
		return search.Embedding{}, nil
	}
	priced := c.Origin("embeddings.price_input") != "" || llm.IsOwnServer(s.BaseURL)
	made, err := openai.NewEmbedder(openai.Config{BaseURL: s.BaseURL, APIKey: string(s.APIKey), Name: s.Model}, func(tokens int64, estimated bool) {
		sum := bill.Sum{Calls: 1, Input: tokens, Microdollars: llm.Price{Input: s.PriceInput}.Of(llm.Usage{Input: tokens})}
		if !priced {
			sum.Unpriced = 1
		}
		if estimated {
			sum.Estimated = 1
		}
		if spender != nil {
			spender.Note(s.Model, time.Now(), sum)
		}
	})
	if err != nil {
		return search.Embedding{}, err
	}
	return search.Embedding{Model: s.Model, Embedder: made}, nil
}

// EmbeddingServer returns the base URL of that model's server.
func EmbeddingServer(c *config.Config) string { return cmp.Or(c.Embeddings.BaseURL, openai.DefaultURL) }
