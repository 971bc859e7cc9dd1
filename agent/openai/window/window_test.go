package window_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"

	"parley/agent/openai/window"
)

// A fakeServer answers with its page for a path, and with 404 for other paths.
type fakeServer struct {
	mu     sync.Mutex
	pages  map[string]string
	isDown bool
	asked  int
}

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	page, ok := s.pages[r.URL.Path]
	switch {
	case s.isDown:
		w.WriteHeader(http.StatusServiceUnavailable)
	case !ok || r.Header.Get("Authorization") != "Bearer k":
		http.NotFound(w, r)
	case r.URL.Path == "/api/show":
		var asked struct{ Model string }
		if json.NewDecoder(r.Body).Decode(&asked) != nil || asked.Model != "m" {
			http.NotFound(w, r)
			return
		}
		fallthrough
	default:
		_, _ = io.WriteString(w, page)
	}
}

func (s *fakeServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func newFinder(t *testing.T, s *fakeServer, configured int) *window.Finder {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return &window.Finder{HTTP: h.Client(), BaseURL: h.URL + "/v1", Header: http.Header{"Authorization": {"Bearer k"}}, Model: "m", Configured: configured}
}

func TestWindowSizesOfServers(t *testing.T) {
	cases := map[string]struct {
		pages      map[string]string
		configured int
		want       window.Size
	}{
		"vLLM":                               {pages: map[string]string{"/v1/models": `{"data":[{"id":"other","max_model_len":512000},{"id":"m","max_model_len":8192}]}`}, want: window.Size{Tokens: 8192, Source: window.Listed}},
		"Groq":                               {pages: map[string]string{"/v1/models": `{"data":[{"id":"m","context_window":131072}]}`}, want: window.Size{Tokens: 131072, Source: window.Listed}},
		"Mistral":                            {pages: map[string]string{"/v1/models": `{"data":[{"id":"m","max_context_length":32768}]}`}, want: window.Size{Tokens: 32768, Source: window.Listed}},
		"Anthropic":                          {pages: map[string]string{"/v1/models": `{"data":[{"id":"m","max_input_tokens":200000}]}`}, want: window.Size{Tokens: 200000, Source: window.Listed}},
		"OpenRouter":                         {pages: map[string]string{"/v1/models": `{"data":[{"id":"m","context_length":262144,"top_provider":{"context_length":131072}}]}`}, want: window.Size{Tokens: 131072, Source: window.Listed}},
		"as a text":                          {pages: map[string]string{"/v1/models": `{"data":[{"id":"m","context_length":"16384"}]}`}, want: window.Size{Tokens: 16384, Source: window.Listed}},
		"llama.cpp":                          {pages: map[string]string{"/v1/models": `{"data":[{"id":"m","meta":{"n_ctx_train":131072}}]}`, "/props": `{"default_generation_settings":{"n_ctx":8192}}`}, want: window.Size{Tokens: 8192, Source: window.LlamaCpp}},
		"started with less than is listed":   {pages: map[string]string{"/v1/models": `{"data":[{"id":"m","context_length":131072}]}`, "/props": `{"default_generation_settings":{"n_ctx":4096}}`}, want: window.Size{Tokens: 4096, Source: window.LlamaCpp}},
		"Ollama, loaded":                     {pages: map[string]string{"/v1/models": `{"data":[{"id":"m:latest"}]}`, "/api/ps": `{"models":[{"name":"m:latest","model":"m:latest","context_length":16384}]}`, "/api/show": `{"model_info":{"llama.context_length":131072}}`}, want: window.Size{Tokens: 16384, Source: window.Loaded}},
		"Ollama, with num_ctx":               {pages: map[string]string{"/v1/models": `{"data":[{"id":"m"}]}`, "/api/ps": `{"models":[]}`, "/api/show": `{"parameters":"stop \"x\"\nnum_ctx                        8192\n","model_info":{"llama.context_length":131072}}`}, want: window.Size{Tokens: 8192, Source: window.ToBeLoaded}},
		"Ollama, num_ctx beyond the model":   {pages: map[string]string{"/api/ps": `{"models":[]}`, "/api/show": `{"parameters":"num_ctx 999999","model_info":{"gemma.context_length":8192}}`}, want: window.Size{Tokens: 8192, Source: window.ToBeLoaded}},
		"Ollama, as it comes":                {pages: map[string]string{"/api/ps": `{"models":[]}`, "/api/show": `{"model_info":{"llama.context_length":131072}}`}, want: window.Size{Tokens: 4096, Source: window.ToBeLoaded}},
		"a list of its own":                  {pages: map[string]string{"/v1/models": `{"data":[{"id":"m"}]}`, "/api/v0/models": `{"data":[{"id":"m","max_context_length":131072,"loaded_context_length":4096}]}`}, want: window.Size{Tokens: 4096, Source: window.OwnList}},
		"LiteLLM":                            {pages: map[string]string{"/v1/models": `{"data":[{"id":"m"}]}`, "/model/info": `{"data":[{"model_name":"m","model_info":{"max_input_tokens":8192}},{"model_name":"m","model_info":{"max_input_tokens":128000}}]}`}, want: window.Size{Tokens: 8192, Source: window.Gateway}},
		"nothing, locally":                   {pages: map[string]string{"/v1/models": `{"data":[{"id":"m"}]}`}, want: window.Size{Tokens: 32768, Source: window.Assumed}},
		"no list at all":                     {want: window.Size{Tokens: 32768, Source: window.Assumed}},
		"no window is so small":              {pages: map[string]string{"/v1/models": `{"data":[{"id":"m","context_length":2}]}`}, want: window.Size{Tokens: 32768, Source: window.Assumed}},
		"no JSON":                            {pages: map[string]string{"/v1/models": `<html>`, "/props": `[]`}, want: window.Size{Tokens: 32768, Source: window.Assumed}},
		"configured, smaller":                {pages: map[string]string{"/v1/models": `{"data":[{"id":"m","context_length":131072}]}`}, configured: 20000, want: window.Size{Tokens: 20000, Source: window.Configured}},
		"configured, larger than there is":   {pages: map[string]string{"/props": `{"n_ctx":8192}`}, configured: 64000, want: window.Size{Tokens: 8192, Source: window.LlamaCpp}},
		"configured, and the server is mute": {configured: 64000, want: window.Size{Tokens: 64000, Source: window.Configured}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &fakeServer{pages: tc.pages}
			f := newFinder(t, s, tc.configured)
			if got := f.Find(t.Context()); got != tc.want {
				t.Errorf("found %+v, want %+v", got, tc.want)
			}
			before := s.asked
			if f.Find(t.Context()); tc.want.Source != window.Loaded && s.asked != before && tc.want.Source != window.ToBeLoaded {
				t.Errorf("asked %d times more about what is known", s.asked-before)
			}
		})
	}
}

