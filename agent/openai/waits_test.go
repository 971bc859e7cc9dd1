package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent/agenttest"
	"parley/agent/llm"
	"parley/agent/openai"
)

// A wireTransport is a transport in memory, for tests with simulated time: it plays a response and then leaves it open.
type wireTransport agenttest.Response

// RoundTrip begins the response.
func (w wireTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	sleep(r.Context(), w.Delay)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r, Body: &openBody{ctx: r.Context(), parts: w.Parts}}, nil
}

type openBody struct {
	ctx   context.Context // the request's, as of every body
	parts []agenttest.Part
}

// Read returns the parts at their time, and then blocks.
func (b *openBody) Read(p []byte) (int, error) {
	if len(b.parts) == 0 {
		<-b.ctx.Done()
		return 0, b.ctx.Err()
	}
	part := b.parts[0]
	sleep(b.ctx, part.Delay)
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if len(part.Bytes) > len(p) {
		return 0, io.ErrShortBuffer
	}
	b.parts = b.parts[1:]
	return copy(p, part.Bytes), nil
}

// Close does nothing.
func (b *openBody) Close() error { return nil }

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// repeatEvery returns a text n times, with a pause before each.
func repeatEvery(d time.Duration, text string, n int) []agenttest.Part {
	var parts []agenttest.Part
	for range n {
		parts = append(parts, agenttest.Part{Delay: d, Bytes: text})
	}
	return parts
}

func TestWaits(t *testing.T) {
	const comment, token = ": still here\n\n", "data: " + halfDelta + "\n\n"
	const ended = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	one := agenttest.Part{Bytes: token}
	cases := map[string]struct {
		wire  agenttest.Response
		after time.Duration // it gives up, or answers
		text  string        // the answer
	}{
		"no status":              {agenttest.Response{Delay: time.Hour}, 120 * time.Second, ""},
		"no first token":         {agenttest.Response{Delay: 119 * time.Second}, 120 * time.Second, ""},
		"silence in between":     {agenttest.Response{Parts: []agenttest.Part{{Delay: 119 * time.Second, Bytes: token}}}, 179 * time.Second, ""},
		"only remarks at first":  {agenttest.Response{Parts: repeatEvery(10*time.Second, comment, 1000)}, 480 * time.Second, ""},
		"only remarks later":     {agenttest.Response{Parts: append([]agenttest.Part{one}, repeatEvery(10*time.Second, comment, 1000)...)}, 240 * time.Second, ""},
		"remarks, then silence":  {agenttest.Response{Parts: append([]agenttest.Part{one}, repeatEvery(10*time.Second, comment, 3)...)}, 90 * time.Second, ""},
		"remarks, then tokens":   {agenttest.Response{Parts: append(repeatEvery(100*time.Second, comment, 4), one, agenttest.Part{Bytes: "data: [DONE]\n\n"})}, 400*time.Second + 50*time.Millisecond, "half"},
		"slow but steady":        {agenttest.Response{Parts: append(repeatEvery(59*time.Second, token, 20), agenttest.Part{Bytes: ended + "data: [DONE]\n\n"})}, 20*59*time.Second + 50*time.Millisecond, strings.Repeat("half", 20)},
		"ended without the end":  {agenttest.Response{Parts: []agenttest.Part{one, {Bytes: ended}}}, 5 * time.Second, "half"},
		"ended, but not closed":  {agenttest.Response{Parts: []agenttest.Part{one, {Bytes: "data: [DONE]\n\n"}}}, 50 * time.Millisecond, "half"},
		"ended, remarks go on":   {agenttest.Response{Parts: append([]agenttest.Part{{Bytes: token + ended}}, repeatEvery(time.Second, comment, 1000)...)}, 20 * time.Second, "half"},
		"ended, then the usage":  {agenttest.Response{Parts: []agenttest.Part{{Bytes: token + ended}, {Delay: 4 * time.Second, Bytes: "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\ndata: [DONE]\n\n"}}}, 4050 * time.Millisecond, "half"},
		"an error, and no close": {agenttest.Response{Parts: []agenttest.Part{one, {Delay: time.Second, Bytes: "data: {\"error\":\"x\"}\n\n"}}}, time.Second, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := modelOverWire(t, tc.wire)
				began := time.Now()
				a, err := askOnce(t, m, helloRequest())
				if took := time.Since(began); took != tc.after {
					t.Errorf("took %v, want %v", took, tc.after)
				}
				switch {
				case tc.text == "" && wantFault(t, err).Fault != llm.Busy:
					t.Errorf("error %v, want busy", err)
				case tc.text != "" && (err != nil || a.Blocks[0].Text != tc.text):
					t.Errorf("answer %+v, %v", a, err)
				}
			})
		})
	}
}

// A local server may have to load the model first.
func TestALocalModelMayTakeLongToLoad(t *testing.T) {
	for loading, want := range map[time.Duration]string{9 * time.Minute: "half", 11 * time.Minute: ""} {
		synctest.Test(t, func(t *testing.T) {
			r := agenttest.Response{Delay: loading, Parts: []agenttest.Part{{Bytes: "data: " + halfDelta + "\n\ndata: [DONE]\n\n"}}}
			m, err := openai.New(openai.Config{BaseURL: "http://192.168.1.20:11434/v1", Name: "m", Transport: wireTransport(r)})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			a, err := askOnce(t, m, helloRequest())
			switch {
			case want != "" && (err != nil || a.Blocks[0].Text != want):
				t.Errorf("after %v: %+v, %v", loading, a, err)
			case want == "" && (wantFault(t, err).Fault != llm.Busy || time.Since(began) != 10*time.Minute):
				t.Errorf("gave up after %v: %v", time.Since(began), err)
			}
		})
	}
}

func modelOverWire(t *testing.T, r agenttest.Response) *openai.Model {
	t.Helper()
	m, err := openai.New(openai.Config{BaseURL: "http://models.example.com", Name: "m", Transport: wireTransport(r)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestEndsWithItsContext(t *testing.T) {
	for name, r := range map[string]agenttest.Response{
		"before": {Delay: time.Hour},
		"within": {Parts: []agenttest.Part{{Bytes: "data: " + halfDelta + "\n\n"}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := modelOverWire(t, r).Generate(ctx, helloRequest(), func(llm.Delta) {})
			if _, fault := errors.AsType[*llm.Error](err); fault || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: error %v, want the context's own", name, err)
			}
		})
	}
}
