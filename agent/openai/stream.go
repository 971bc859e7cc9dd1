package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	library "github.com/sashabaranov/go-openai"

	"parley/agent/llm"
	"parley/agent/openai/responses"
)

// drainWait is how long to wait for the end of the stream once the answer is complete.
const drainWait = 50 * time.Millisecond

// ask sends one request, and reads the answer. It calls emit for each piece of the answer. Along with an error, it
// returns the same as read.
func (x *exchange) ask(ctx context.Context, emit func(llm.Delta)) (*llm.Answer, error) {
	w := newStallTimer(ctx, x.server.cfg.FirstToken)
	defer w.end()
	x.signOfLife = w.signOfLife
	stream, err := x.open(w.ctx)
	if err != nil {
		return nil, w.causeOf(err)
	}
	defer func() { _ = stream.Close() }() // everything of interest has been read
	return x.read(stream, w, emit)
}

// read reads the answer to a request. Along with an error, it returns the usage of the part that arrived, as an
// answer without blocks; nil if nothing had arrived.
func (x *exchange) read(stream eventStream, w *stallTimer, emit func(llm.Delta)) (*llm.Answer, error) {
	a := x.newReader(emit)
	for !a.isOver() {
		raw, err := stream.RecvRaw()
		if err != nil {
			if !a.isWhole(x.events.sawDone) {
				return a.void(x.size), w.causeOf(err)
			}
			break
		}
		if err := a.add(raw); err != nil {
			if a.isWhole(x.events.sawDone) && !json.Valid(raw) {
				break // anything may follow an answer
			}
			return a.void(x.size), err
		}
		if wait := a.wait(&x.server.cfg); wait > 0 {
			w.progress(wait)
		}
	}
	w.progress(drainWait)
	x.events.drain()
	answer, err := a.answer(x.size)
	if err != nil {
		answer = a.void(x.size)
	}
	return answer, err
}

// An answerReader puts an answer together from the events of its stream.
type answerReader interface {
	// add adds one event. It returns a *refusal if the event says that the server failed.
	add(event []byte) error
	// wait returns how long to wait for more progress after this event; 0 if the event was not progress.
	wait(cfg *Config) time.Duration
	// isWhole reports whether the answer is complete. done reports whether [DONE] has arrived, which ends a
	// stream.
	isWhole(done bool) bool
	// isOver reports whether nothing more of interest can follow.
	isOver() bool
	// answer returns the answer to a request of that many bytes.
	answer(requestSize int) (*llm.Answer, error)
	// void returns a broken-off answer, without its blocks: the usage that the server reported, or an estimate
	// for the part that arrived. It returns nil if nothing had arrived.
	void(requestSize int) *llm.Answer
}

// newReader returns the reader for the answer to the request.
func (x *exchange) newReader(emit func(llm.Delta)) answerReader {
	if x.dialect.responses {
		return responsesReader{responses.NewAssembly(x.server.host, emit, &x.server.thinksBare)}
	}
	a := newAssembly(x.server.host, emit)
	a.offered = x.tools
	if a.thinksBare = &x.server.thinksBare; x.server.thinksBare.Holds() {
		a.split.Assume()
	}
	if x.dialect.native {
		return nativeReader{a}
	}
	return a
}

// An eventStream is the library's reader of a stream.
type eventStream interface {
	RecvRaw() ([]byte, error)
	Close() error
}

// open sends a request in its protocol. The exchange replaces the body, so the library gets an empty request,
// which it has no reason to reject.
func (x *exchange) open(ctx context.Context) (eventStream, error) {
	if x.dialect.responses {
		return x.newClient(responsesURL(x.server.cfg.BaseURL)).CreateResponseStream(ctx, library.CreateResponseRequest{})
	}
	return x.newClient(x.server.cfg.BaseURL).CreateChatCompletionStream(ctx, library.ChatCompletionRequest{})
}

// newClient makes the library's client for one request. It is not inlined: its configuration
// would stay on the stack until the model answers.
//
//go:noinline
func (x *exchange) newClient(baseURL string) *library.Client {
	c := library.DefaultConfig(x.server.cfg.APIKey)
	c.BaseURL, c.HTTPClient = baseURL, x
	return library.NewClientWithConfig(c)
}

// A stallTimer cancels a request whose answer makes no progress. Only one goroutine may use it.
type stallTimer struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
	last   time.Time // the time of the last progress
}

// maxSignsOfLife limits how long a server may send nothing but signs of life, such as comments in the stream:
// that many times the limit.
const maxSignsOfLife = 4

// newStallTimer starts a timer that cancels its context with errStalled after limit.
func newStallTimer(ctx context.Context, limit time.Duration) *stallTimer {
	w := &stallTimer{limit: limit, last: time.Now()}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(limit, func() { w.cancel(errStalled) })
	return w
}

// progress records that the answer has made progress, and sets the limit for the next progress.
func (w *stallTimer) progress(limit time.Duration) {
	w.limit, w.last = limit, time.Now()
	w.timer.Reset(limit)
}

// signOfLife records that the server has sent something that is not progress. That extends the wait by another
// limit, up to maxSignsOfLife times.
func (w *stallTimer) signOfLife() {
	left := maxSignsOfLife*w.limit - time.Since(w.last)
	w.timer.Reset(max(0, min(w.limit, left)))
}

// causeOf returns the cause of a read error: why the request was canceled, or errCut if the stream was cut off,
// or else err itself.
func (w *stallTimer) causeOf(err error) error {
	if cause := context.Cause(w.ctx); cause != nil {
		return cause
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

// end stops the timer and releases its context.
func (w *stallTimer) end() {
	w.timer.Stop()
	w.cancel(nil)
}
