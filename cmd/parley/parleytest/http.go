package parleytest

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An HTTPWorld is a world whose server listens for HTTP.
type HTTPWorld struct {
	*World
	URL    string // the server's address
	Client *http.Client
}

// ListenHTTP makes a world's server listen for HTTP.
func ListenHTTP(w *World) *HTTPWorld {
	w.T.Helper()
	address := FreeAddress(w.T)
	text, err := os.ReadFile(w.File)
	Must(w.T, err)
	listens := strings.Replace(string(text), `listen = ""`, `listen = "`+address+`"`, 1)
	Must(w.T, os.WriteFile(w.File, []byte(listens), 0o600))
	return HTTPAt(w, address)
}

// HTTPAt returns a world whose settings already make the server listen at this address.
func HTTPAt(w *World, address string) *HTTPWorld {
	return &HTTPWorld{
		World: w, URL: "http://" + address,
		// It must allow many requests at once.
		Client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: time.Minute},
	}
}

// Up starts a server and waits until it answers.
func (o *HTTPWorld) Up(env ...string) *Process {
	o.T.Helper()
	p := o.Serve(env...)
	o.Ready(o.T)
	return p
}

// Ready waits until the server answers.
func (o *HTTPWorld) Ready(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(Patience); ; {
		res, err := o.Client.Get(o.URL + "/healthz")
		if err == nil {
			res.Body.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server does not come up: %v", err)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// An Answer is a response to an HTTP request.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// ID returns the id of the accepted message.
func (a Answer) ID() string {
	var m struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal([]byte(a.Body), &m) // without a valid body it has no id
	return m.ID
}

// Code returns the error code of the answer.
func (a Answer) Code() string {
	var m struct {
		Error struct{ Code, Message string } `json:"error"`
	}
	if json.Unmarshal([]byte(a.Body), &m) != nil || m.Error.Message == "" {
		return ""
	}
	return m.Error.Code
}

// TryAsk makes one request. headers contains names and values in turn; Host is one of the names.
func (o *HTTPWorld) TryAsk(method, path, body string, headers ...string) (Answer, error) {
	req, err := http.NewRequest(method, o.URL+path, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	res, err := o.Client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return Answer{res.StatusCode, res.Header, string(raw)}, err
}

// Ask makes one request to a running server.
func (o *HTTPWorld) Ask(method, path, body string, headers ...string) Answer {
	o.T.Helper()
	a, err := o.TryAsk(method, path, body, headers...)
	Must(o.T, err)
	return a
}

// Bearer returns the Authorization header for a token, as name and value.
func Bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

// OwnerHeader returns the Authorization header for the home's own token, as name and value.
func (o *HTTPWorld) OwnerHeader() []string {
	o.T.Helper()
	raw, err := os.ReadFile(filepath.Join(o.Home, "token"))
	Must(o.T, err)
	return Bearer(strings.TrimSpace(string(raw)))
}

// WaitReadiness waits until /readyz answers with this status and a body that contains part, for any Host header and
// without a token.
func (o *HTTPWorld) WaitReadiness(status int, part string) {
	o.T.Helper()
	WaitFor(o.T, "readiness with "+part, func() bool {
		got := o.Ask("GET", "/readyz", "", "Host", "probe.example.net")
		return got.Status == status && strings.Contains(got.Body, part)
	})
}
