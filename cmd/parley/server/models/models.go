// Package models makes one model for each agent, which asks the models configured for the agent in turn until one
// answers.
//
// models.go makes the models, prices.go finds out what they cost, lefttools.go tells which tools they are not
// shown. embedding.go makes the embedding model, with which recall finds what was said in other words.
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
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

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
	Table  string        // the table with the settings of its server: "model", or "models.NAME"
	Named  string        // the setting that contains its name: "model.name", "models.NAME.name" or "agents.NAME.model"
	Server string        // its base URL; "" for the demo
	client *openai.Model // asks the server; nil for the demo
}

// lookUpWindow asks the model's server, unless it was asked before, how many tokens the model reads at once. It
// takes at most a few seconds.
func (m Model) lookUpWindow(ctx context.Context) {
	if m.client != nil {
		m.client.LookUpWindow(ctx)
	}
}

// Lists holds, by agent, the models that are asked, in order, and under ForTitles and ForJudge those that are asked for
// something else. An agent for which nothing answers is missing.
type Lists map[string][]Model

// All returns the models of all lists, each once, those of the main agent first.
func (l Lists) All() []Model {
	var all []Model
	names := slices.Sorted(maps.Keys(l))
	if _, ok := l[config.MainAgent]; ok {
		names = append([]string{config.MainAgent}, names...)
	}
	for _, name := range names {
		for _, m := range l[name] {
			if !slices.ContainsFunc(all, func(other Model) bool { return other.ID == m.ID && other.Table == m.Table }) {
				all = append(all, m)
			}
		}
	}
	return all
}

// LookUpWindows asks the servers of all models, at the same time, how many tokens each reads at once. It takes at
// most a few seconds.
func (l Lists) LookUpWindows(ctx context.Context) {
	var looking sync.WaitGroup
	for agent := range l {
		for _, m := range l[agent] { // several agents may have the same model: one of them asks
			looking.Go(func() { m.lookUpWindow(ctx) })
		}
	}
	looking.Wait()
}

// LookUpWindowsOf is LookUpWindows for one agent's models. It doesn't ask servers again that were already asked.
func (l Lists) LookUpWindowsOf(ctx context.Context, agent string) {
	for _, m := range l[agent] {
		m.lookUpWindow(ctx)
	}
}

// New returns the configured models of each agent. An agent for which nothing is configured gets the demo. How many
// tokens they read at once is unknown before LookUpWindows. An error that the operator can remedy in the settings
// is a *config.SettingError.
func New(ctx context.Context, c *config.Config, log *slog.Logger) (Lists, error) {
	list, err := Prices(c)
	if err != nil {
		return nil, err
	}
	made := map[config.ModelChoice]Model{}
	lists := Lists{}
	for _, agent := range slices.Sorted(maps.Keys(c.Agents)) {
		for _, choice := range c.ModelsOf(agent) {
			m, ok := made[choice]
			simulated := choice.Demo || choice.Table == "model" && !c.Model.Configured
			switch {
			case ok:
			case simulated:
				m = Model{Link: failover.Link{ID: "demo", Model: demo.New()}, Table: "model", Named: choice.Key}
			default:
				if m, err = newModel(ctx, c, list, choice, log); err != nil {
					return nil, err
				}
			}
			made[choice] = m
			lists[agent] = append(lists[agent], m)
			if simulated {
				break // the demo always answers
			}
		}
		if choice, ok := c.TitlesOf(agent); ok {
			if lists[ForTitles(agent)], err = oneModel(ctx, c, list, choice, made, log); err != nil {
				return nil, err
			}
		}
	}
	if choice, ok := c.Judge(); ok {
		if lists[ForJudge], err = oneModel(ctx, c, list, choice, made, log); err != nil {
			return nil, err
		}
	}
	return lists, nil
}

// oneModel returns a list of the one model that a setting names. It makes the model unless made contains it.
func oneModel(ctx context.Context, c *config.Config, list prices.List, choice config.ModelChoice, made map[config.ModelChoice]Model, log *slog.Logger) ([]Model, error) {
	m, ok := made[choice]
	if !ok {
		var err error
		if m, err = newModel(ctx, c, list, choice, log); err != nil {
			return nil, err
		}
		made[choice] = m
	}
	return []Model{m}, nil
}

// ForJudge is the name under which Lists and Chains contain the model that judges tool calls. No agent has such a
// name.
const ForJudge = "guard judge"

// ForTitles is the name under which Lists and Chains contain the model that makes titles for an agent. No agent has
// such a name.
func ForTitles(agent string) string { return agent + " titles" }

