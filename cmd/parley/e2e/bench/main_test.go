// Package bench measures the program from outside: how soon it answers, how much at once, and what it takes for that.
package bench

import (
	"os"
	"testing"

	"parley/cmd/parley/parleytest"
)

func TestMain(m *testing.M) {
	if benchRole() {
		return
	}
	os.Exit(parleytest.Main(m))
}
