// Package page serves the web page on which people talk to the agent in a browser and see what it is doing.
//
// The page is static: it is a program in the browser that uses the HTTP API like any other program. Its sources are
// in src, in TypeScript, and its parts by other authors are in vendored. "go generate" bundles them into dist,
// which is part of the program; none of that needs Node.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:generate go run -C ../../../.ci/page . ../../channels/web/page

//go:embed dist
var builtFiles embed.FS

// contentPolicy allows the page what it needs, and nothing else: no text by others can become a script or a style, nothing
// is sent elsewhere, and no other page can embed this one. Frames show nothing from elsewhere, wherever their documents try
// to go.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; frame-src 'self'; " +
	"form-action 'none'; frame-ancestors 'none'; base-uri 'none'"

// The paths at which the page is served: the page itself and, below AssetPath, what it loads.
const (
	Path      = "/"
	AssetPath = "/assets/"
)

// A file is one file of the page as it is served.
type file struct {
	kind   string // its media type
	plain  []byte
	zipped []byte // nil if that would not be smaller
	tag    string // the ETag of its content
	cache  string
}

// A Page serves the web page. It is an http.Handler.
type Page struct {
	files func() (map[string]*file, error) // by path
}

// New makes a Page from the files that are part of the program. They are prepared for browsers when one of them is
// first requested, because few processes ever get such a request.
func New() *Page { return &Page{files: sync.OnceValues(load)} }

// load reads the files and prepares them.
func load() (map[string]*file, error) {
	entries, err := builtFiles.ReadDir("dist")
	if err != nil {
		return nil, fmt.Errorf("read the web page: %w", err)
	}
	files := map[string]*file{}
	var names []string // alternately what the page calls an asset, and the asset's path
	var index []byte
	for _, e := range entries {
		text, err := builtFiles.ReadFile("dist/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("read %s of the web page: %w", e.Name(), err)
		}
		if e.Name() == "index.html" {
			index = text
			continue
		}
		// The name changes with the content, so that browsers may cache it forever.
		at := AssetPath + hashedName(e.Name(), text)
		files[at] = newFile(at, text, "public, max-age=31536000, immutable")
		names = append(names, AssetPath+e.Name(), at)
	}
	index = []byte(strings.NewReplacer(names...).Replace(string(index)))
	files[Path] = newFile("/index.html", index, "no-cache")
	return files, nil
}

// hashedName returns the name of an asset with its content's hash added: page-HASH.js for page.js.
func hashedName(name string, text []byte) string {
	sum := sha256.Sum256(text)
	ext := path.Ext(name)
	return strings.TrimSuffix(name, ext) + "-" + hex.EncodeToString(sum[:8]) + ext
}

// kind returns the media type of one of the page's files.
func kind(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return "text/plain; charset=utf-8"
}

func newFile(name string, text []byte, cache string) *file {
	sum := sha256.Sum256(text)
	f := &file{kind: kind(name), plain: text, tag: hex.EncodeToString(sum[:16]), cache: cache}
	var zipped bytes.Buffer
	w, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // the level is valid
	_, _ = w.Write(text)                                       // writing to a buffer never fails
	_ = w.Close()
	if zipped.Len() < len(text) {
		f.zipped = zipped.Bytes()
	}
	return f
}

// ServeHTTP answers a GET or a HEAD for the page or one of its files.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	setPolicy(h)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "the page is only read", http.StatusMethodNotAllowed)
		return
	}
	files, err := p.files()
	if err != nil { // what is part of the program can be read
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	f := files[r.URL.Path]
	if f == nil {
		http.Error(w, "there's no such file: load the page again", http.StatusNotFound)
		return
	}
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", f.cache)
	h.Set("Vary", "Accept-Encoding")
	body, tag := f.plain, `"`+f.tag+`"`
	if f.zipped != nil && takesGzip(r.Header.Get("Accept-Encoding")) {
		body, tag = f.zipped, `"`+f.tag+`-gzip"`
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", tag)
	if isKnown(r.Header.Get("If-None-Match"), tag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // an error means that the browser has gone
	}
}

// setPolicy tells browsers what the page may do.
func setPolicy(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// takesGzip reports whether a browser accepts gzip, based on its Accept-Encoding.
func takesGzip(accept string) bool {
	for one := range strings.SplitSeq(accept, ",") {
		coding, quality, _ := strings.Cut(strings.TrimSpace(one), ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		_, q, weighed := strings.Cut(quality, "=")
		weight, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
		return !weighed || err == nil && weight > 0
	}
	return false
}

// isKnown reports whether a browser already has the content with that tag, based on its If-None-Match.
func isKnown(given, tag string) bool {
	for one := range strings.SplitSeq(given, ",") {
		one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
		if one == tag || one == "*" {
			return true
		}
	}
	return false
}
