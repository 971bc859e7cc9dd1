package api

// Patterns lists what an API serves, as METHOD PATH.
func (a *API) Patterns() []string {
	var all []string
	for _, r := range a.routes() {
		all = append(all, r.pattern)
	}
	return all
}

// Streams counts those that are open.
func (a *API) Streams() int {
	a.streams.mu.Lock()
	defer a.streams.mu.Unlock()
	return len(a.streams.open)
}

// MaxLarge is how many large bodies are held at once.
const MaxLarge = maxLargeBodies

// Large counts those that are.
func (a *API) Large() int { return len(a.largeBodies) }
