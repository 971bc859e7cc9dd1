package egress_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"parley/tools/sandbox/egress"
)

// serve starts a proxy, and gives a client that goes through it.
func serve(t *testing.T, allowed ...string) (*egress.Proxy, *http.Client) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := egress.New(allowed)
	served := make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	via := &url.URL{Scheme: "http", Host: l.Addr().String()}
	return p, &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(via), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
}

func get(t *testing.T, c *http.Client, at string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

func hello() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello "+r.Host) })
}

func TestWhatIsAllowedIsReached(t *testing.T) {
	plain, secure := httptest.NewServer(hello()), httptest.NewTLSServer(hello())
	defer plain.Close()
	defer secure.Close()
	p, c := serve(t, plain.Listener.Addr().String(), secure.Listener.Addr().String())
	for _, at := range []string{plain.URL, secure.URL} {
		if code, body, err := get(t, c, at); err != nil || code != 200 || !strings.HasPrefix(body, "hello 127.0.0.1") {
			t.Errorf("%s gave %d %q, %v", at, code, body, err)
		}
	}
	if got := p.Refused(); len(got) > 0 {
		t.Errorf("refused %q", got)
	}
}

func TestWhatIsNotAllowedIsNamed(t *testing.T) {
	var hits int
	secret := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits++ }))
	defer secret.Close()
	_, port, _ := net.SplitHostPort(secret.Listener.Addr().String())
	p, c := serve(t, "api.example.com", "*.example.org", "127.0.0.1") // on 80 and 443 alone
	code, body, err := get(t, c, secret.URL)
	if err != nil || code != http.StatusForbidden || !strings.Contains(body, "127.0.0.1:"+port) || !strings.Contains(body, "[sandbox] network") {
		t.Errorf("it gave %d %q, %v", code, body, err)
	}
	for _, at := range []string{"https://evil.example/", "https://example.org.evil.example/", "https://xexample.org/", "https://api.example.com:22/"} {
		if _, _, err := get(t, c, at); err == nil || !strings.Contains(err.Error(), "Forbidden") {
			t.Errorf("%s gave %v", at, err)
		}
	}
	want := []string{"127.0.0.1:" + port, "evil.example:443", "example.org.evil.example:443", "xexample.org:443", "api.example.com:22"}
	if got := p.Refused(); !slices.Equal(got, want) {
		t.Errorf("refused %q, want %q", got, want)
	}
	if hits > 0 {
		t.Errorf("the server that is not allowed was asked %d times", hits)
	}
}

// A name that is allowed may lead anywhere; here it leads to this machine.
func TestANameDoesNotLeadHome(t *testing.T) {
	var hits int
	secret := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits++ }))
	defer secret.Close()
	_, port, _ := net.SplitHostPort(secret.Listener.Addr().String())
	_, c := serve(t, "localhost:"+port)
	code, body, err := get(t, c, "http://localhost:"+port+"/")
	if err != nil || code != http.StatusBadGateway || !strings.Contains(body, "localhost leads to") {
		t.Errorf("it gave %d %q, %v", code, body, err)
	}
	if _, _, err := get(t, c, "https://localhost:"+port+"/"); err == nil || !strings.Contains(err.Error(), "Bad Gateway") {
		t.Errorf("a tunnel gave %v", err)
	}
	if hits > 0 {
		t.Error("it was reached")
	}
}

// Nor does one that leads to another address that this machine has.
func TestANameDoesNotLeadToAnInterface(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := net.DefaultResolver.LookupHost(t.Context(), name); err != nil {
		t.Skip("this machine's name leads nowhere: ", err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	secret := &httptest.Server{Listener: l, Config: &http.Server{Handler: hello()}}
	secret.Start()
	defer secret.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_, c := serve(t, name+":"+port)
	code, body, err := get(t, c, "http://"+name+":"+port+"/")
	if err != nil || code != http.StatusBadGateway || !strings.Contains(body, name+" leads to") {
		t.Errorf("it gave %d %q, %v", code, body, err)
	}
}

// The host that is asked is the one that was allowed, whatever a header says.
func TestTheHostIsThatOfTheURL(t *testing.T) {
	plain := httptest.NewServer(hello())
	defer plain.Close()
	at := plain.Listener.Addr().String()
	_, c := serve(t, at)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, plain.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	proxy, _ := c.Transport.(*http.Transport).Proxy(req)
	raw, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", proxy.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_, _ = io.WriteString(raw, "GET http://"+at+"/ HTTP/1.1\r\nHost: internal.example\r\nConnection: close\r\n\r\n")
	answer, err := io.ReadAll(raw)
	if err != nil || !strings.HasSuffix(string(answer), "hello "+at) {
		t.Errorf("it answered %q, %v", answer, err)
	}
}

func TestCloseEndsTunnels(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, c := serve(t, l.Addr().String())
	req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://"+l.Addr().String(), nil)
	ended := make(chan error, 1)
	go func() {
		resp, err := c.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		ended <- err
	}()
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("the tunnel was not ended")
	}
}

func TestCheck(t *testing.T) {
	for _, entry := range []string{"api.github.com", "*.github.com", "db.internal:5432", "10.0.0.1:8080", "::1", "[::1]:80", "localhost"} {
		if err := egress.Check(entry); err != nil {
			t.Errorf("%s: %v", entry, err)
		}
	}
	for _, entry := range []string{"", "*", "*.", "https://api.github.com", "a b", "a/b", "host:99999", "user@host", "*.*.com", "a,b"} {
		if egress.Check(entry) == nil {
			t.Errorf("%q is taken for a host", entry)
		}
	}
}