// Ollama silently cuts a longer request, so the size with which the model was loaded counts. That is known after the
// model has answered.
func TestOllamaIsAskedAgainOnceTheModelIsLoaded(t *testing.T) {
	s := &fakeServer{pages: map[string]string{"/api/ps": `{"models":[]}`, "/api/show": `{"model_info":{"llama.context_length":131072}}`}}
	f := newFinder(t, s, 0)
	if got := f.Find(t.Context()); got != (window.Size{Tokens: 4096, Source: window.ToBeLoaded}) {
		t.Fatalf("before it is loaded: %+v", got)
	}
	s.set(func() { s.pages["/api/ps"] = `{"models":[{"name":"m:latest","context_length":32768}]}` })
	f.Answered(t.Context())
	if got := f.Known(); got != (window.Size{Tokens: 32768, Source: window.Loaded}) {
		t.Errorf("once it is loaded: %+v", got)
	}
}

func TestAnUnreachableServerIsAskedAgain(t *testing.T) {
	s := &fakeServer{isDown: true}
	f := newFinder(t, s, 0)
	if got := f.Find(t.Context()); got.Source != window.Assumed {
		t.Errorf("of a server that is away %+v is known", got)
	}
	asked := s.asked
	if f.Answered(t.Context()); s.asked != asked {
		t.Error("a server that did not answer is asked again at once")
	}
	f.Learn(9000)
	if got := f.Known(); got != (window.Size{Tokens: 9000, Source: window.Refused}) {
		t.Errorf("after a refusal: %+v", got)
	}
	if f.Learn(4); f.Known().Tokens != 9000 {
		t.Errorf("a window of 4 was believed")
	}
}

