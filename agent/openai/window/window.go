// Package window finds out how many tokens a model can read at once.
//
// window.go keeps the size that was found and decides when to ask again; server.go asks servers, each kind in
// its own way; table.go lists the sizes that providers publish but their servers don't report.
package window

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"parley/agent/llm"
)

// A Source says where the size of a window comes from.
type Source string

// The sources, in words for the people who run the bot.
const (
	Configured Source = "according to the configuration"
	Refused    Source = "as the server said when a request was too long"
	Listed     Source = "according to the server's list of models"
	LlamaCpp   Source = "according to llama.cpp (/props)"
	Loaded     Source = "according to Ollama, which has loaded it that way; to change that, set window next to the model's name"
	ToBeLoaded Source = "according to Ollama, which hasn't loaded it yet; to change that, set window next to the model's name"
	Asked      Source = "because each request asks Ollama for that (num_ctx)"
	OwnList    Source = "according to the server, which has loaded it that way (/api/v0/models)"
	Gateway    Source = "according to LiteLLM"
	Published  Source = "as published by its provider"
	Assumed    Source = "assumed, because the server doesn't say"
)

// A Size is the number of tokens that a model can read, and where that number comes from. The zero Size means
// that nothing is known.
type Size struct {
	Tokens int
	Source Source
}

// MinWindow is smaller than the window of any useful model. A smaller number can't be the size of a window.
const MinWindow = 512

// assumedWindow is the size that is assumed for a local server that doesn't report one. Local models are small, and
// some local servers silently drop what doesn't fit.
const assumedWindow = 32_768

// smallWindow is a size below which instructions and tools leave little room for a conversation.
const smallWindow = 16_384

// How long a Finder waits.
const (
	answerTimeout     = 3 * time.Second  // for a server's answer, before a request is sent
	retryAfter        = 30 * time.Second // before a server that did not answer is asked again
	ollamaKeepsLoaded = 5 * time.Minute  // how long Ollama is assumed to keep a model loaded
)

// A Finder finds out the window of one model, and remembers it.
type Finder struct {
	HTTP       *http.Client
	BaseURL    string      // the base URL of the chat protocol
	Header     http.Header // sent with each request
	Model      string
	Configured int // the configured size; 0 if there is none
	// RequestsSetWindow reports that each request to Ollama asks for the configured size, as its own protocol allows.
	RequestsSetWindow bool
	Log               *slog.Logger // gets a record of each new size

	// askMu is held while the server is asked.
	askMu sync.Mutex

	mu      sync.Mutex
	found   Size // from the server, from the table, or assumed
	refused int  // the smallest size that refusals have stated; 0 if none has
	// dueAt is when to ask the server again.
	dueAt    time.Time
	wasAsked bool // the server was asked at least once
	ollama   bool // the server is Ollama
	isFinal  bool // asking again is pointless
}

// Known returns the size that is known so far: the smallest of the configured size, the server's, and those that
// refusals have stated; the zero Size if there is none. A configured size replaces one that is published or assumed.
func (f *Finder) Known() Size {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.found
	if f.Configured > 0 && known.Source != Asked && (known.Tokens == 0 || f.Configured <= known.Tokens || known.Source == Assumed || known.Source == Published) {
		known = Size{f.Configured, Configured}
	}
	if f.refused > 0 && (known.Tokens == 0 || f.refused < known.Tokens) {
		known = Size{f.refused, Refused}
	}
	return known
}

// IsOllama reports whether the server was found to be Ollama.
func (f *Finder) IsOllama() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ollama
}

// Learn records the size that the server stated when it refused a request. It ignores a size below Least.
func (f *Finder) Learn(tokens int) {
	if tokens < MinWindow {
		return
	}
	f.mu.Lock()
	news := f.refused == 0 || tokens < f.refused
	if news {
		f.refused = tokens
	}
	f.mu.Unlock()
	if news {
		f.report(Size{tokens, Refused})
	}
}

// Find returns what is known about the window. If nobody has asked the server yet, it asks first; if another
// caller is asking at the moment, it waits for that. It takes at most a few seconds: a server that doesn't
// answer is asked again later, by Answered.
func (f *Finder) Find(ctx context.Context) Size {
	if f.hasAsked() {
		return f.Known()
	}
	f.askMu.Lock()
	defer f.askMu.Unlock()
	if f.hasAsked() {
		return f.Known()
	}
	return f.findIfDue(ctx)
}

