package api

import "parley/cmd/parley/api/exchange"

// Streams returns how many streams are open.
func (a *API) Streams() int {
	a.streams.mu.Lock()
	defer a.streams.mu.Unlock()
	return len(a.streams.open)
}

// MaxLarge is how many large bodies the API holds at once.
const MaxLarge = exchange.MaxLarge

// Large returns how many large bodies the API holds now.
func (a *API) Large() int { return a.bodies.Large() }
