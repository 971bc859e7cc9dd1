package frames

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// What is written as it is could not be written in any other way.
func TestPlainValuesNeedNoCleaning(t *testing.T) {
	letters := []string{"a", "B", "7", " ", "  ", "-", ":", "'", `"`, "<", ">", "\n", "\t", "\x7f", "\x00", "é", "＂", "\u200b", "\u00a0", "\xff"}
	random, plainOnes := rand.New(rand.NewPCG(1, 2)), 0
	for range 200_000 {
		var b strings.Builder
		for range random.IntN(6) {
			b.WriteString(letters[random.IntN(len(letters))])
		}
		value := b.String()
		if !isPlain(value, 4) {
			continue
		}
		plainOnes++
		if cleaned := plain(value, 4); cleaned != value {
			t.Fatalf("%q is taken for plain, and cleaned it is %q", value, cleaned)
		}
	}
	if plainOnes < 1000 {
		t.Errorf("of all values only %d were plain", plainOnes)
	}
}