// findIfDue asks the server, unless another caller has done so in the meantime. The caller holds f.asking.
func (f *Finder) findIfDue(ctx context.Context) Size {
	if !f.isDue() {
		return f.Known()
	}
	before, first := f.Known(), !f.hasAsked()
	f.find(ctx)
	now := f.Known()
	if first && f.hasAsked() || now != before {
		f.report(now)
	}
	return now
}

// Answered must be called after the model has answered. A server that loads models on demand has loaded the
// model now, and knows the size of its window; and a server that was unreachable is back. Answered asks the
// server again if it is time to do so.
func (f *Finder) Answered(ctx context.Context) {
	f.mu.Lock()
	if f.found.Source == ToBeLoaded {
		f.dueAt = time.Time{}
	}
	f.mu.Unlock()
	if !f.hasAsked() || !f.isDue() || !f.askMu.TryLock() { // no answer waits for another caller that is asking
		return
	}
	defer f.askMu.Unlock()
	f.findIfDue(ctx)
}

// hasAsked reports whether the server has been asked at least once.
func (f *Finder) hasAsked() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wasAsked
}

// isDue reports whether it is time to ask the server.
func (f *Finder) isDue() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.isFinal && !time.Now().Before(f.dueAt)
}

// find finds out the size and records it, along with the time at which to ask again.
func (f *Finder) find(ctx context.Context) {
	if tokens := publishedSize(f.BaseURL, f.Model); tokens > 0 {
		f.record(Size{tokens, Published}, 0)
		return
	}
	asking, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	found, answered := f.askServer(asking)
	switch {
	case !answered && ctx.Err() != nil: // nobody is waiting any longer, and nothing was found out
	case !answered:
		f.record(f.fallback(), retryAfter)
	case found.Tokens == 0:
		f.record(f.fallback(), 0)
	case found.Source == Loaded || found.Source == ToBeLoaded:
		f.record(found, ollamaKeepsLoaded)
	default:
		f.record(found, 0)
	}
}

// fallback returns the size to assume for a server that doesn't report one: the last one that was found, or a
// small one for a local server. Otherwise it returns the zero Size, because providers refuse a request that is
// too long, and the refusal states the size; local servers may not do that.
func (f *Finder) fallback() Size {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.found.Tokens > 0 {
		return f.found
	}
	if llm.IsOwnServer(f.BaseURL) {
		return Size{assumedWindow, Assumed}
	}
	return Size{}
}

// record keeps the size that was found. The server is asked again after the given time, or never if that is 0.
func (f *Finder) record(found Size, again time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.found, f.wasAsked, f.isFinal, f.dueAt = found, true, again == 0, time.Now().Add(again)
}

// report logs the size for the operator.
func (f *Finder) report(found Size) {
	if f.Log == nil {
		return
	}
	known := []any{slog.String("model", f.Model), slog.Int("tokens", found.Tokens), slog.String("from", string(found.Source))}
	switch {
	case found.Tokens == 0:
		f.Log.Info("the model's server does not say how large its window is; set window beside the model's name if you know it", slog.String("model", f.Model))
	case (found.Source == Loaded || found.Source == ToBeLoaded) && found.Tokens < smallWindow:
		f.Log.Warn("Ollama reads little of a conversation at once; set window beside the model's name, and each request asks for that", known...)
	case found.Source == Assumed:
		f.Log.Warn("the model's server does not say how large its window is; set window beside the model's name", known...)
	case f.Configured > found.Tokens:
		f.Log.Warn("the model's window is smaller than is configured", append(known, slog.Int("configured", f.Configured))...)
	default:
		f.Log.Info("the model's window is known", known...)
	}
}

// least returns the smallest of the known sizes; the zero Size if none is known.
func least(all ...Size) Size {
	all = slices.DeleteFunc(all, func(f Size) bool { return f.Tokens < MinWindow })
	if len(all) == 0 {
		return Size{}
	}
	return slices.MinFunc(all, func(a, b Size) int { return cmp.Compare(a.Tokens, b.Tokens) })
}
