package web

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"parley/tools"
)

// Each address of a chain of redirects is checked, and a refused one is not fetched.
func TestEachRedirectIsAskedAbout(t *testing.T) {
	var paths []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.Path)
		if next := map[string]string{"/a": "/b", "/b": "/secret"}[r.URL.Path]; next != "" {
			http.Redirect(w, r, next, http.StatusFound)
		}
	}))
	defer s.Close()
	f := fetcherOver(dnsServer(t, "127.0.0.1"), func(netip.Addr) string { return "" })
	var asked []string
	f.client.redirect = func(call tools.Call, to string) error {
		asked = append(asked, call.ID+" "+strings.TrimPrefix(to, s.URL))
		if strings.HasSuffix(to, "/secret") {
			return tools.Errorf(tools.PermissionDenied, "a rule says no")
		}
		return nil
	}
	_, err := f.fetch(t.Context(), tools.Call{ID: "c1"}, fetchArgs{URL: s.URL + "/a"})
	failed, ok := errors.AsType[*tools.Error](err)
	if !ok || failed.Code != tools.PermissionDenied || !strings.Contains(failed.Message, "redirects to "+s.URL+"/secret: a rule says no") {
		t.Errorf("it gave %v", err)
	}
	if !slices.Equal(paths, []string{"/a", "/b"}) || !slices.Equal(asked, []string{"c1 /b", "c1 /secret"}) {
		t.Errorf("fetched %q, asked about %q", paths, asked)
	}
}

// A redirectingWeb is a web that answers with redirects.
type redirectingWeb struct {
	t        *testing.T
	next     []string
	fetched  []string
	approved map[string]bool
}

func (h *redirectingWeb) RoundTrip(r *http.Request) (*http.Response, error) {
	wellFormed(h.t, r.URL)
	if len(h.fetched) > 0 && !h.approved[r.URL.String()] {
		h.t.Errorf("%q was fetched and not asked about", r.URL)
	}
	if r.URL.Hostname() == "denied.example" {
		h.t.Errorf("%q was fetched, whose host is denied", r.URL)
	}
	h.fetched = append(h.fetched, r.URL.String())
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}
	if len(h.next) > 0 {
		answer.StatusCode = http.StatusFound
		answer.Header.Set("Location", h.next[0])
		h.next = h.next[1:]
	}
	return answer, nil
}

// FuzzRedirects follows chains of redirects: every request was checked before, and none goes to a host that the
// operator's lists don't permit.
func FuzzRedirects(f *testing.F) {
	for _, seed := range [][3]string{
		{"http://a.example/", "/next", "//b.example/x"}, {"https://a.example", "http://denied.example", ""}, {"http://a.example/x", "//DENIED.example.:80/", "..//denied。example"},
		{"http://a.example", "http://user@denied.example/", "javascript:alert(1)"}, {"http://a.example", "\\\\denied.example", "/%0d%0aHost: x"},
		{"http://a.example", "http://127.1/", "http://[::1]:80"}, {"http://a.example?", "?q=%zz", "#x"}, {"http://a.example", "http://denied.example\t", "http:denied.example"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, first, second, third string) {
		web := &redirectingWeb{t: t, next: []string{second, third}, approved: map[string]bool{}}
		settings := Settings{Deny: []string{"denied.example"}}
		over := &fetcher{
			settings: func() Settings { return settings }, conversionSlots: make(chan struct{}, 1),
			client: client{web, func(_ tools.Call, to string) error {
				if u, err := url.Parse(to); err != nil || u.Hostname() == "denied.example" {
					t.Errorf("asked about %q (%v)", to, err)
				}
				web.approved[to] = true
				return nil
			}},
		}
		_, _ = over.fetch(t.Context(), tools.Call{}, fetchArgs{URL: first}) // the requests are checked while they are made
		if len(web.fetched) > 3 {
			t.Errorf("fetched %q", web.fetched)
		}
	})
}
