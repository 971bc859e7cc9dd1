package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent/llm"
	"parley/agent/openai"
)

// wholeAnswer is a model's answer to a request.
const wholeAnswer = `data: {"choices":[{"delta":{"content":"hello"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"

// modelAt returns the model of a server with this handler.
func modelAt(t *testing.T, h http.HandlerFunc) *openai.Model {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	m, err := openai.New(openai.Config{Name: "scripted", BaseURL: s.URL + "/v1", API: openai.APIChat})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestAWaitingRequestHoldsNoBody makes many large requests wait for their answers, and checks that the process holds
// their text once, without a body for each.
func TestAWaitingRequestHoldsNoBody(t *testing.T) {
	const requests, size = 32, 2 << 20
	var asked sync.WaitGroup
	asked.Add(requests)
	answer := make(chan struct{})
	m := modelAt(t, func(w http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); n < size || err != nil {
			t.Errorf("a body of %d bytes has come: %v", n, err)
		}
		asked.Done()
		<-answer
		fmt.Fprint(w, wholeAnswer)
	})
	long := &llm.Request{Messages: []llm.Message{newMessage(llm.RoleUser, textBlock(strings.Repeat("a", size)))}}
	before := liveBytes()
	var all sync.WaitGroup
	for range requests {
		all.Go(func() {
			if _, err := askOnce(t, m, long); err != nil {
				t.Error(err)
			}
		})
	}
	asked.Wait()
	// The client closes each body right after the server has read its last bytes.
	const most = requests * size / 4
	held := liveBytes() - before
	for deadline := time.Now().Add(30 * time.Second); held > most && time.Now().Before(deadline); held = liveBytes() - before {
		runtime.Gosched()
	}
	if held > most {
		t.Errorf("%d bytes are held while %d requests of %d bytes wait", held, requests, size)
	}
	close(answer)
	all.Wait()
}

// TestARequestThatWasSentHoldsNoMessages refuses a request once, and lets its caller send it again: its messages are
// rendered again each time, and are equal.
func TestARequestThatWasSentHoldsNoMessages(t *testing.T) {
	var bodies []string
	r := helloRequest()
	r.Messages, r.Render = nil, func() []llm.Message { return helloRequest().Messages }
	m := modelAt(t, func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		bodies = append(bodies, string(body))
		if len(bodies) == 1 {
			http.Error(w, `{"error":{"message":"Unrecognized request argument supplied: stream_options"}}`, http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, wholeAnswer)
	})
	for range 2 {
		if _, err := askOnce(t, m, r); err != nil {
			t.Fatal(err)
		}
		if r.Messages != nil {
			t.Error("a request that was sent holds its messages")
		}
	}
	if len(bodies) != 3 || bodies[1] != bodies[2] || !strings.Contains(bodies[0], "hello") || !strings.Contains(bodies[1], "hello") {
		t.Errorf("the server got %q", bodies)
	}
	if r.Restore(); len(r.Messages) != 1 {
		t.Errorf("the request has %d messages again", len(r.Messages))
	}
}

// liveBytes returns how many bytes of memory are in use.
func liveBytes() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestARequestIsSentAgainWhole redirects a request: its body is sent once to each of both places.
func TestARequestIsSentAgainWhole(t *testing.T) {
	var bodies []string
	m := modelAt(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies = append(bodies, string(body))
		if r.URL.Path != "/moved" {
			http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprint(w, wholeAnswer)
	})
	if _, err := askOnce(t, m, helloRequest()); err != nil {
		t.Fatal(err)
	}
	if len(bodies) != 2 || bodies[0] != bodies[1] || !strings.Contains(bodies[0], "hello") {
		t.Errorf("the server got %q", bodies)
	}
}

// TestEachRequestHasItsOwnBody sends many requests in parallel, cancels some of them, and checks that no body contains
// data of another whose memory it may reuse.
func TestEachRequestHasItsOwnBody(t *testing.T) {
	const people, each = 16, 40
	m := modelAt(t, func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Messages []struct {
				Content string `json:"content"`
			} `json:"messages"`
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			return // the request was canceled
		}
		said := asked.Messages[0].Content
		if strings.Trim(said, said[:1]) != "" {
			t.Errorf("a request has %.100q", said)
		}
		fmt.Fprint(w, wholeAnswer)
	})
	var all sync.WaitGroup
	for person := range people {
		all.Go(func() {
			letter := string(rune('a' + person))
			for n := range each {
				ctx, cancel := context.WithCancel(t.Context())
				if n%4 == 3 {
					time.AfterFunc(time.Duration(n)*10*time.Microsecond, cancel)
				}
				r := &llm.Request{Messages: []llm.Message{newMessage(llm.RoleUser, textBlock(strings.Repeat(letter, 1+n*1000)))}}
				_, err := m.Generate(ctx, r, func(llm.Delta) {})
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	all.Wait()
}
