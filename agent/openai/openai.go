// Package openai asks any model whose server speaks OpenAI's chat-completions protocol or
// its Responses API.
//
// The library sashabaranov/go-openai addresses the server, authenticates, and frames the stream. This package
// does everything that differs from provider to provider. It writes the request's body itself, cleans the
// stream before the library reads it (events.go), and decodes the events that the library frames (chunk.go):
// servers send more than the library's types can hold, and follow the protocol less strictly than its reader
// expects.
//
// A Model asks once; its caller decides whether and when to ask again. A Model repeats a request only if the
// server refused a parameter, a form or a tool that can be left out. It remembers that, in its dialect or for the tool.
//
// The files, in reading order: openai.go is the model, and models.go lists the models of a server. config.go
// and server.go are the way to the server; providers.go lists what is known about servers before they are
// asked, and dialect.go what their refusals teach. encode.go writes the body of a request, with request.go and
// body.go for chat completions; exchange.go sends it, and stream.go and events.go read the response; answer.go,
// pieces.go, calls.go, chunk.go and details.go put the answer together. responses.go connects the Responses
// API, whose requests and answers are in a package of their own, and ollama.go speaks Ollama's own protocol.
// refusal.go reads an error, fault.go and overflow.go tell what it means, and toolplaces.go and refusedtools.go
// which tools are refused. embeddings.go asks for vectors of texts.
//
// Each package below this one covers one subject: what both protocols have in common (wire), pieces of text
// (increment), thinking (thinktags), lists of tools (toollist), the Responses API (responses), and how large a
// model's window is (window).
package openai

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"parley/agent/llm"
	"parley/agent/openai/toollist"
)

const (
	// maxAttempts limits how many forms of one request are tried. It is more than there is to learn about a
	// server.
	maxAttempts = 10
	// maxRefusedTools limits how many refusals of tools one request may get. What was learned from them is kept
	// for the next request.
	maxRefusedTools = 40
)

// Model is one model on one server.
type Model struct {
	server

	mu      sync.Mutex
	dialect dialect // what the server has turned out to understand
}

// New makes a model from a configuration. It doesn't contact the server yet. Its error says what is invalid in the
// configuration, which must name the model.
func New(cfg Config) (*Model, error) {
	cfg, host, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.Name == "" {
		return nil, errors.New("the model has no name")
	}
	first := providerOf(host).dialectFor(cfg.Name)
	first.noPictures = cfg.Blind
	if cfg.API != APIAuto {
		first.apiConfigured, first.responses = true, cfg.API == APIResponses
	}
	if err := checkBody(cfg.Body); err != nil {
		return nil, err
	}
	return &Model{server: server{cfg: cfg, host: host, windows: cfg.newWindowFinder()}, dialect: first}, nil
}

// LookUpWindow asks the server how large the model's window is, unless it was asked before. It waits at most a
// few seconds. Generate asks again later if the server did not answer, or if its answer may change. Without
// this call the window is learned only from refusals.
func (m *Model) LookUpWindow(ctx context.Context) { m.windows.Find(ctx) }

// Info returns the model's name, whether it sees pictures and can use tools, and its window: the smaller of the
// configured one and the server's.
func (m *Model) Info() llm.Info {
	known := m.windows.Known()
	m.mu.Lock()
	defer m.mu.Unlock()
	return llm.Info{Name: m.cfg.Name, ContextTokens: known.Tokens, ContextFrom: string(known.Source), Blind: m.dialect.noPictures, Toolless: m.dialect.noTools}
}

// LeftTools returns the tools, by name, that the model is not shown because the server has refused them or
// accepts no more.
func (m *Model) LeftTools() []toollist.LeftOut { return m.tools.Left() }

// Generate asks the model once, and asks again only in another dialect or with fewer tools. See llm.Model.
func (m *Model) Generate(ctx context.Context, r *llm.Request, emit func(llm.Delta)) (*llm.Answer, error) {
	spoken, said, left := m.currentDialect(), false, attempts{dialects: maxAttempts, tools: maxRefusedTools}
	for {
		x, err := m.server.newExchange(r, spoken)
		if err != nil {
			return nil, &llm.Error{Fault: llm.Rejected, Err: err}
		}
		answer, err := x.ask(ctx, func(d llm.Delta) {
			said = true
			emit(d)
		})
		if err == nil {
			m.windows.Answered(ctx)
			return answer, nil
		}
		if ctx.Err() != nil {
			left.suspects.settle(&m.server, ctx.Err())
			return nil, ctx.Err()
		}
		var fault *llm.Error
		if spoken, fault = m.nextDialect(x, err, said, &left); fault != nil {
			left.suspects.settle(&m.server, err)
			fault.Void = answer
			return nil, fault
		}
	}
}

// attempts counts how often a request may still be repeated.
type attempts struct {
	dialects, tools int
	suspects        suspectTools
}

// nextDialect returns the dialect in which to ask again after an attempt failed, or the error to return. The
// dialect may be the same if only fewer tools are sent. said says whether something of the failed answer was
// emitted.
func (m *Model) nextDialect(x *exchange, err error, said bool, left *attempts) (dialect, *llm.Error) {
	next, count := x.dialect, &left.tools
	learned := left.suspects.leaveOut(x, err, findLocated)
	if !learned {
		if next, learned = m.adapt(x.dialect, err); learned {
			count = &left.dialects
		} else {
			learned = left.suspects.leaveOut(x, err, findNamed)
		}
	}
	fault := errorOf(err, m.cfg.APIKey)
	m.windows.Learn(fault.Window)
	if learned && said { // the caller has already shown some of it, and has to repeat the request itself
		fault.Fault = llm.Busy
	}
	if *count--; !learned || said || *count <= 0 {
		return next, fault
	}
	return next, nil
}

// currentDialect returns the dialect that the server was last found to understand. It is Ollama's own protocol if the
// server speaks that and a window is configured.
func (m *Model) currentDialect() dialect {
	native := m.cfg.Window > 0 && m.windows.IsOllama()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dialect.native = native && !m.dialect.apiConfigured && !m.dialect.noNative
	return m.dialect
}

// adapt learns from a refusal. It returns the dialect in which to ask again, or false if there was nothing to
// learn. A lesson about the server holds for all later requests.
func (m *Model) adapt(spoken dialect, err error) (dialect, bool) {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		return spoken, false
	}
	learned, ok := spoken.learn(r)
	if !ok {
		return spoken, false
	}
	m.cfg.Log.Warn("the model's server refused a request; asking differently",
		slog.String("model", m.cfg.Name), slog.String("about", learned.about), slog.Int("status", r.status), slog.Bool("once", learned.once))
	if !learned.once {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.dialect == spoken { // otherwise another request has learned something first
			m.dialect = learned.dialect
		} else if again, ok := m.dialect.learn(r); ok && !again.once {
			m.dialect = again.dialect
		}
	}
	return learned.dialect, true
}
