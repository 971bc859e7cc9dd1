// Package models makes one model of all configured models, which asks them in turn.
//
// models.go makes the models, prices.go finds what they cost.
package models

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"parley/agent/demo"
	"parley/agent/failover"
	"parley/agent/llm"
	"parley/agent/openai"
	"parley/agent/prices"
	"parley/channels"
	"parley/cmd/parley/config"
)

// A Model is one configured model.
type Model struct {
	failover.Link
	Table  string // the table in which it is configured: "model", or "models.NAME"
	Server string // its base URL; "" for the demo
}

// New makes the configured models, in the order in which they are asked. If none is
// configured, the demo is made. An error that the operator has to see to is a
// *config.SettingError.
func New(ctx context.Context, c *config.Config, log *slog.Logger) ([]Model, error) {
	if c.Model.Demo || !c.Model.Configured {
		return []Model{{Link: failover.Link{ID: "demo", Model: demo.New()}, Table: "model"}}, nil
	}
	list, err := Prices(c)
	if err != nil {
		return nil, err
	}
	first, err := newModel(ctx, c, list, "model", log)
	if err != nil {
		return nil, err
	}
	all := []Model{first}
	for _, name := range c.Model.Fallback {
		next, err := newModel(ctx, c, list, "models."+name, log)
		if err != nil {
			return nil, err
		}
		all = append(all, next)
	}
	return all, nil
}

// newModel makes the model of a table. If no name is configured, it asks the model's
// server for one.
func newModel(ctx context.Context, all *config.Config, list prices.List, table string, log *slog.Logger) (Model, error) {
	c := all.Model
	if name, ok := strings.CutPrefix(table, "models."); ok {
		c = all.Models[name]
	}
	oc := openai.Config{
		Name: c.Name, BaseURL: c.BaseURL, APIKey: string(c.APIKey), Window: c.Window, Blind: c.Vision == "off",
		FirstToken: c.FirstToken, Idle: c.Idle, Log: log,
		Effort: c.Reasoning, Header: http.Header{}, Body: json.RawMessage(c.Body),
	}
	for _, h := range c.Headers {
		name, value, _ := strings.Cut(h, ":")
		oc.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if oc.Name == "" {
		name, err := openai.FirstModel(ctx, oc)
		if busy, ok := errors.AsType[*llm.Error](err); ok && busy.Fault == llm.Busy {
			return Model{}, fmt.Errorf("%s.name: not set, and the server cannot be asked for one now: %w: start it, or name one", table, err)
		}
		if refused, ok := errors.AsType[*llm.Error](err); ok {
			return Model{}, &config.SettingError{Key: table + ".name", Remedy: "not set, and the server does not list its models: name one. " + refused.Explain()}
		}
		if err != nil {
			return Model{}, &config.SettingError{Key: table + ".name", Remedy: fmt.Sprintf("not set, and the server's list of models cannot be read (%v): name one", err)}
		}
		oc.Name = name
	}
	server := cmp.Or(c.BaseURL, openai.DefaultURL)
	price, known, err := priceOf(all, list, Model{Table: table, Server: server}, oc.Name, c)
	if err != nil {
		return Model{}, err
	}
	if !known && all.Budget.Written {
		return Model{}, &config.SettingError{Where: all.Origin(table + ".name"), Key: table + ".price_input", Remedy: fmt.Sprintf(
			"[budget] bounds what models may cost, and no price of %s is known: write price_input and price_output, the dollars for a million tokens, or price_input = 0 for a model on this machine or in its own network", oc.Name)}
	}
	m, err := openai.New(oc)
	if err != nil {
		return Model{}, fmt.Errorf("set up [%s]: %w", table, err)
	}
	m.LookUpWindow(ctx)
	made := Model{Link: failover.Link{ID: fleetID(server, oc.Name, oc.APIKey), Model: m}, Table: table, Server: server}
	if known {
		made.Model = prices.Model{Model: m, Price: price}
	}
	return made, nil
}

// fleetID returns the id by which the fleet knows a model: the same account on the same
// server.
func fleetID(server, name, key string) string {
	sum := sha256.Sum256([]byte(key))
	return server + " " + name + " " + hex.EncodeToString(sum[:4])
}

// Meters count what asking the models comes to.
type Meters interface {
	// Model counts one try.
	Model(try failover.Try)
	// Failover counts that the model to was asked in the place of the model from.
	Failover(from, to string)
}

// Chain returns one model that asks all of them in turn; nil if there are none. The book
// shares with the whole fleet which of them are not asked for a while.
func Chain(all []Model, book channels.Notes, meters Meters, log *slog.Logger) llm.Model {
	if len(all) == 0 {
		return nil
	}
	cfg := failover.Config{Notes: notes{book}, Observe: meters.Model, Moved: meters.Failover, Log: log}
	for _, m := range all {
		cfg.Links = append(cfg.Links, m.Link)
	}
	return failover.New(cfg)
}

// notesSubject is the subject under which the book notes which models are not asked for a
// while.
const notesSubject = "model cooldown"

// notes keeps failover's notes about models in the book.
type notes struct{ book channels.Notes }

// Note implements failover.Notes; it writes to the book.
func (n notes) Note(ctx context.Context, id, value string) error {
	return n.book.Note(ctx, notesSubject, id, value)
}

// Noted implements failover.Notes; it reads from the book.
func (n notes) Noted(ctx context.Context, id string) (string, error) {
	r, err := n.book.Noted(ctx, notesSubject, id)
	return r.Value, err
}
