package transcript

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"parley/agent/journal"
	"parley/sessions"
)

// BenchmarkRender renders a log of 100 turns, as for each request to a model.
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
		Render(records, "t99", nil)
	}
}
