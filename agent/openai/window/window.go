// Package window finds out how many tokens a model can read at once.
//
// window.go keeps what is found and decides when to ask again; server.go asks servers, each
// kind in its own way; table.go has what providers publish and their servers do not say.
package window

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Source says where the size of a window is known from.
type Source string

// The sources, in words for whoever runs the bot.
const (
	Configured Source = "as the configuration says"
	Refused    Source = "as the server has said when a request was too long"
	Listed     Source = "as the server's list of models says"
	LlamaCpp   Source = "as llama.cpp says (/props)"
	Loaded     Source = "as Ollama has loaded the model"
	ToBeLoaded Source = "as Ollama will load the model, which it has not yet"
	OwnList    Source = "as the server has loaded the model (/api/v0/models)"
	Gateway    Source = "as LiteLLM says"
	Published  Source = "as its provider publishes"
	Assumed    Source = "assumed, because the server does not say"
)

// A Found is how many tokens a model can read, and from where that is known. The zero Found
// knows nothing.
type Found struct {
	Tokens int
	Source Source
}

// Least is smaller than the window of any useful model. A smaller number means something
// else.
const Least = 512

// assumed is for a server of one's own that says nothing. There models are small, and some
// servers drop what is too much for them without a word.
const assumed = 32_768

const (
	patience   = 3 * time.Second  // with a server, before a request
	askAgain   = 30 * time.Second // a server that did not answer
	loadedStay = 5 * time.Minute  // so long what Ollama has loaded is taken to stay so
)

// A Finder knows the window of one model.
type Finder struct {
	HTTP       *http.Client
	BaseURL    string // as of the chats
	Header     http.Header
	Model      string
	Configured int          // 0: it is found out
	Log        *slog.Logger // is told what is found

	asking sync.Mutex

	mu      sync.Mutex
	found   Found // by asking, or in the table
	refused int   // what refusals have said
	due     time.Time
	looked  bool // at least once
	settled bool // there is no use in asking again
}

// Known is what is known by now: the least of what is configured and what the server
// says.
func (f *Finder) Known() Found {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.found
	if f.Configured > 0 && (known.Tokens == 0 || f.Configured <= known.Tokens || known.Source == Assumed || known.Source == Published) {
		known = Found{f.Configured, Configured}
	}
	if f.refused > 0 && (known.Tokens == 0 || f.refused < known.Tokens) {
		known = Found{f.refused, Refused}
	}
	return known
}

// Learn takes in what the server says as it refuses a request.
func (f *Finder) Learn(tokens int) {
	if tokens < Least {
		return
	}
	f.mu.Lock()
	news := f.refused == 0 || tokens < f.refused
	if news {
		f.refused = tokens
	}
	f.mu.Unlock()
	if news {
		f.tell(Found{tokens, Refused})
	}
}

// Look asks the server if it may have something new to say, and returns what is known. It
// takes some seconds at most: a server that does not answer is asked again later.
func (f *Finder) Look(ctx context.Context) Found {
	if !f.isDue() {
		return f.Known()
	}
	f.asking.Lock()
	defer f.asking.Unlock()
	if !f.isDue() { // another has asked meanwhile
		return f.Known()
	}
	before, first := f.Known(), !f.hasLooked()
	f.look(ctx)
	now := f.Known()
	if first || now != before {
		f.tell(now)
	}
	return now
}

// Answered is called after the model has answered. A server that loads models on demand
// has loaded it now, and knows with how large a window; and one that was away is back.
func (f *Finder) Answered(ctx context.Context) {
	f.mu.Lock()
	if f.found.Source == ToBeLoaded {
		f.due = time.Time{}
	}
	f.mu.Unlock()
	if f.hasLooked() {
		f.Look(ctx)
	}
}

func (f *Finder) hasLooked() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.looked
}

func (f *Finder) isDue() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.settled && !time.Now().Before(f.due)
}

// look asks the server, and notes what it says and when to ask again.
func (f *Finder) look(ctx context.Context) {
	if tokens := published(f.BaseURL, f.Model); tokens > 0 {
		f.note(Found{tokens, Published}, 0)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, answered := f.askServer(ctx)
	switch {
	case !answered:
		f.note(f.assume(), askAgain)
	case found.Tokens == 0:
		f.note(f.assume(), 0)
	case found.Source == Loaded || found.Source == ToBeLoaded:
		f.note(found, loadedStay)
	default:
		f.note(found, 0)
	}
}

// assume is what is taken of a server that says nothing. Providers refuse what is too
// long, and then it is known; servers of one's own may not.
func (f *Finder) assume() Found {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.found.Tokens > 0 {
		return f.found
	}
	if isLocal(f.BaseURL) {
		return Found{assumed, Assumed}
	}
	return Found{}
}

// note keeps what was found; after again it is asked for once more, 0 being never.
func (f *Finder) note(found Found, again time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.found, f.looked, f.settled, f.due = found, true, again == 0, time.Now().Add(again)
}

// tell tells the operator what was found.
func (f *Finder) tell(found Found) {
	if f.Log == nil {
		return
	}
	known := []any{slog.String("model", f.Model), slog.Int("tokens", found.Tokens), slog.String("from", string(found.Source))}
	switch {
	case found.Tokens == 0:
		f.Log.Info("the model's server does not say how large its window is; set window beside the model's name if you know it", slog.String("model", f.Model))
	case found.Source == Assumed:
		f.Log.Warn("the model's server does not say how large its window is; set window beside the model's name", known...)
	case f.Configured > found.Tokens:
		f.Log.Warn("the model's window is smaller than is configured", append(known, slog.Int("configured", f.Configured))...)
	default:
		f.Log.Info("the model's window is known", known...)
	}
}

// least is the finding with the fewest tokens, of those that found something.
func least(all ...Found) Found {
	all = slices.DeleteFunc(all, func(f Found) bool { return f.Tokens < Least })
	if len(all) == 0 {
		return Found{}
	}
	return slices.MinFunc(all, func(a, b Found) int { return cmp.Compare(a.Tokens, b.Tokens) })
}

// isLocal tells whether a server is one of one's own, as far as its address tells: on this
// machine, in a private network, or under a name without a dot.
func isLocal(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	for _, end := range []string{".local", ".lan", ".internal", ".localhost", ".home.arpa"} {
		if strings.HasSuffix(host, end) {
			return true
		}
	}
	return !strings.Contains(host, ".")
}