// newModel returns a model. If no name is configured, it asks the model's server for one.
func newModel(ctx context.Context, all *config.Config, list prices.List, choice config.ModelChoice, log *slog.Logger) (Model, error) {
	table, c := choice.Table, all.Model
	if name, ok := strings.CutPrefix(table, "models."); ok {
		c = all.Models[name]
	}
	if choice.Name != "" { // the settings of the table's model don't apply to another model
		c.Name, c.Window, c.Vision, c.API = choice.Name, 0, "", ""
	}
	oc := clientConfig(c, log)
	if oc.Name == "" {
		name, err := openai.FirstModel(ctx, oc)
		if busy, ok := errors.AsType[*llm.Error](err); ok && busy.Fault == llm.Busy {
			return Model{}, fmt.Errorf("%s.name: not set, and Parley can't ask the server for one right now: %w: start the server, or name a model", table, err)
		}
		if refused, ok := errors.AsType[*llm.Error](err); ok {
			return Model{}, &config.SettingError{Key: table + ".name", Remedy: "not set, and the server doesn't list its models: name a model. " + refused.Explain()}
		}
		if err != nil {
			return Model{}, &config.SettingError{Key: table + ".name", Remedy: fmt.Sprintf("not set, and the server's list of models can't be read (%v): name a model", err)}
		}
		oc.Name = name
	}
	server := cmp.Or(c.BaseURL, openai.DefaultURL)
	made := Model{Link: failover.Link{ID: fleetID(server, oc.Name, oc.APIKey)}, Table: table, Named: choice.Key, Server: server}
	price, known, err := priceOf(all, list, made, oc.Name, c)
	if err != nil {
		return Model{}, err
	}
	if !known && all.Budget.Written {
		return Model{}, unknownPrice(all, choice, oc.Name)
	}
	m, err := openai.New(oc)
	if err != nil {
		return Model{}, fmt.Errorf("set up [%s]: %w", table, err)
	}
	made.Model, made.client = m, m
	if known {
		made.Model = prices.Model{Model: m, Price: price}
	}
	return made, nil
}

// clientConfig converts the settings of a model to those of the client that asks its server.
func clientConfig(c config.Model, log *slog.Logger) openai.Config {
	oc := openai.Config{
		Name: c.Name, BaseURL: c.BaseURL, APIKey: string(c.APIKey), Window: c.Window, Blind: c.Vision == "off",
		FirstToken: c.FirstToken, Idle: c.Idle, Log: log,
		Effort: c.Reasoning, API: apiOf(c.API), Header: http.Header{}, Body: json.RawMessage(c.Body),
	}
	for _, h := range c.Headers {
		name, value, _ := strings.Cut(h, ":")
		oc.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return oc
}

// unknownPrice returns the error for a model whose price is unknown although cost is limited; it says where to
// write the price.
func unknownPrice(c *config.Config, choice config.ModelChoice, name string) error {
	const remedy = "price_input and price_output, in dollars per million tokens, or price_input = 0 for a model on this machine or in its own network"
	wrong := fmt.Sprintf("[budget] limits what models may cost, but the price of %s isn't known: ", name)
	if choice.Name != "" {
		return &config.SettingError{Where: c.Origin(choice.Key), Key: choice.Key, Remedy: wrong + "name a table [models.NAME] here, and set these in it: name, the server, and " + remedy}
	}
	return &config.SettingError{Where: c.Origin(choice.Table + ".name"), Key: choice.Table + ".price_input", Remedy: wrong + "write " + remedy}
}

// apiOf returns the protocol named in the configuration.
func apiOf(setting string) openai.API {
	if setting == "auto" {
		return openai.APIAuto
	}
	return openai.API(setting)
}

// fleetID returns an id of a model that is the same in all processes of a fleet: it is derived from the server, the
// model's name and the account's key.
func fleetID(server, name, key string) string {
	sum := sha256.Sum256([]byte(key))
	return server + " " + name + " " + hex.EncodeToString(sum[:4])
}

// Meters count how often models were asked and how often they failed.
type Meters interface {
	// Model counts one attempt to get an answer from a model.
	Model(try failover.Try)
	// Failover counts that the model to was asked because the model from didn't answer.
	Failover(from, to string)
}

// Chains returns, by the names in lists, one model each that asks all models of the list in turn. A model that has failed is not
// asked for a while; the whole fleet learns that from the book.
func Chains(lists Lists, book channels.Notes, meters Meters, log *slog.Logger) map[string]llm.Model {
	chains := map[string]llm.Model{}
	for agent, all := range lists {
		cfg := failover.Config{Notes: notes{book}, OnTry: meters.Model, OnFailover: meters.Failover, Log: log}
		for _, m := range all {
			cfg.Links = append(cfg.Links, m.Link)
		}
		if len(all) > 0 {
			chains[agent] = failover.New(cfg)
		}
	}
	return chains
}

// cooldownSubject is the subject under which the book records which models are not asked for a while.
const cooldownSubject = "model cooldown"

// notes stores failover's notes about models in the book.
type notes struct{ book channels.Notes }

// SetNote implements failover.Notes; it writes to the book.
func (n notes) SetNote(ctx context.Context, id, value string) error {
	return n.book.SetNote(ctx, cooldownSubject, id, value)
}

// Noted implements failover.Notes; it reads from the book.
func (n notes) Noted(ctx context.Context, id string) (string, error) {
	r, err := n.book.Noted(ctx, cooldownSubject, id)
	return r.Value, err
}
