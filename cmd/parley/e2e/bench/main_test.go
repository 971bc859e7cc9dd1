// Package bench measures the program from outside: how soon it answers, how many answers it gives at once, and what
// resources it uses.
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
