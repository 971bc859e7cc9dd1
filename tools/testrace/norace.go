//go:build !race

package testrace

// Raced reports whether the tests run with the race detector.
const Raced = false
