package transcript

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"parley/agent/journal"
	"parley/sessions"
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

// BenchmarkRender makes messages of a log of 100 turns, as is done whenever a model is asked.
func BenchmarkRender(b *testing.B) {
	var records []journal.Record
	for n := range int64(100) {
		id := fmt.Sprint("t", n)
		records = append(records,
			journal.Record{N: 3*n + 1, Turn: id, Kind: sessions.KindUser, Person: "telegram:42",
				Data: sessions.User{Text: "what is there to be said of it?", Name: "Alex Example", Sent: time.Unix(1_800_000_000+n, 0)}},
			journal.Record{N: 3*n + 2, Turn: id, Kind: sessions.KindToolUse, Call: id, Data: sessions.ToolUse{Name: "read_file", Args: json.RawMessage(`{}`)}},
			journal.Record{N: 3*n + 3, Turn: id, Kind: sessions.KindToolResult, Call: id, Data: sessions.ToolResult{Content: json.RawMessage(`"something"`)}},
		)
	}
	b.ReportAllocs()
	for b.Loop() {
		Render(records, "t99")
	}
}
