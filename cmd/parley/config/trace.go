package config

import (
	"strings"

	"parley/cmd/parley/config/schema"
)

// Trace says where the spans of messages are sent; if Endpoint is "", nowhere.
type Trace struct {
	Endpoint string
	Headers  []string // entries of the form NAME: VALUE
	Text     bool     // whether spans include what was said
}

// tracesPath is where collectors expect spans, by convention.
const tracesPath = "/v1/traces"

// URL returns the URL to which spans are posted; "" for none.
func (t Trace) URL() string {
	if t.Endpoint == "" || strings.HasSuffix(t.Endpoint, tracesPath) {
		return t.Endpoint
	}
	return strings.TrimSuffix(t.Endpoint, "/") + tracesPath
}

// traceSection declares the settings of traces.
func traceSection() section {
	return section{
		Section: schema.Section{Name: "trace", Settings: []schema.Setting{
			{Key: "endpoint", Kind: schema.URL, Schemes: []string{"https", "http"}, Example: `"http://127.0.0.1:4318"`,
				Reload: schema.AtOnce, Fill: schema.Into(func(t *Trace) any { return &t.Endpoint })},
			{Key: "headers", Kind: schema.Texts, Default: []string{}, Secret: true, Headers: schema.AllValues, Example: `["Authorization: Bearer ${TRACE_TOKEN}"]`,
				Reload: schema.AtOnce, Fill: schema.Into(func(t *Trace) any { return &t.Headers })},
			{Key: "text", Kind: schema.Truth, Default: false, Example: "true", Reload: schema.AtOnce, Fill: schema.Into(func(t *Trace) any { return &t.Text })},
		}},
		check: checkTrace,
	}
}

// checkTrace reports settings of traces without an endpoint, and an endpoint on another machine that texts or headers
// would be sent to without TLS.
func checkTrace(l *loader) {
	checkHeaders(l, "trace", `["Authorization: Bearer ${TRACE_TOKEN}"]`)
	private := l.Value("trace.text") == true || len(l.Texts("trace.headers")) > 0
	if !l.Mentioned("trace.endpoint") {
		if private {
			l.Report(l.At("trace"), "trace", "has no endpoint: there's nowhere to send traces", `write endpoint = "http://127.0.0.1:4318", or another collector's address`)
		}
		return
	}
	if private && inTheClear(l.Text("trace.endpoint")) {
		l.Report(l.At("trace.endpoint"), "trace.endpoint", "without TLS, others could read the texts and headers in transit",
			`write https://, or leave out text and headers; http:// is for a collector on this machine, such as "http://127.0.0.1:4318"`)
	}
}
