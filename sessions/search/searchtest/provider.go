package searchtest

import (
	"encoding/json"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/sessions/search"
)

// A Provider is a server whose /embeddings returns vectors of texts, without a model. Its vectors count the groups
// of three letters in a text, so texts are alike if they have parts of words in common. Tests use it to check how
// texts and vectors are exchanged; it says nothing about how good a model's vectors are.
type Provider struct {
	URL string

	mu    sync.Mutex
	asked [][]string
	fault func(w http.ResponseWriter, r *http.Request, texts []string) bool
	size  int
}

// NewProvider starts a Provider, which ends with the test.
func NewProvider(t testing.TB) *Provider {
	p := &Provider{size: 256}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.URL = server.URL + "/v1"
	return p
}

// Fail makes fault answer the requests for which it returns true; nil ends this. fault must not wait for longer
// than its request lasts.
func (p *Provider) Fail(fault func(w http.ResponseWriter, r *http.Request, texts []string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
}

// Resize changes the number of dimensions of the vectors.
func (p *Provider) Resize(dimensions int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.size = dimensions
}

// Asked returns the texts of each request so far, and forgets them.
func (p *Provider) Asked() [][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := p.asked
	p.asked = nil
	return asked
}

// note records a request, and returns the current fault and number of dimensions.
func (p *Provider) note(texts []string) (fault func(http.ResponseWriter, *http.Request, []string) bool, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, texts)
	return p.fault, p.size
}

// ServeHTTP answers a request.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Model string
		Input []string
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.URL.Path != "/v1/embeddings" || asked.Model == "" {
		http.Error(w, `{"error":{"message":"no such request"}}`, http.StatusBadRequest)
		return
	}
	fault, size := p.note(asked.Input)
	if fault != nil && fault(w, r, asked.Input) {
		return
	}
	type vector struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	answer := struct {
		Data  []vector       `json:"data"`
		Usage map[string]int `json:"usage"`
	}{Usage: map[string]int{"prompt_tokens": len(asked.Input)}}
	for i, text := range asked.Input {
		answer.Data = append(answer.Data, vector{i, VectorOf(text, size)})
	}
	slices.Reverse(answer.Data)           // the indexes count, and not the order
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone
}

// VectorOf returns the vector of a text.
func VectorOf(text string, dimensions int) []float32 {
	v := make([]float32, dimensions)
	v[0] = 0.1 // a text without letters also needs a direction
	for word := range strings.FieldsSeq(search.Fold(text)) {
		letters := []rune(" " + word + " ")
		for i := range letters {
			h := fnv.New32a()
			_, _ = h.Write([]byte(string(letters[i:min(i+3, len(letters))]))) // it cannot fail
			v[h.Sum32()%uint32(dimensions)]++                                 //nolint:gosec // a small number
		}
	}
	return v
}
