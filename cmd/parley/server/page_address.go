package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"

	"parley/channels"
	"parley/channels/web/page"
	"parley/cmd/parley/api"
	"parley/cmd/parley/api/exchange"
)

// A webPage serves the files of the web page. Anybody may read them: the data that they show comes from the API,
// which checks its callers.
type webPage struct{}

// Routes returns the routes for the files.
func (webPage) Routes() []exchange.Route {
	files := page.New()
	return []exchange.Route{exchange.Open("GET "+page.Path+"{$}", files), exchange.Open("GET "+page.AssetPath+"{name}", files)}
}

// hosts returns the names under which this server accepts requests, besides loopback names and addresses.
func (f *front) hosts() []string { return f.settings.Load().HTTP.Hosts }

// publicPage returns the address at which browsers on other machines reach the page; nil if there is none.
func (f *front) publicPage() *url.URL { return f.settings.Load().HTTP.Page() }

// encryptedHosts returns the names that browsers reach over TLS, through the proxy in front of this server.
func (f *front) encryptedHosts() []string {
	if u := f.publicPage(); u != nil {
		return []string{u.Host}
	}
	return nil
}

// pages returns the addresses at which browsers reach the page, the one on this machine first.
func (f *front) pages() []string {
	var all []string
	if f.port != nil {
		if at, ok := f.port.Addr().(*net.TCPAddr); ok {
			host := "127.0.0.1"
			if at.IP.IsLoopback() {
				host = at.IP.String()
			}
			_, port, _ := net.SplitHostPort(at.String())
			all = append(all, "http://"+net.JoinHostPort(host, port))
		}
	}
	if u := f.publicPage(); u != nil {
		all = append(all, "https://"+u.Host)
	}
	return all
}

// ownersLink returns a link that signs a browser on another machine in as the owner; "" if the page cannot be
// reached from there.
func (f *front) ownersLink(ctx context.Context) (string, error) {
	u := f.publicPage()
	if u == nil {
		return "", nil
	}
	code, err := f.home.Book.OfferSignIn(ctx, api.OwnerName)
	if err != nil {
		return "", err
	}
	return "https://" + u.Host + api.CodeFragment + code, nil
}

// showPage tells the operator where the page is. A link that signs its reader in is shown only on a terminal,
// because a log is kept.
func (f *front) showPage(ctx context.Context) {
	pages := f.pages()
	if len(pages) == 0 || !f.role.Receives() {
		return
	}
	if !f.atTerminal {
		f.log.Info("the web page is served", slog.String("address", pages[0]), slog.String("sign_in_with", "parley ui"))
		return
	}
	code, err := f.home.Book.OfferSignIn(ctx, api.OwnerName)
	if err != nil {
		f.log.Warn("no link to the web page could be made", slog.Any("error", err))
		return
	}
	f.offer(fmt.Sprintf(textPageLink,
		int(channels.SignInCodeLasts.Seconds()), pages[0]+api.CodeFragment+code))
}
