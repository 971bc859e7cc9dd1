package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"parley/cmd/parley/config/schema"
)

// HTTPAccess says where the server listens, who may send requests to it and what they may do, and which programs it
// posts events to.
type HTTPAccess struct {
	HTTP     HTTP
	Tokens   map[string]Token   // tokens by name
	Webhooks map[string]Webhook // webhooks by name
	// Subscriptions are the programs that events are posted to, by name.
	Subscriptions map[string]Subscription
}

// HTTP says where the server listens.
type HTTP struct {
	Listen string   // HOST:PORT; "" means off
	Hosts  []string // additional host names that requests may address, besides the server's IP addresses and loopback names
	// PublicURL is where others reach the server, through a proxy; no trailing slash.
	PublicURL string
}

// Page returns the address at which browsers on other machines reach the web page: the public address, if it uses TLS,
// has no path, and its host name is one of Hosts. It returns nil for any other, and if there is none.
func (h HTTP) Page() *url.URL {
	u, err := url.Parse(h.PublicURL)
	if err != nil || u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return nil
	}
	names := func(host string) bool {
		return strings.EqualFold(host, u.Host) || strings.EqualFold(host, u.Hostname())
	}
	if !slices.ContainsFunc(h.Hosts, names) {
		return nil
	}
	return u
}

// httpSection declares the settings of the server for programs.
func httpSection() section {
	return section{
		Section: schema.Section{Name: "http", Settings: []schema.Setting{
			{Key: "listen", Kind: schema.Listen, Default: "127.0.0.1:7275", Fill: schema.Into(func(h *HTTP) any { return &h.Listen })},
			{Key: "hosts", Kind: schema.Texts, Default: []string{}, Example: `["parley.internal"]`, Reload: schema.AtOnce, Fill: schema.Into(func(h *HTTP) any { return &h.Hosts })},
			{Key: "public_url", Kind: schema.URL, Schemes: []string{"http", "https"}, Example: `"https://bot.example.com"`, Fill: schema.Into(func(h *HTTP) any { return &h.PublicURL })},
		}},
		check: func(l *loader) {
			checkHosts(l)
			checkExposed(l)
		},
	}
}

// checkHosts reports entries in http.hosts that are not host names.
func checkHosts(l *loader) {
	for i, host := range l.Texts("http.hosts") {
		if strings.ContainsAny(host, "/:@ ") || strings.Trim(host, ".") == "" {
			l.Report(l.ElementAt("http.hosts", i), "http.hosts", fmt.Sprintf("%q isn't a host name", host),
				"write only the name, without a scheme or port")
		}
	}
}

// checkExposed adds a notice if the server listens where other machines can reach it although no token or webhook would
// let anybody in, and no platform sends requests to it.
func checkExposed(l *loader) {
	listen := l.Text("http.listen")
	if listen == "" || len(l.Names("tokens"))+len(l.Names("webhooks")) > 0 || hasHTTPChannel(l) {
		return
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil || host == "localhost" {
		return
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return
	}
	l.Notify(l.At("http.listen").Problem("http.listen", &schema.Fault{
		Wrong:  "others can reach it, but neither [tokens] nor [webhooks] lets anybody in",
		Remedy: `add [tokens.NAME], or write listen = "127.0.0.1:7275"`,
	}))
}

// hasHTTPChannel reports whether any channel's platform sends requests to the server.
func hasHTTPChannel(l *loader) bool {
	return slices.ContainsFunc(l.Names("channels"), func(name string) bool { return l.Text("channels."+name+".receive") == byHTTP })
}
