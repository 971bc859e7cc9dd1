//go:build race

package sandboxtest

// Raced says that the tests look for races.
const Raced = true
