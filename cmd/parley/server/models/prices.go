package models

import (
	"fmt"
	"io"
	"os"
	"strings"

	"parley/agent/llm"
	"parley/agent/prices"
	"parley/cmd/parley/config"
)

// maxPriceListBytes limits the size of a price list.
const maxPriceListBytes = 4 << 20

// Prices returns the configured price list, or the built-in one.
func Prices(c *config.Config) (prices.List, error) {
	if c.Budget.Prices == "" {
		return prices.Shipped()
	}
	list, err := readPrices(c.Budget.Prices)
	if err != nil {
		return list, &config.SettingError{Where: c.Origin("budget.prices"), Key: "budget.prices", Remedy: err.Error()}
	}
	return list, nil
}

func readPrices(file string) (list prices.List, err error) {
	f, err := os.Open(file)
	if err != nil {
		return list, fmt.Errorf("the list can't be read (%w): name another file, or leave the setting out to use the built-in list", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(f, maxPriceListBytes+1))
	if err != nil {
		return list, fmt.Errorf("the list can't be read: %w", err)
	}
	if len(raw) > maxPriceListBytes {
		return list, fmt.Errorf("the list is larger than %d bytes: leave out models that you don't use", maxPriceListBytes)
	}
	return prices.Read(raw)
}

// priceOf returns the price of a model's tokens: from its settings, or else from the price list;
// known is false if neither contains it. The error says which price in the settings is missing or wrong.
func priceOf(c *config.Config, list prices.List, m Model, name string, s config.Model) (price llm.Price, known bool, err error) {
	written := func(key string) bool { return c.Origin(m.Table+"."+key) != "" }
	wrong := func(key, remedy string) error {
		return &config.SettingError{Where: c.Origin(m.Table + "." + key), Key: m.Table + "." + key, Remedy: remedy}
	}
	in, cached, out := written("price_input"), written("price_cached"), written("price_output")
	switch {
	case !strings.HasPrefix(m.Named, m.Table): // the table has the prices of another model
		price, known = list.Of(name, m.Server)
		return price, known, nil
	case !in && !cached && !out:
		price, known = list.Of(name, m.Server)
		return price, known, nil
	case !in:
		return price, false, wrong("price_input", "not set, but the model's other prices are: write what a million tokens of the prompt cost, in dollars")
	case !out && s.PriceInput > 0:
		return price, false, wrong("price_output", "not set, but price_input is: write what a million tokens of the answer cost, in dollars")
	case s.PriceInput == 0 && !llm.IsOwnServer(m.Server):
		return price, false, wrong("price_input", "0 is for a model on this machine or in its own network: write what a million tokens of the prompt cost, in dollars")
	}
	price = llm.Price{Input: s.PriceInput, Cached: s.PriceInput, Output: s.PriceOutput}
	if cached {
		price.Cached = s.PriceCached
	}
	return price, true, nil
}
