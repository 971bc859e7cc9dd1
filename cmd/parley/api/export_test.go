package api

import "parley/cmd/parley/api/exchange"

// Streams counts those that are open.
func (a *API) Streams() int {
	a.streams.mu.Lock()
	defer a.streams.mu.Unlock()
	return len(a.streams.open)
}

// MaxLarge is how many large bodies are held at once.
const MaxLarge = exchange.MaxLarge

// Large counts those that are.
func (a *API) Large() int { return a.bodies.Large() }
