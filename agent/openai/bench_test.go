package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/agent/llm"
	"parley/agent/openai"
	"parley/tools"
)

// BenchmarkGenerate asks a model without latency, with an ordinary agent's prompt and tools.
func BenchmarkGenerate(b *testing.B) {
	r := helloRequest()
	r.System = strings.Repeat("You are Parley. ", 250)
	for i := range 10 {
		r.Tools = append(r.Tools, tools.Spec{Name: fmt.Sprintf("tool_%d", i), Description: strings.Repeat("Does something. ", 10),
			Schema: json.RawMessage(`{"type":"object","required":["path"],"properties":{"path":{"type":"string","description":"where"},"limit":{"type":"integer"}}}`)})
	}
	for _, side := range []int{1, 100} {
		b.Run(fmt.Sprintf("%d at once", side), func(b *testing.B) {
			s := agenttest.New(agenttest.Always(agenttest.Reply("hello to you")))
			s.Keep(0)
			m := scriptedModel(b, s)
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

// A cannedServer answers each request with the same stream, without a network.
type cannedServer string

func (s cannedServer) RoundTrip(r *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, r.Body)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(s))), Header: http.Header{"Content-Type": {"text/event-stream"}}, Request: r}, err
}

// BenchmarkLongAnswer reads an answer of 500 pieces, as OpenAI sends them.
func BenchmarkLongAnswer(b *testing.B) {
	const pieces = 500
	var stream strings.Builder
	for n := range pieces {
		fmt.Fprintf(&stream, `data: {"id":"chatcmpl-Bq1u0b7","object":"chat.completion.chunk","created":1751378324,"model":"gpt-5-mini-2025-08-07","service_tier":"default","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":" word%d"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"k2XpQ"}`+"\n\n", n)
	}
	stream.WriteString(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	m, err := openai.New(openai.Config{BaseURL: "http://127.0.0.1:1/v1", Name: "m", Transport: cannedServer(stream.String())})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Generate(b.Context(), helloRequest(), func(llm.Delta) {}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pieces), "ns/piece")
}
