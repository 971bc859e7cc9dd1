// Package webpage serves the files of the web page beside the API.
package webpage

import (
	"net/http"

	"parley/channels/web/page"
	"parley/cmd/parley/api/exchange"
)

// A Page is the part of the server that serves the web page. Anybody may read its files: they say nothing of this
// server, and what they show comes from the API, which checks who asks.
type Page struct{ files http.Handler }

// New makes a Page.
func New() Page { return Page{page.New()} }

// Routes lists the requests for the files.
func (p Page) Routes() []exchange.Route {
	return []exchange.Route{
		{Pattern: "GET " + page.Path + "{$}", Open: true, Serve: p.serve},
		{Pattern: "GET " + page.AssetPath + "{name}", Open: true, Serve: p.serve},
	}
}

func (p Page) serve(w *exchange.Answer, r *http.Request) error {
	p.files.ServeHTTP(w, r)
	return nil
}
