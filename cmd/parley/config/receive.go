package config

import (
	"fmt"
	"slices"
	"strings"

	"parley/cmd/parley/config/schema"
)

// byHTTP is the value of the setting "receive" with which the platform sends what people say as
// HTTP requests to this server.
const byHTTP = "http"

// checkReceive reports a way of receiving that the platform does not support, and settings that
// only another way needs.
func checkReceive(l *loader, name string, platform Platform) {
	path := "channels." + name
	at, way := l.At(path+".receive"), l.Text(path+".receive")
	if way == byHTTP && slices.Contains(platform.Receives, way) {
		checkHTTPChannel(l, path, at)
		return
	}
	if way != "" && !slices.Contains(platform.Receives, way) {
		remedy := "remove it"
		if len(platform.Receives) > 0 {
			remedy = schema.OneOf(way, platform.Receives)
		}
		l.Report(at, path+".receive", fmt.Sprintf("%s doesn't support that", platform.Title), remedy)
	}
	for _, key := range []string{"public_url", "signing_secret"} {
		if set := l.At(path + "." + key); set.File != "" && platform.Receives != nil {
			l.Report(set, path+"."+key, `has no effect without receive = "http"`, `write receive = "http", or remove it`)
		}
	}
}

// checkHTTPChannel reports what is missing, such as a public URL, for a channel whose platform is
// to send requests to this server; at says where that way of receiving is set.
func checkHTTPChannel(l *loader, path string, at schema.Origin) {
	if l.Text(path+".mode") == "send" {
		l.Report(at, path+".receive", `contradicts mode = "send": the channel receives nothing`, "remove one of the two")
		return
	}
	if l.Mentioned("http.listen") && l.Text("http.listen") == "" {
		l.Report(at, path+".receive", `the platform's requests have nowhere to go: [http] listen is ""`, `write [http] listen = "127.0.0.1:7275", behind a proxy that does TLS`)
	}
	key := path + ".public_url"
	if !l.Mentioned(key) {
		key = "http.public_url"
	}
	public := l.Text(key)
	switch {
	case !l.Mentioned(key):
		l.Report(at, key, "is missing: the platform has to know where to reach this server", `write [http] public_url = "https://bot.example.com"`)
	case strings.HasPrefix(public, "http://") && l.Text(path+".api_url") == "":
		l.Report(l.At(key), key, "the platform only sends requests over https", `write "https://…", the address of the proxy in front of this server`)
	}
}

// receiveMode returns the way in which a channel receives what people say: the configured one, or
// the platform's usual one.
func receiveMode(l *loader, path string, platform Platform) string {
	if way := l.Text(path + ".receive"); way != "" || len(platform.Receives) == 0 {
		return way
	}
	return platform.Receives[0]
}
