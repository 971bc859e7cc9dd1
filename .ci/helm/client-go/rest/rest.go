// Package rest says how a cluster is reached, and there is none.
package rest

// A Config is never made.
type Config struct{}
