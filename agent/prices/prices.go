// Package prices knows how much the tokens of models cost, and adds to each answer what it costs.
//
// The list that ships with the program is prices.json; an operator may use another of the same form. Prices are
// dollars for a million tokens. If a provider charges more for long requests, the list contains the higher
// price, because a cap on costs has to hold. For models that read texts aloud, the input is a million characters.
package prices

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"parley/agent/llm"
)

//go:embed prices.json
var shippedPrices []byte

// A List holds the prices of models on a certain date.
type List struct {
	Date   string // YYYY-MM-DD
	models map[string]llm.Price
}

// Shipped returns the list that ships with the program.
func Shipped() (List, error) { return Read(shippedPrices) }

// maxPrice is the highest price of a million tokens that Read accepts, in dollars.
const maxPrice = 10_000

// Read reads a list. Its errors say what is wrong and what the list has to look like.
func Read(raw []byte) (List, error) {
	var file struct {
		Date   string `json:"date"`
		Models map[string]struct {
			Input, Output float64
			Cached        *float64
		} `json:"models"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return List{}, fmt.Errorf("a list of prices is JSON of the form %s: %w", exampleList, err)
	}
	if _, err := time.Parse(time.DateOnly, file.Date); err != nil {
		return List{}, fmt.Errorf("the list's date is %q: write it like \"2026-06-20\"", file.Date)
	}
	if len(file.Models) == 0 {
		return List{}, errors.New("the list has no models: it has to have the form " + exampleList)
	}
	l := List{Date: file.Date, models: make(map[string]llm.Price, len(file.Models))}
	for name, p := range file.Models {
		cached := p.Input
		if p.Cached != nil {
			cached = *p.Cached
		}
		for _, dollars := range []float64{p.Input, cached, p.Output} {
			if dollars < 0 || dollars > maxPrice {
				return List{}, fmt.Errorf("a price of %s is %v: write dollars for a million tokens", name, dollars)
			}
		}
		l.models[strings.ToLower(name)] = llm.Price{Input: toMicro(p.Input), Cached: toMicro(cached), Output: toMicro(p.Output)}
	}
	return l, nil
}

// exampleList is an example of a list, for errors.
const exampleList = `{"date": "2026-06-20", "models": {"NAME": {"input": 0.25, "cached": 0.025, "output": 2}}}`

// toMicro converts dollars to micro-dollars.
func toMicro(dollars float64) int64 { return int64(math.Round(dollars * 1e6)) }

// Of returns the price of a model at a server; false if the list has none. The list may leave out a vendor's
// name before a slash, as in routers' names of models, and a date or "-latest" at the end. A model on this
// machine or in its own network never has a price from a list.
func (l List) Of(name, server string) (llm.Price, bool) {
	if llm.IsOwnServer(server) {
		return llm.Price{}, false
	}
	name = strings.ToLower(name)
	for _, known := range []string{name, name[strings.LastIndexByte(name, '/')+1:]} {
		if p, ok := l.models[known]; ok {
			return p, true
		}
		if p, ok := l.models[withoutVersion(known)]; ok {
			return p, true
		}
	}
	return llm.Price{}, false
}

// withoutVersion returns a model's name without the version at its end: "-latest", or a
// date with or without hyphens.
func withoutVersion(name string) string {
	if base, ok := strings.CutSuffix(name, "-latest"); ok {
		return base
	}
	for _, layout := range []string{"-" + time.DateOnly, "-20060102"} {
		if at := len(name) - len(layout); at > 0 {
			if _, err := time.Parse(layout, name[at:]); err == nil {
				return name[:at]
			}
		}
	}
	return name
}

// A Model is a model that adds to its answers what they cost at Price.
type Model struct {
	llm.Model
	Price llm.Price
}

// Info returns what is known about the model, with its price.
func (m Model) Info() llm.Info {
	info := m.Model.Info()
	info.Price, info.Priced = m.Price, true
	return info
}

// Generate asks the model, and adds the cost to its answer, unless the provider has reported that itself.
func (m Model) Generate(ctx context.Context, r *llm.Request, emit func(llm.Delta)) (*llm.Answer, error) {
	answer, err := m.Model.Generate(ctx, r, emit)
	if answer != nil {
		m.addCost(&answer.Usage)
	}
	if fault, ok := errors.AsType[*llm.Error](err); ok && fault.Void != nil {
		m.addCost(&fault.Void.Usage)
	}
	return answer, err
}

// addCost sets the cost of u if it has none.
func (m Model) addCost(u *llm.Usage) {
	if !u.Priced && *u != (llm.Usage{}) {
		u.Cost, u.Priced = m.Price.Of(*u), true
	}
}
