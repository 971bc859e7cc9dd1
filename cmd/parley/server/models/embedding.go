package models

import (
	"cmp"
	"context"
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

// A Ledger is a Spender that also knows what these calls have cost.
type Ledger interface {
	Spender
	// Noted returns what a model has cost on the days from that of one time to that of another, in micro-dollars.
	Noted(ctx context.Context, model string, from, to time.Time) (micro int64, err error)
}

// Money knows what all other calls have cost.
type Money interface {
	// Spent returns what is spent and set aside for a cap in the day or month of a time, in micro-dollars.
	Spent(ctx context.Context, of bill.Cap, at time.Time) (micro int64, err error)
}

// NewMeanings returns an index that also finds what was said in other words, if the settings name an embedding model. Once
// a cap on what everybody may cost is reached, it doesn't ask that model.
func NewMeanings(table *search.Table, settings func() *config.Config, plain func(string) string, ledger Ledger, money Money, log *slog.Logger) *search.Meanings {
	e := &embeddings{settings: settings, spender: ledger, log: log}
	caps := caps{settings, ledger, money}
	return search.NewMeanings(search.MeaningsConfig{Table: table, Embedding: e.current, RemoveSecrets: plain, MayAsk: caps.haveRoom, Log: log})
}

// caps are the caps on what everybody may cost, as the embedding model has to observe them.
type caps struct {
	settings func() *config.Config
	ledger   Ledger
	money    Money
}

// haveRoom reports whether all calls in sessions and the embedding model together have cost less than the caps for the
// day and the month allow. The operator's own server costs nothing.
func (c caps) haveRoom(ctx context.Context) (bool, error) {
	now, set := time.Now().UTC(), c.settings()
	if set.Embeddings.PriceInput == 0 && llm.IsOwnServer(set.Embeddings.BaseURL) {
		return true, nil
	}
	for _, of := range []bill.Cap{{Limit: set.Budget.Day}, {Limit: set.Budget.Month, IsMonthly: true}} {
		if of.Limit <= 0 {
			continue
		}
		from := now
		if of.IsMonthly {
			from = time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
		}
		spent, err := c.money.Spent(ctx, of, now)
		if err != nil {
			return false, err
		}
		noted, err := c.ledger.Noted(ctx, set.Embeddings.Model, from, now)
		if err != nil || spent+noted >= of.Limit {
			return false, err
		}
	}
	return true, nil
}

// embeddings makes the client of the embedding model, again whenever its settings change.
type embeddings struct {
	settings func() *config.Config
	spender  Spender
	log      *slog.Logger

	mu      sync.Mutex
	madeFor config.Embeddings // the settings from which made was made
	made    search.Embedding
}

// current returns the model according to the current settings.
func (e *embeddings) current() search.Embedding {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.settings()
	if c.Embeddings == e.madeFor {
		return e.made
	}
	made, err := NewEmbedding(c, e.spender)
	if err != nil { // the settings were checked, so this can't fail
		e.log.Error("no vectors can be made of what was said", slog.Any("error", err))
	}
	e.madeFor, e.made = c.Embeddings, made
	return made
}

// NewEmbedding returns the client of the embedding model; the zero Embedding if the settings name none. spender may
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

// EmbeddingServer returns the base URL of the embedding model's server.
func EmbeddingServer(c *config.Config) string { return cmp.Or(c.Embeddings.BaseURL, openai.DefaultURL) }
