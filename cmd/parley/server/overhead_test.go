package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/tools"
)

// BenchmarkCallOverhead measures the overhead of a tool call besides its commits and the tool itself: the guard,
// redaction of the arguments and the result, and the arguments for the audit.
func BenchmarkCallOverhead(b *testing.B) {
	s := newTestServer(b, "")
	if err := s.agents.guard.Load(b.Context()); err != nil {
		b.Fatal(err)
	}
	redact := s.agents.guard.secrets.Load()
	for _, kb := range []int{4, 64} {
		text := strings.Repeat("The quick brown fox jumps over the lazy dog, 1234567.\n", kb*1024/54)
		args, err := json.Marshal(map[string]string{"path": "notes/fox.md", "content": text})
		if err != nil {
			b.Fatal(err)
		}
		result, err := json.Marshal(map[string]string{"content": text})
		if err != nil {
			b.Fatal(err)
		}
		call := tools.Call{Name: "write_file", ID: "c1", Session: "main:telegram:42", Agent: "main", Person: "telegram:42", Args: args}
		b.Run(fmt.Sprintf("%d KB", kb), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.agents.guard.decide(b.Context(), call)
				redact.JSON(args)
				redact.JSON(result)
				_, _ = tools.Shorten(redact.JSON(args), 4096, "")
			}
		})
	}
}
