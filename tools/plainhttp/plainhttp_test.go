package plainhttp_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/tools/plainhttp"
)

// newClient makes a client that uses a Transport.
func newClient(t *testing.T) *http.Client {
	t.Helper()
	c := &http.Client{Transport: &plainhttp.Transport{Other: &http.Transport{}}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// A server counts its connections.
type server struct {
	*httptest.Server
	connections, closed atomic.Int64
}

func newServer(t *testing.T, h http.HandlerFunc) *server {
	t.Helper()
	s := &server{Server: httptest.NewUnstartedServer(h)}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.connections.Add(1)
		case http.StateClosed:
			s.closed.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// post posts a text and returns the text of the answer.
func post(ctx context.Context, c *http.Client, url, text string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(text))
	if err != nil {
		return "", err
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return string(got), err
}

// wantPost fails the test unless posting a text gives that answer.
func wantPost(t *testing.T, c *http.Client, url, text, want string) {
	t.Helper()
	if got, err := post(t.Context(), c, url, text); err != nil || got != want {
		t.Fatalf("got %.100q, %v; want %.100q", got, err, want)
	}
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("in vain: " + what)
		}
	}
}

func echo(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return // the request was canceled
	}
	_, _ = w.Write(text)
}

func TestAConnectionServesManyRequests(t *testing.T) {
	s, c := newServer(t, echo), newClient(t)
	for _, size := range []int{0, 1, 4096, 1 << 20} {
		text := strings.Repeat("x", size)
		wantPost(t, c, s.URL, text, text)
	}
	if n := s.connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodHead, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	wantPost(t, c, s.URL, "after a HEAD", "after a HEAD")
	if n := s.connections.Load(); n != 1 {
		t.Errorf("%d connections after an answer without a body", n)
	}
}

