package openai_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"parley/agent/llm"
	"parley/agent/openai"
)

func TestEmbeddings(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		answer string
		want   [][]float32
		fault  llm.Fault
		tokens int64
	}{
		"in their order":          {200, `{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[3,4]}],"usage":{"prompt_tokens":7}}`, [][]float32{{1, 2}, {3, 4}}, "", 7},
		"by their numbers":        {200, `{"data":[{"index":1,"embedding":[3,4]},{"index":0,"embedding":[1,2]}],"usage":{"prompt_tokens":7}}`, [][]float32{{1, 2}, {3, 4}}, "", 7},
		"without numbers":         {200, `{"data":[{"embedding":[1,2]},{"embedding":[3,4]}]}`, [][]float32{{1, 2}, {3, 4}}, "", -3},
		"too few":                 {200, `{"data":[{"index":0,"embedding":[1,2]}]}`, nil, llm.Busy, -3},
		"two of the same number":  {200, `{"data":[{"index":1,"embedding":[1]},{"index":1,"embedding":[2]}]}`, nil, llm.Busy, -3},
		"a number out of bounds":  {200, `{"data":[{"index":1,"embedding":[1]},{"index":9,"embedding":[2]}]}`, nil, llm.Busy, -3},
		"no JSON":                 {200, `hello`, nil, llm.Busy, 0},
		"a wrong key":             {401, `{"error":{"message":"the key sk-secret-key is wrong"}}`, nil, llm.Refused, 0},
		"too many requests":       {429, `{"error":{"message":"slow down"}}`, nil, llm.Busy, 0},
		"a model that is missing": {404, `{"error":{"message":"model not found","code":"model_not_found"}}`, nil, llm.Refused, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var asked map[string]any
				if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
					t.Error(err)
				}
				want := map[string]any{"model": "small", "input": []any{"one", "two two"}}
				if r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer sk-secret-key" || !reflect.DeepEqual(asked, want) {
					t.Errorf("asked %s for %v with %v", r.URL, asked, r.Header)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.answer)
			}))
			defer server.Close()
			spent := int64(0)
			e, err := openai.NewEmbedder(openai.Config{BaseURL: server.URL + "/v1/", APIKey: "sk-secret-key", Name: "small"}, func(tokens int64, estimated bool) {
				if spent = tokens; estimated {
					spent = -tokens
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.Embed(t.Context(), []string{"one", "two two"})
			fault := llm.Fault("")
			if of, ok := errors.AsType[*llm.Error](err); ok {
				fault = of.Fault
				if strings.Contains(of.Error()+of.Explain(), "secret") {
					t.Errorf("the error has the key: %v, %s", err, of.Explain())
				}
			}
			if !reflect.DeepEqual(got, c.want) || fault != c.fault || (err != nil) != (c.fault != "") || spent != c.tokens {
				t.Errorf("got %v, %v (%s), %d tokens; want %v, %s, %d", got, err, fault, spent, c.want, c.fault, c.tokens)
			}
		})
	}
}

func TestEmbeddingsOfAzure(t *testing.T) {
	for _, bad := range []openai.Config{{Name: ""}, {Name: "m", BaseURL: "ftp://x"}, {Name: "m", BaseURL: "http://user:password@x"}, {Name: "m", BaseURL: "http://x?y=1"}} {
		if _, err := openai.NewEmbedder(bad, nil); err == nil || strings.Contains(err.Error(), "password") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	asked := make(chan *http.Request, 1)
	e, err := openai.NewEmbedder(openai.Config{BaseURL: "https://x.openai.azure.com/openai/v1?api-version=preview", APIKey: "k", Name: "m", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		asked <- r
		return nil, errors.New("away")
	})}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Embed(t.Context(), []string{"x"}); err == nil {
		t.Error("it answers")
	}
	if r := <-asked; r.URL.String() != "https://x.openai.azure.com/openai/v1/embeddings?api-version=preview" || r.Header.Get("api-key") != "k" || r.Header.Get("Authorization") != "" {
		t.Errorf("asked %s with %v", r.URL, r.Header)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
