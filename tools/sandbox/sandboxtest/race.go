//go:build race

package sandboxtest

// Raced reports whether the tests run with the race detector.
const Raced = true
