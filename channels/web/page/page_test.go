package page

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func ask(t *testing.T, p *Page, method, at string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, at, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, from io.Reader) string {
	t.Helper()
	raw, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// assets returns the paths of the files that the page names.
func assets(t *testing.T, p *Page) []string {
	t.Helper()
	index := text(t, ask(t, p, "GET", "/").Body)
	var all []string
	for _, m := range regexp.MustCompile(`(?:src|href)="(/[^"]*)"`).FindAllStringSubmatch(index, -1) {
		all = append(all, m[1])
	}
	return all
}

// The page refers to its script, style and icon by the hashes of their contents, and these files exist.
func TestThePageNamesWhatThereIs(t *testing.T) {
	p := New()
	res := ask(t, p, "GET", "/")
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/html; charset=utf-8" || res.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("the page is %d %v", res.StatusCode, res.Header)
	}
	kinds := map[string]string{}
	for _, at := range assets(t, p) {
		if !regexp.MustCompile(`^/assets/[a-z]+-[0-9a-f]{16}\.(js|css|svg|txt)$`).MatchString(at) {
			t.Errorf("the page names %s", at)
		}
		res := ask(t, p, "GET", at)
		if res.StatusCode != 200 || !strings.Contains(res.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s is %d %v", at, res.StatusCode, res.Header)
		}
		kinds[at[strings.LastIndex(at, "."):]] = res.Header.Get("Content-Type")
	}
	if kinds[".js"] != "text/javascript; charset=utf-8" || kinds[".css"] != "text/css; charset=utf-8" || kinds[".svg"] != "image/svg+xml" {
		t.Errorf("the assets are %v", kinds)
	}
}

// Every answer tells the browser to accept scripts and styles from this server alone, and the page contains no
// inline ones.
func TestThePolicyIsStrict(t *testing.T) {
	p := New()
	for _, at := range append(assets(t, p), "/", "/assets/none.js") {
		h := ask(t, p, "GET", at).Header
		allowed := strings.Split(h.Get("Content-Security-Policy"), "; ")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-src 'self'", "frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'"} {
			if !slices.Contains(allowed, want) {
				t.Errorf("%s: the policy %q lacks %s", at, allowed, want)
			}
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cross-Origin-Opener-Policy") != "same-origin" {
			t.Errorf("%s: %v", at, h)
		}
	}
	index := text(t, ask(t, p, "GET", "/").Body)
	if regexp.MustCompile(`<style|style=|<script[^>]*>[^<]|\son[a-z]+=`).MatchString(index) {
		t.Errorf("the page has a script or a style within: %s", index)
	}
}

// A client that accepts gzip gets a compressed file with the same content, and a client that has the content is
// not sent it again.
func TestFilesAreCompressedAndNotSentTwice(t *testing.T) {
	p := New()
	script := assets(t, p)[slices.IndexFunc(assets(t, p), func(at string) bool { return strings.HasSuffix(at, ".js") })]
	plain := ask(t, p, "GET", script)
	zipped := ask(t, p, "GET", script, "Accept-Encoding", "br, gzip;q=0.8")
	if plain.Header.Get("Content-Encoding") != "" || zipped.Header.Get("Content-Encoding") != "gzip" || zipped.ContentLength >= plain.ContentLength {
		t.Fatalf("plain %v, zipped %v", plain.Header, zipped.Header)
	}
	unzipped, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text(t, unzipped) != text(t, plain.Body) {
		t.Error("the compressed file is another one")
	}
	if plain.Header.Get("ETag") == zipped.Header.Get("ETag") {
		t.Error("both forms have one tag")
	}
	if refused := ask(t, p, "GET", script, "Accept-Encoding", "gzip;q=0"); refused.Header.Get("Content-Encoding") != "" {
		t.Error("who refuses gzip gets it")
	}
	for _, res := range []*http.Response{
		ask(t, p, "GET", script, "If-None-Match", plain.Header.Get("ETag")),
		ask(t, p, "GET", script, "If-None-Match", `"x", W/`+zipped.Header.Get("ETag"), "Accept-Encoding", "gzip"),
	} {
		if res.StatusCode != 304 || text(t, res.Body) != "" {
			t.Errorf("it is sent again: %d", res.StatusCode)
		}
	}
	if res := ask(t, p, "GET", "/", "If-None-Match", plain.Header.Get("ETag")); res.StatusCode != 200 {
		t.Errorf("the page for the script's tag: %d", res.StatusCode)
	}
}

// The files can only be read, and nothing else is served.
func TestOnlyThePageIsServed(t *testing.T) {
	p := New()
	for _, step := range []struct {
		method, at string
		status     int
	}{
		{"HEAD", "/", 200}, {"POST", "/", 405}, {"DELETE", "/", 405}, {"GET", "/index.html", 404},
		{"GET", "/assets/", 404}, {"GET", "/assets/page.js", 404}, {"GET", "/assets/../page.go", 404}, {"GET", "/dist/page.js", 404},
	} {
		res := ask(t, p, step.method, step.at)
		if res.StatusCode != step.status {
			t.Errorf("%s %s: %d, want %d", step.method, step.at, res.StatusCode, step.status)
		}
		if step.method == "HEAD" && text(t, res.Body) != "" {
			t.Error("HEAD has a body")
		}
	}
}

// All works of others that the page contains are listed with their licences, and the page links to the list.
func TestLicencesAreServed(t *testing.T) {
	p := New()
	for _, at := range assets(t, p) {
		if strings.HasPrefix(at, "/assets/licenses-") && strings.Contains(text(t, ask(t, p, "GET", at).Body), "== preact\n\nThe MIT License") {
			return
		}
	}
	t.Error("no licences are served")
}