// TestRequestsAreNotMixedUp sends many requests at the same time. Some are canceled, and the answers to some are not
// read completely.
func TestRequestsAreNotMixedUp(t *testing.T) {
	s, c := newServer(t, echo), newClient(t)
	var all sync.WaitGroup
	for person := range 16 {
		all.Go(func() {
			for n := range 40 {
				ctx, cancel := context.WithCancel(t.Context())
				if n%4 == 3 {
					time.AfterFunc(time.Duration(n)*20*time.Microsecond, cancel)
				}
				text := strings.Repeat(string(rune('a'+person)), 1+n*1000)
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(text))
				if err != nil {
					t.Error(err)
				}
				resp, err := c.Do(req)
				if err == nil {
					want := text
					if n%5 == 4 {
						want = text[:1]
					}
					got := make([]byte, len(want))
					if _, err = io.ReadFull(resp.Body, got); err == nil && string(got) != want {
						t.Errorf("%.20q was answered by %.20q", want, got)
					}
					if n%5 != 4 {
						_, _ = io.Copy(io.Discard, resp.Body)
					}
					resp.Body.Close()
				}
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	all.Wait()
}

// TestAWaitingRequestHoldsOneGoroutine counts the goroutines of requests that wait for their answers.
func TestAWaitingRequestHoldsOneGoroutine(t *testing.T) {
	const requests = 20
	var asked, all sync.WaitGroup
	asked.Add(requests)
	answer := make(chan struct{})
	s, c := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Done()
		<-answer
		echo(w, r)
	}), newClient(t)
	for range requests {
		all.Go(func() {
			if _, err := post(t.Context(), c, s.URL, "hello"); err != nil {
				t.Error(err)
			}
		})
	}
	asked.Wait()
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	n := bytes.Count(stacks, []byte("plainhttp.(*Transport).RoundTrip("))
	if m := bytes.Count(stacks, []byte("net/http.(*persistConn)")); n != requests || m != 0 {
		t.Errorf("%d goroutines wait for %d answers, and %d of net/http beside them", n, requests, m)
	}
	close(answer)
	all.Wait()
}

func TestARequestIsCancelled(t *testing.T) {
	for name, c := range map[string]struct{ begun, used bool }{
		"before the answer": {}, "within the answer": {begun: true}, "over a connection that was used before": {used: true},
	} {
		t.Run(name, func(t *testing.T) {
			why := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			var asked atomic.Int64
			s, client := newServer(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // after that the server watches the connection
				if asked.Add(1) == 1 && c.used {
					fmt.Fprint(w, "at first")
					return
				}
				if c.begun {
					fmt.Fprint(w, "it begins")
					_ = http.NewResponseController(w).Flush()
				}
				cancel(why)
				<-r.Context().Done() // the connection is closed
			}), newClient(t)
			if c.used {
				wantPost(t, client, s.URL, "hello", "at first")
			}
			before := asked.Load()
			if _, err := post(ctx, client, s.URL, "hello"); !errors.Is(err, why) {
				t.Error(err)
			}
			waitFor(t, "the connection is closed", func() bool { return s.closed.Load() == 1 })
			if n := asked.Load() - before; n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// TestAConnectionThatIsClosedMeanwhile has the server close an idle connection.
func TestAConnectionThatIsClosedMeanwhile(t *testing.T) {
	s, c := newServer(t, echo), newClient(t)
	wantPost(t, c, s.URL, "one", "one")
	s.CloseClientConnections()
	wantPost(t, c, s.URL, "two", "two")
}

// TestAConnectionThatIsClosedAtTheNextRequest plays a server that reads a second request over a connection and closes
// it, like a server whose idle timeout is just over.
func TestAConnectionThatIsClosedAtTheNextRequest(t *testing.T) {
	var requests atomic.Int64
	address := rawServer(t, func(in *bufio.Reader, out io.Writer) {
		for n := range 2 {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			text, err := io.ReadAll(r.Body)
			if err != nil || n == 1 {
				return
			}
			requests.Add(1)
			fmt.Fprintf(out, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
		}
	})
	c := newClient(t)
	for _, text := range []string{"one", "two", "three"} {
		wantPost(t, c, address, text, text)
	}
	if n := requests.Load(); n != 3 {
		t.Errorf("%d answers", n)
	}
}

// TestANewConnectionWithoutAnAnswer plays a server that never answers.
func TestANewConnectionWithoutAnAnswer(t *testing.T) {
	var connections atomic.Int64
	address := rawServer(t, func(in *bufio.Reader, _ io.Writer) {
		connections.Add(1)
		_, _ = http.ReadRequest(in)
	})
	if got, err := post(t.Context(), newClient(t), address, "hello"); err == nil {
		t.Errorf("got %q", got)
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestAServerThatBreaksOffTwiceIsAskedTwice plays a server that closes each used connection at the next request, and
// new ones at their first.
func TestAServerThatBreaksOffTwiceIsAskedTwice(t *testing.T) {
	var connections, requests atomic.Int64
	var both sync.WaitGroup
	both.Add(2)
	address := rawServer(t, func(in *bufio.Reader, out io.Writer) {
		if connections.Add(1) <= 2 { // both are kept afterwards
			if r, err := http.ReadRequest(in); err != nil {
				t.Error(err)
			} else if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Error(err)
			}
			both.Done()
			both.Wait()
			fmt.Fprint(out, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
		if _, err := http.ReadRequest(in); err == nil {
			requests.Add(1)
		}
	})
	c := newClient(t)
	var asking sync.WaitGroup
	for range 2 {
		asking.Go(func() { wantPost(t, c, address, "first", "ok") })
	}
	asking.Wait()
	if got, err := post(t.Context(), c, address, "second"); err == nil {
		t.Errorf("got %q", got)
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("asked %d times, want twice: over the connection that was kept, and over a new one", n)
	}
}

// TestARequestIsSentOnce plays a server that closes each connection at its second request.
func TestARequestIsSentOnce(t *testing.T) {
	var requests atomic.Int64
	address := rawServer(t, func(in *bufio.Reader, out io.Writer) {
		for n := range 2 {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			requests.Add(1)
			if n == 0 {
				fmt.Fprint(out, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		}
	})
	c := &http.Client{Transport: &plainhttp.Transport{Other: &http.Transport{}, NeverRepeat: true}}
	defer c.CloseIdleConnections()
	wantPost(t, c, address, "first", "ok")
	if got, err := post(t.Context(), c, address, "second"); err == nil {
		t.Errorf("got %q", got)
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("asked %d times, want twice: the second request was read and may have been obeyed", n)
	}
}

// TestHeaderAndBodyComeTogether plays a server that reads everything that has arrived at its first read. For a body
// like this, net/http itself would send the header separately.
func TestHeaderAndBodyComeTogether(t *testing.T) {
	address := rawServer(t, func(in *bufio.Reader, out io.Writer) {
		for {
			if _, err := in.Peek(1); err != nil {
				return
			}
			there, _ := in.Peek(in.Buffered()) // so much has arrived
			together := bytes.HasSuffix(there, []byte("\r\n\r\nhello"))
			if r, err := http.ReadRequest(in); err != nil {
				return
			} else if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
			fmt.Fprintf(out, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n%-6t", together)
		}
	})
	c := newClient(t)
	for range 20 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, struct{ io.Reader }{strings.NewReader("hello")})
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = 5
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(got) != "true  " {
			t.Fatalf("%q, %v", got, err)
		}
	}
}

// TestTracingReportsTheConnection checks that the connection is reported before anything is sent.
func TestTracingReportsTheConnection(t *testing.T) {
	s := newServer(t, echo)
	c := &http.Client{Transport: &plainhttp.Transport{Other: &http.Transport{}, NeverRepeat: true}}
	defer c.CloseIdleConnections()
	var reused []bool
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		reused = append(reused, got.Reused)
		if len(reused) == 3 {
			got.Conn.Close()
		}
	}})
	for range 2 {
		if got, err := post(ctx, c, s.URL, "hello"); err != nil || got != "hello" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	if got, err := post(ctx, c, s.URL, "not to be sent"); err == nil {
		t.Errorf("over a connection that was closed at once: got %q", got)
	}
	if want := []bool{false, true, true}; !slices.Equal(reused, want) {
		t.Errorf("connections used before: %v, want %v", reused, want)
	}
}

// rawServer serves each connection with a function, and returns its URL.
func rawServer(t *testing.T, serve func(in *bufio.Reader, out io.Writer)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				serve(bufio.NewReader(conn), conn)
			})
		}
	})
	return "http://" + l.Addr().String()
}

// TestAnUnrequestedResponse has a server send more than was requested: it must not become the answer to another
// request.
func TestAnUnrequestedResponse(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
	for name, late := range map[string]bool{"with the answer": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			sent := make(chan struct{}, 8)
			address := rawServer(t, func(in *bufio.Reader, out io.Writer) {
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					more := answer + "evil"
					if !late {
						fmt.Fprint(out, answer+"good"+more)
						continue
					}
					fmt.Fprint(out, answer+"good")
					fmt.Fprint(out, more)
					sent <- struct{}{}
				}
			})
			c := newClient(t)
			for range 5 {
				wantPost(t, c, address, "hello", "good")
				if late {
					<-sent
				}
			}
		})
	}
}

