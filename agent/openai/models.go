package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"parley/agent/llm"
	"parley/agent/openai/wire"
)

// FirstModel returns the name of the model to use if none is configured: DefaultName at DefaultURL, and
// elsewhere the first model in the server's list that can chat. A list without any is an error.
func FirstModel(ctx context.Context, cfg Config) (string, error) {
	cfg, host, err := cfg.withDefaults()
	if err != nil {
		return "", err
	}
	if cfg.BaseURL == DefaultURL {
		return DefaultName, nil
	}
	names, err := Models(ctx, cfg)
	if err != nil {
		return "", err
	}
	if len(names) == 0 {
		return "", &llm.Error{Fault: llm.Refused, Err: fmt.Errorf("%s lists no models that chat: name one", host)}
	}
	return names[0], nil
}

// Models asks the server for its models, and returns the names of those that can chat, which may be none. It waits at
// most 15 s. Its error is an *llm.Error, unless the configuration is invalid.
func Models(ctx context.Context, cfg Config) ([]string, error) {
	cfg, _, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 15*time.Second, errStalled)
	defer cancel()
	names, err := listModels(ctx, &cfg)
	if err != nil {
		return nil, errorOf(err, cfg.APIKey)
	}
	return names, nil
}

// listModels asks the server for its models, and returns the names of those that can
// chat.
func listModels(ctx context.Context, cfg *Config) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.BaseURL+"/models", nil)
	if err != nil {
		return nil, fmt.Errorf("ask for the models: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	req.URL.RawQuery = cfg.query
	cfg.sign(req.Header)
	resp, err := cfg.client.Do(req)
	if err = failureOf(req, resp, err); err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var listed struct {
		Data []struct {
			ID   string      `json:"id"`
			Type wire.String `json:"type"` // some servers send it: chat, embedding, …
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxEvent)).Decode(&listed); err != nil {
		return nil, fmt.Errorf("read the list of models: %w", err)
	}
	var names []string
	for _, d := range listed.Data {
		if d.ID != "" && canChat(d.ID, string(d.Type)) {
			names = append(names, d.ID)
		}
	}
	return names, nil
}

// canChat guesses whether a model can chat, from its name and, if the server gives one, its type. Servers also
// list models for embeddings and other purposes.
func canChat(name, kind string) bool {
	for _, text := range []string{strings.ToLower(name), strings.ToLower(kind)} {
		for _, other := range []string{"embed", "rerank", "whisper", "tts", "transcri", "moderation", "dall-e", "diffusion", "bge-", "minilm", "text-to-", "image"} {
			if strings.Contains(text, other) {
				return false
			}
		}
	}
	return true
}
