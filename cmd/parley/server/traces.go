package server

import (
	"crypto/rand"
	"strconv"

	"parley/agent/failover"
	"parley/agent/metrics"
	"parley/bus/trace"
	"parley/bus/trace/otlp"
	"parley/cmd/parley/config"
)

// traces sends the spans of messages to a collector. It exists even if none are wanted, because a reload may change
// that.
type traces struct{ *otlp.Exporter }

// newTraces returns the part that sends spans, for a server that is about to open.
func newTraces(c Config, hidden *secrets, counts *metrics.Metrics) traces {
	return traces{otlp.New(otlp.Config{
		Collector: collectorOf(c.Settings), Service: otlp.Service{Version: c.Build.Version, Instance: rand.Text(), Role: string(c.Role)},
		Count: counts.Spans, Redact: hidden.text, Log: c.Log,
	})}
}

// Reload implements reloader: applying it makes spans go where the next settings say.
func (t traces) Reload(next *config.Config) (apply func(), err error) {
	return func() { t.Set(collectorOf(next)) }, nil
}

// meters counts requests to models, and records a span for each request that a model doesn't answer.
type meters struct {
	*metrics.Metrics
	traces traces
}

// Model implements models.Meters. The log of a session has each answer, but no request without one, so this records
// such a request as a span of its turn.
func (m meters) Model(try failover.Try) {
	m.Metrics.Model(try)
	if try.Result == "ok" || try.Turn == "" || !trace.IsOn(m.traces) {
		return
	}
	of := trace.Of(try.Turn)
	m.traces.Record(trace.Span{
		Trace: of, ID: of.Span("try", try.Turn, try.Model, strconv.FormatInt(try.Began.UnixNano(), 10)), Parent: of.Turn(try.Turn),
		Name: "chat " + try.Model, Kind: trace.Client, Start: try.Began, End: try.Began.Add(try.Took), Failed: try.Result,
		Attributes: []trace.Attribute{trace.Text("gen_ai.operation.name", "chat"), trace.Text("gen_ai.request.model", try.Model)},
	})
}

// collectorOf returns the collector in the settings.
func collectorOf(c *config.Config) otlp.Collector {
	return otlp.Collector{URL: c.Trace.URL(), Headers: c.Trace.Headers, Text: c.Trace.Text}
}