// TestAnEarlyAnswer has a server answer before it has read the request, and close the connection.
func TestAnEarlyAnswer(t *testing.T) {
	address := rawServer(t, func(in *bufio.Reader, out io.Writer) {
		_, _ = in.ReadString('\n')
		fmt.Fprint(out, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!")
		_, _ = io.Copy(io.Discard, in) // otherwise the answer would be lost with the connection
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if got, err := post(ctx, newClient(t), address, strings.Repeat("x", 64<<10)); err != nil || got != "no!" {
		t.Errorf("got %q, %v", got, err)
	}
	cancel()
}

// A brokenBody returns an error when it is read.
type brokenBody struct{ closed bool }

func (b *brokenBody) Read([]byte) (int, error) { return 0, errors.New("nothing to read") }
func (b *brokenBody) Close() error             { b.closed = true; return nil }

func TestABodyThatCannotBeRead(t *testing.T) {
	s, c := newServer(t, echo), newClient(t)
	broken := &brokenBody{}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, broken)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = 10
	if resp, err := c.Do(req); err == nil {
		resp.Body.Close()
		t.Error("it was sent")
	} else if !strings.Contains(err.Error(), "nothing to read") {
		t.Error(err)
	}
	if !broken.closed {
		t.Error("it was not closed")
	}
}

func TestAnswersOfEachForm(t *testing.T) {
	address := rawServer(t, func(in *bufio.Reader, out io.Writer) {
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			switch r.URL.Path {
			case "/chunks":
				fmt.Fprint(out, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nan\r\n4\r\nswer\r\n0\r\n\r\n")
			case "/announced":
				fmt.Fprint(out, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nanswer")
			case "/slow":
				for _, b := range []byte("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nanswer") {
					_, _ = out.Write([]byte{b})
				}
			case "/long":
				fmt.Fprint(out, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 2<<20)+"\r\n\r\n")
				return
			case "/cut":
				fmt.Fprint(out, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nanswer")
				return
			default:
				fmt.Fprint(out, "HTTP/1.0 200 OK\r\n\r\nanswer")
				return
			}
		}
	})
	c := newClient(t)
	for _, path := range []string{"/chunks", "/announced", "/slow", "/", "/chunks"} {
		wantPost(t, c, address+path, "hello", "answer")
	}
	if got, err := post(t.Context(), c, address+"/long", ""); err == nil || !strings.Contains(err.Error(), "header") {
		t.Errorf("an endless header: %.20q, %v", got, err)
	}
	if got, err := post(t.Context(), c, address+"/cut", ""); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an answer that is cut off: %q, %v", got, err)
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	s := newServer(t, echo)
	c := &http.Client{Transport: &plainhttp.Transport{Other: &http.Transport{}, IdleTime: 50 * time.Millisecond}}
	wantPost(t, c, s.URL, "one", "one")
	waitFor(t, "what is idle is closed", func() bool { return s.closed.Load() == 1 })
	wantPost(t, c, s.URL, "two", "two")
	c.CloseIdleConnections()
	waitFor(t, "all is closed", func() bool { return s.closed.Load() == s.connections.Load() })
}

// TestOtherRequests sends requests that a Transport doesn't send itself: over TLS, and through a proxy.
func TestOtherRequests(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(echo))
	defer secure.Close()
	other, ok := secure.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatal("another transport")
	}
	c := &http.Client{Transport: &plainhttp.Transport{Other: other}}
	defer c.CloseIdleConnections()
	wantPost(t, c, secure.URL, "over TLS", "over TLS")

	proxy := newServer(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "for "+r.URL.String()) })
	through, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	c = &http.Client{Transport: &plainhttp.Transport{Other: &http.Transport{Proxy: http.ProxyURL(through)}}}
	defer c.CloseIdleConnections()
	wantPost(t, c, "http://model.invalid/v1", "hello", "for http://model.invalid/v1")
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + l.Addr().String()
	l.Close()
	if _, err := post(t.Context(), newClient(t), address, "hello"); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
}
