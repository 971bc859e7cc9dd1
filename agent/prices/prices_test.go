package prices_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"parley/agent/llm"
	"parley/agent/prices"
)

func shipped(t *testing.T) prices.List {
	t.Helper()
	list, err := prices.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestPricesByNameAndServer(t *testing.T) {
	list := shipped(t)
	const openAI = "https://api.openai.com/v1"
	mini := llm.Price{Input: 250_000, Cached: 25_000, Output: 2_000_000}
	for _, c := range []struct {
		name, server string
		want         llm.Price
		known        bool
	}{
		{"gpt-5-mini", openAI, mini, true},
		{"GPT-5-mini", openAI, mini, true},
		{"gpt-5-mini-2025-08-07", openAI, mini, true},
		{"openai/gpt-5-mini", "https://openrouter.ai/api/v1", mini, true},
		{"gpt-5-mini-latest", "https://gateway.example.com/v1", mini, true},
		{"claude-haiku-4-5-20251001", "https://api.anthropic.com/v1", llm.Price{Input: 1_000_000, Cached: 100_000, Output: 5_000_000}, true},
		{"gpt-5-pro", openAI, llm.Price{Input: 15_000_000, Cached: 15_000_000, Output: 120_000_000}, true},
		{"gpt-5-mini-9999-99-99", openAI, llm.Price{}, false},
		{"llama3.1", openAI, llm.Price{}, false},
		{"", openAI, llm.Price{}, false},
		{"gpt-5-mini", "http://127.0.0.1:11434/v1", llm.Price{}, false},
		{"gpt-5-mini", "http://[::1]:11434/v1", llm.Price{}, false},
		{"gpt-5-mini", "http://192.168.1.4/v1", llm.Price{}, false},
		{"gpt-5-mini", "http://localhost:8080", llm.Price{}, false},
		{"gpt-5-mini", "http://vllm:8000/v1", llm.Price{}, false},
	} {
		if got, known := list.Of(c.name, c.server); got != c.want || known != c.known {
			t.Errorf("%s at %s: %+v %v, want %+v %v", c.name, c.server, got, known, c.want, c.known)
		}
	}
}

func TestAListThatIsWrongSaysWhy(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                `date is ""`,
		`nonsense`:                          "JSON of the form",
		`{"date":"yesterday"}`:              "yesterday",
		`{"date":"2026-01-02","models":{}}`: "no models",
		`{"date":"2026-01-02","models":{"m":{"input":-1,"output":2}}}`:      "a price of m is -1",
		`{"date":"2026-01-02","models":{"m":{"imput":1,"output":2}}}`:       "imput",
		`{"date":"2026-01-02","models":{"m":{"input":1,"output":2000000}}}`: "dollars for a million tokens",
	} {
		if _, err := prices.Read([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestWhatAnAnswerCosts(t *testing.T) {
	p := llm.Price{Input: 250_000, Cached: 25_000, Output: 2_000_000}
	for _, c := range []struct {
		use  llm.Usage
		want int64
	}{
		{llm.Usage{}, 0},
		{llm.Usage{Input: 1}, 1}, // a quarter of a micro-dollar, rounded up
		{llm.Usage{Input: 1_000_000, Cached: 400_000, Output: 1_000}, 150_000 + 10_000 + 2_000},
		{llm.Usage{Input: 10, Cached: 50}, 1}, // no more is cached than was said
		{llm.Usage{Input: -5, Output: -7}, 0},
	} {
		if got := p.Of(c.use); got != c.want {
			t.Errorf("%+v costs %d, want %d", c.use, got, c.want)
		}
	}
	dear := llm.Price{Input: 1e11, Cached: 1e11, Output: 1e11}
	if got := dear.Of(llm.Usage{Input: 1 << 62, Output: 1 << 62}); got <= 0 {
		t.Errorf("nonsense costs %d", got)
	}
}

// A told model answers as it was told.
type told struct {
	answer llm.Answer
	err    error
}

func (told) Info() llm.Info { return llm.Info{Name: "told"} }
func (m told) Generate(context.Context, *llm.Request, func(llm.Delta)) (*llm.Answer, error) {
	return &m.answer, m.err
}

func TestAnAnswerSaysWhatItHasCost(t *testing.T) {
	price := llm.Price{Input: 1_000_000, Cached: 0, Output: 2_000_000}
	ask := func(m told) (*llm.Answer, error) {
		return prices.Model{Model: m, Price: price}.Generate(t.Context(), &llm.Request{}, nil)
	}
	if a, _ := ask(told{answer: llm.Answer{Usage: llm.Usage{Input: 3, Cached: 1, Output: 4}}}); a.Usage.Cost != 10 || !a.Usage.Priced {
		t.Errorf("%+v", a.Usage)
	}
	if a, _ := ask(told{answer: llm.Answer{Usage: llm.Usage{Input: 3, Cost: 77, Priced: true}}}); a.Usage.Cost != 77 {
		t.Errorf("the provider's own figure became %+v", a.Usage)
	}
	part := &llm.Error{Fault: llm.Busy, Void: &llm.Answer{Usage: llm.Usage{Output: 5}}}
	if _, err := ask(told{err: part}); !errors.Is(err, part) || part.Void.Usage.Cost != 10 {
		t.Errorf("what came in part: %+v", part.Void.Usage)
	}
	if info := (prices.Model{Model: told{}, Price: price}).Info(); !info.Priced || info.Price != price || info.Name != "told" {
		t.Errorf("%+v", info)
	}
}
