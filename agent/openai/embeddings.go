package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	library "github.com/sashabaranov/go-openai"
)

// maxVectorsSize limits the answer to a request for vectors, in bytes.
const maxVectorsSize = 64 << 20

// bytesPerToken is the average length of a token.
const bytesPerToken = 4

// errVectors is returned if an answer doesn't contain one vector for each text.
var errVectors = errors.New("the answer does not have one vector for each text")

// An Embedder turns texts into vectors, using a server's /embeddings.
type Embedder struct {
	cfg          Config
	reportTokens func(tokens int64, estimated bool)
}

// NewEmbedder makes an Embedder for the model that a configuration names. It doesn't contact the server yet.
// spent, if not nil, is called for each answer with the tokens that the server counted, or with an estimate if
// it counted none.
func NewEmbedder(cfg Config, spent func(tokens int64, estimated bool)) (*Embedder, error) {
	cfg, _, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.Name == "" {
		return nil, errors.New("the model has no name")
	}
	return &Embedder{cfg, spent}, nil
}

// Embed returns a vector for each of the texts, in order. It asks once. Its error is an *llm.Error.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	c := library.DefaultConfig("")
	c.BaseURL, c.HTTPClient = e.cfg.BaseURL, signingClient{&e.cfg}
	answer, err := library.NewClientWithConfig(c).CreateEmbeddings(ctx, library.EmbeddingRequestStrings{Input: texts, Model: library.EmbeddingModel(e.cfg.Name)})
	if err != nil {
		return nil, errorOf(err, e.cfg.APIKey)
	}
	e.reportSpent(int64(answer.Usage.PromptTokens), texts)
	vectors := make([][]float32, len(texts))
	numbered := slices.ContainsFunc(answer.Data, func(one library.Embedding) bool { return one.Index != 0 })
	for i, one := range answer.Data {
		at := one.Index
		if !numbered { // some servers don't number them
			at = i
		}
		if at < 0 || at >= len(vectors) || vectors[at] != nil {
			return nil, errorOf(errVectors, e.cfg.APIKey)
		}
		vectors[at] = one.Embedding
	}
	if len(answer.Data) != len(texts) {
		return nil, errorOf(errVectors, e.cfg.APIKey)
	}
	return vectors, nil
}

// reportSpent reports how many tokens an answer has cost: an estimate if the server has counted none.
func (e *Embedder) reportSpent(tokens int64, texts []string) {
	if e.reportTokens == nil {
		return
	}
	if tokens > 0 {
		e.reportTokens(tokens, false)
		return
	}
	for _, t := range texts {
		tokens += int64(len(t)/bytesPerToken + 1)
	}
	e.reportTokens(tokens, true)
}

// A signingClient is the HTTP client for the library's requests. It adds the configured header fields.
type signingClient struct{ cfg *Config }

// Do sends a request. Its errors are those of failureOf.
func (s signingClient) Do(req *http.Request) (*http.Response, error) {
	req.URL.RawQuery = s.cfg.query
	s.cfg.sign(req.Header)
	resp, err := s.cfg.client.Do(req)
	if err = failureOf(req, resp, err); err != nil {
		return nil, fmt.Errorf("ask for vectors: %w", err)
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxVectorsSize), resp.Body}
	return resp, nil
}
