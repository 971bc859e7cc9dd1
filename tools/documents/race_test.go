//go:build race

package documents_test

const raced = true
