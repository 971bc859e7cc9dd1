package window

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"parley/agent/llm"
	"parley/tools/plainjson"
)

// maxResponse limits how many bytes of a server's answer are read.
const maxResponse = 16 << 20

// ollamaDefault is the size of the window with which Ollama loads a model unless it is told otherwise.
const ollamaDefault = 4096

// askServer asks the server in every way in which servers report the size of a window, and returns the smallest size
// found. If a public server's list states a size, it returns that one and asks no further. answered reports whether
// the server could be asked.
func (f *Finder) askServer(ctx context.Context) (found Size, answered bool) {
	listed, err := f.askList(ctx)
	if err != nil {
		return Size{}, false
	}
	if listed.Tokens > 0 && !llm.IsOwnServer(f.BaseURL) {
		return listed, true
	}
	// A local server's list may state the largest window that the model supports, and not the one that it was
	// started with.
	return least(listed, f.askLlamaCpp(ctx), f.askOllama(ctx), f.askOwnList(ctx), f.askLiteLLM(ctx)), ctx.Err() == nil
}

// sizes holds the fields in which lists of models state the size of a window.
type sizes struct {
	ContextLength    number `json:"context_length"`     // OpenRouter, Together
	MaxModelLen      number `json:"max_model_len"`      // vLLM, SGLang
	ContextWindow    number `json:"context_window"`     // Groq
	MaxContextLength number `json:"max_context_length"` // Mistral
	MaxInputTokens   number `json:"max_input_tokens"`   // Anthropic
	Loaded           number `json:"loaded_context_length"`
}

// least returns the smallest of the sizes.
func (s sizes) least(from Source) Size {
	var all []Size
	for _, n := range []number{s.ContextLength, s.MaxModelLen, s.ContextWindow, s.MaxContextLength, s.MaxInputTokens, s.Loaded} {
		all = append(all, Size{int(n), from})
	}
	return least(all...)
}

// askList returns the size stated in the model's entry in the protocol's list of models; the zero Size if the
// list states none.
func (f *Finder) askList(ctx context.Context) (Size, error) {
	var list struct {
		Data []struct {
			ID string `json:"id"`
			sizes
			Best sizes `json:"top_provider"` // OpenRouter: the provider that it tries first
			Meta struct {
				Context number `json:"n_ctx"` // llama.cpp; n_ctx_train would be the largest possible
			} `json:"meta"`
		} `json:"data"`
	}
	if err := f.get(ctx, f.BaseURL+"/models", &list); err != nil {
		return Size{}, err
	}
	for _, m := range list.Data {
		if sameModel(m.ID, f.Model) {
			return least(m.least(Listed), m.Best.least(Listed), Size{int(m.Meta.Context), Listed}), nil
		}
	}
	return Size{}, nil
}

