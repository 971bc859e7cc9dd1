// Package audio reaches servers that speak OpenAI's protocol for recordings of speech.
package audio

import (
	"errors"
	"net/http"
	"strings"

	"github.com/sashabaranov/go-openai"
)

// NewClient makes a client for a server, which follows no redirects: what is sent, and the key, go only where the operator says.
// baseURL "" is OpenAI's. It does not contact the server yet.
func NewClient(baseURL, key string) *openai.Client {
	cfg := openai.DefaultConfig(key)
	if baseURL != "" {
		cfg.BaseURL = strings.TrimRight(baseURL, "/")
	}
	cfg.HTTPClient = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return openai.NewClientWithConfig(cfg)
}

// Status returns the HTTP status with which a server has answered a request that failed; 0 if it has not answered.
func Status(err error) int {
	if e, ok := errors.AsType[*openai.APIError](err); ok {
		return e.HTTPStatusCode
	}
	if e, ok := errors.AsType[*openai.RequestError](err); ok {
		return e.HTTPStatusCode
	}
	return 0
}
