package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/agent/llm"
	"parley/tools"
)

// BenchmarkGenerate asks a model without latency, with the prompt and the
// tools of an ordinary agent.
func BenchmarkGenerate(b *testing.B) {
	r := hello()
	r.System = strings.Repeat("You are Parley. ", 250)
	for i := range 10 {
		r.Tools = append(r.Tools, tools.Spec{Name: fmt.Sprintf("tool_%d", i), Description: strings.Repeat("Does something. ", 10),
			Schema: json.RawMessage(`{"type":"object","required":["path"],"properties":{"path":{"type":"string","description":"where"},"limit":{"type":"integer"}}}`)})
	}
	for _, side := range []int{1, 100} {
		b.Run(fmt.Sprintf("%d at once", side), func(b *testing.B) {
			s := agenttest.New(agenttest.Always(agenttest.Reply("hello to you")))
			s.Keep(0)
			m := model(b, s)
			b.SetParallelism(side)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := m.Generate(b.Context(), r, func(llm.Delta) {}); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