// askLlamaCpp returns the size of one slot of a llama.cpp server, which divides its context among slots. It
// reads the server's properties.
func (f *Finder) askLlamaCpp(ctx context.Context) Size {
	var props struct {
		Context number `json:"n_ctx"`
		Default struct {
			Context number `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if f.get(ctx, f.root()+"/props", &props) != nil {
		return Size{}
	}
	return least(Size{int(props.Default.Context), LlamaCpp}, Size{int(props.Context), LlamaCpp})
}

// askOllama returns the size with which Ollama has loaded the model, or will load it; or the configured size if each
// request asks for that; the zero Size if the server isn't Ollama, or doesn't say. Unless the model is loaded, the
// largest size that it supports is an upper limit, because Ollama silently cuts a longer request.
func (f *Finder) askOllama(ctx context.Context) Size {
	var running struct {
		Models []struct {
			Name    string `json:"name"`
			Model   string `json:"model"`
			Context number `json:"context_length"`
		} `json:"models"`
	}
	if f.get(ctx, f.root()+"/api/ps", &running) != nil || running.Models == nil { // not Ollama
		return Size{}
	}
	f.mu.Lock()
	f.ollama = true
	f.mu.Unlock()
	asks := f.RequestsSetWindow && f.Configured > 0
	for _, m := range running.Models {
		if !asks && (sameModel(m.Name, f.Model) || sameModel(m.Model, f.Model)) && m.Context >= MinWindow {
			return Size{int(m.Context), Loaded}
		}
	}
	var shown struct {
		Parameters string                     `json:"parameters"`
		Info       map[string]json.RawMessage `json:"model_info"`
	}
	if f.post(ctx, f.root()+"/api/show", map[string]string{"model": f.Model}, &shown) != nil {
		return Size{}
	}
	will := Size{ollamaDefault, ToBeLoaded}
	if asks {
		will = Size{f.Configured, Asked}
	}
	for line := range strings.Lines(shown.Parameters) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == "num_ctx" && !asks {
			if n, err := strconv.Atoi(words[1]); err == nil && n >= MinWindow {
				will.Tokens = n
			}
		}
	}
	for name, raw := range shown.Info {
		var most number
		if strings.HasSuffix(name, ".context_length") && json.Unmarshal(raw, &most) == nil {
			will = least(will, Size{int(most), will.Source})
		}
	}
	return will
}

// askOwnList returns the size stated in the list /api/v0/models, which some local servers have in addition to
// the protocol's. It states the size with which a model is loaded.
func (f *Finder) askOwnList(ctx context.Context) Size {
	var list struct {
		Data []struct {
			ID string `json:"id"`
			sizes
		} `json:"data"`
	}
	if f.get(ctx, f.root()+"/api/v0/models", &list) != nil {
		return Size{}
	}
	for _, m := range list.Data {
		if sameModel(m.ID, f.Model) {
			return m.least(OwnList)
		}
	}
	return Size{}
}

// askLiteLLM returns the size that a LiteLLM gateway states. Its list in the protocol's form contains only
// names.
func (f *Finder) askLiteLLM(ctx context.Context) Size {
	var list struct {
		Data []struct {
			Name string `json:"model_name"`
			Info sizes  `json:"model_info"`
		} `json:"data"`
	}
	if f.get(ctx, f.root()+"/model/info", &list) != nil {
		return Size{}
	}
	found := Size{}
	for _, m := range list.Data {
		if m.Name == f.Model { // the gateway may choose any of several entries with the same name
			found = least(found, m.Info.least(Gateway))
		}
	}
	return found
}

// root returns the server's address without /v1, where servers put what is not in the protocol.
func (f *Finder) root() string { return strings.TrimSuffix(f.BaseURL, "/v1") }

// sameModel reports whether two names refer to the same model. Ollama's lists add the tag to the name.
func sameModel(listed, asked string) bool {
	return listed != "" && (listed == asked || listed == asked+":latest" || listed+":latest" == asked)
}

// get requests a URL and decodes the JSON answer. See do.
func (f *Finder) get(ctx context.Context, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	return f.do(req, into)
}

// post sends body as JSON and decodes the JSON answer. See do.
func (f *Finder) post(ctx context.Context, address string, body, into any) error {
	raw, err := plainjson.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	return f.do(req, into)
}

// do sends a request and decodes the answer. It returns an error only if the server can't be asked at the moment: it
// can't be reached, is asked too often, or fails. Any other refusal, such as of an unknown URL or of the key, and an
// answer that isn't JSON leave into unchanged.
func (f *Finder) do(req *http.Request, into any) error {
	maps.Copy(req.Header, f.Header)
	req.Header.Set("Accept", "application/json")
	resp, err := f.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode >= http.StatusInternalServerError || resp.StatusCode == http.StatusTooManyRequests:
		return fmt.Errorf("status %d", resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return err
	}
	_ = json.Unmarshal(raw, into) // JSON of another form fills in what fits
	return nil
}

// A number is a size that servers may also write in quotes, or leave out.
type number int

// UnmarshalJSON reads a number. Anything else leaves n unchanged.
func (n *number) UnmarshalJSON(raw []byte) error {
	read, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err == nil && read > 0 && read < 1<<31 {
		*n = number(read)
	}
	return nil
}