// The server is asked once, for all callers; a request that was canceled doesn't count.
func TestTheServerIsAskedOnce(t *testing.T) {
	s := &fakeServer{pages: map[string]string{"/v1/models": `{"data":[{"id":"m","max_model_len":8192}]}`}}
	f := newFinder(t, s, 0)
	given, cancel := context.WithCancel(t.Context())
	cancel()
	if got := f.Find(given); got != (window.Size{}) {
		t.Errorf("of a server that was not waited for %+v is known", got)
	}
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if got := f.Find(t.Context()); got != (window.Size{Tokens: 8192, Source: window.Listed}) {
				t.Errorf("%+v is known", got)
			}
		})
	}
	all.Wait()
	one := newFinder(t, s, 0)
	before := s.asked
	one.Find(t.Context())
	if five, once := before, s.asked-before; five != once {
		t.Errorf("five who want to know ask %d times, one asks %d times", five, once)
	}
}

// Published sizes apply only to the provider's own server, and no server has to be asked for them.
func TestPublishedSizesApplyAtTheProvider(t *testing.T) {
	for base, want := range map[string]map[string]int{
		"https://api.openai.com/v1":                               {"gpt-5-mini": 272_000, "gpt-4": 8_192, "gpt-4o-mini": 128_000},
		"https://acme.openai.azure.com/openai/v1":                 {"gpt-4.1": 1_047_576},
		"https://api.anthropic.com/v1":                            {"claude-sonnet-4": 200_000},
		"https://generativelanguage.googleapis.com/v1beta/openai": {"gemini-2.5-pro": 1_048_576},
	} {
		for model, tokens := range want {
			f := &window.Finder{HTTP: &http.Client{Transport: noNetwork{t}}, BaseURL: base, Model: model}
			if got := f.Find(t.Context()); got != (window.Size{Tokens: tokens, Source: window.Published}) {
				t.Errorf("%s at %s: %+v", model, base, got)
			}
		}
	}
	s := &fakeServer{pages: map[string]string{"/v1/models": `{"data":[{"id":"gpt-4o"}]}`}}
	f := newFinder(t, s, 0)
	f.Model = "gpt-4o"
	if got := f.Find(t.Context()); got.Source != window.Assumed {
		t.Errorf("of a local gpt-4o %+v is known", got)
	}
}

type noNetwork struct{ t *testing.T }

func (n noNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	n.t.Errorf("asked %s", r.URL)
	return nil, http.ErrServerClosed
}

// A blockedTransport accepts requests, and doesn't answer until it is released.
type blockedTransport struct {
	asked   chan struct{}
	release chan struct{}
}

func (s blockedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case s.asked <- struct{}{}:
	default:
	}
	select {
	case <-s.release:
	case <-r.Context().Done():
	}
	return nil, errors.New("no answer")
}

// A server that doesn't answer the question for the window delays one answer, and not those of all conversations.
func TestAnswersDoNotWaitForAnotherLookUp(t *testing.T) {
	f := newFinder(t, &fakeServer{pages: map[string]string{"/api/ps": `{"models":[]}`, "/api/show": `{"model_info":{"llama.context_length":131072}}`}}, 0)
	f.Find(t.Context())
	synctest.Test(t, func(t *testing.T) {
		way := blockedTransport{asked: make(chan struct{}, 1), release: make(chan struct{})}
		f.HTTP = &http.Client{Transport: way}
		first := make(chan struct{})
		go func() {
			defer close(first)
			f.Answered(t.Context())
		}()
		<-way.asked
		f.Answered(t.Context()) // time stands still: it would wait for ever
		close(way.release)
		<-first
	})
}
