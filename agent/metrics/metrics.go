// Package metrics counts what happens, for Prometheus.
//
// Metrics counts events as they happen: it is the agent's Observer, and Send returns the function that a
// Dispatcher calls for each send. Each scrape looks up the state of queues from the Sources that were passed to
// LookUp, and the gauges that were added. Labels contain names from the configuration and from the program,
// never a text, a person or a chat.
//
// metrics.go counts turns, calls and sends; tools.go and toolcounts.go count tools; status.go looks up queues
// at each scrape; gauge.go exports what other parts add.
package metrics

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parley/agent"
	"parley/agent/failover"
)

const namespace = "parley"

// Config holds what New needs.
type Config struct {
	Build Build
	Log   *slog.Logger
}

// Build says which version of the source the program was built from.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
}

// Metrics counts what happens in this process. It is an agent.Observer.
type Metrics struct {
	registry *prometheus.Registry
	log      *slog.Logger

	sends       *prometheus.CounterVec
	sendSeconds *prometheus.HistogramVec
	ratings     *prometheus.CounterVec

	turns       *prometheus.CounterVec
	turnSeconds *prometheus.HistogramVec
	steps       prometheus.Counter

	tools  toolMetrics
	calls  *prometheus.CounterVec
	tokens *prometheus.CounterVec

	modelSeconds *prometheus.HistogramVec
	firstToken   *prometheus.HistogramVec
	cost         *prometheus.CounterVec
	failovers    *prometheus.CounterVec
	compactions  *prometheus.CounterVec
}

var _ agent.Observer = (*Metrics)(nil)

// New makes the metrics of a process.
func New(c Config) *Metrics {
	m := &Metrics{
		registry: prometheus.NewPedanticRegistry(),
		log:      c.Log,

		sends:       newCounter("sends_total", "Message parts handed to a platform, by outcome: sent, failed or unknown.", "channel", "result"),
		sendSeconds: newHistogram("send_seconds", "How long a platform took to accept a message part.", prometheus.ExponentialBuckets(0.01, 2, 13), "channel"),
		ratings:     newCounter("ratings_total", "What people think of answers, by verdict: good or bad.", "channel", "verdict"),
		turns:       newCounter("turns_total", "Turns, by how they ended: done, failed or cancelled.", "result"),
		turnSeconds: newHistogram("turn_seconds", "How long turns took, by how they ended.", prometheus.ExponentialBuckets(0.25, 2, 14), "result"),
		steps:       prometheus.NewCounter(counterOptions("steps_total", "Steps: model calls, each with the tool calls it asked for.")),
		tools:       newToolMetrics(),
		calls:       newCounter("model_calls_total", "Calls to a model, by result: ok or the fault.", "model", "result"),
		tokens:      newCounter("model_tokens_total", "Tokens used by a model, by kind: input (not cached), cached or output.", "model", "kind"),

		firstToken:   newHistogram("model_first_token_seconds", "How long it took for the first part of a model's answer to arrive.", prometheus.ExponentialBuckets(0.0625, 2, 13), "model"),
		cost:         newCounter("model_cost_dollars_total", "Cost of calls to a model, where known.", "model"),
		modelSeconds: newHistogram("model_seconds", "How long calls to a model took, answered or not.", prometheus.ExponentialBuckets(0.125, 2, 13), "model"),
		compactions:  newCounter("compactions_total", "Times a conversation was compacted for the model.", "result"),
		failovers:    newCounter("failovers_total", "Requests passed on to another model because the previous one didn't answer.", "from", "to"),
	}
	for _, result := range []string{"done", "failed", "cancelled"} {
		m.turns.WithLabelValues(result)
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts(counterOptions("build_info", "Build information; always 1.")), []string{"version", "revision", "goversion"})
	build.WithLabelValues(c.Build.Version, c.Build.Revision, c.Build.Go).Set(1)
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build,
		m.sends, m.sendSeconds, m.ratings, m.turns, m.turnSeconds, m.steps, m.calls, m.tokens, m.modelSeconds, m.firstToken, m.cost, m.failovers, m.compactions,
	)
	m.tools.register(m.registry)
	return m
}

func counterOptions(name, help string) prometheus.CounterOpts {
	return prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}
}

func newCounter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(counterOptions(name, help), labels)
}

func newHistogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
}

// Handler serves the metrics to Prometheus. It leaves out those that can't be looked up at the moment.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, ErrorLog: errorLog{m.log}})
}

// An errorLog writes the errors of the HTTP handler to the log.
type errorLog struct{ log *slog.Logger }

// Println logs an error of a scrape.
func (l errorLog) Println(v ...any) { l.log.Warn("scrape is incomplete", slog.Any("error", v)) }

// Send returns the function that a Dispatcher calls for each send on a channel. All results are exported as 0
// from the start, because Prometheus can compute a rate only if it has seen a first value.
func (m *Metrics) Send(channel string) func(result string, took time.Duration) {
	for _, result := range []string{"sent", "failed", "unknown"} {
		m.sends.WithLabelValues(channel, result)
	}
	took := m.sendSeconds.WithLabelValues(channel)
	return func(result string, d time.Duration) {
		m.sends.WithLabelValues(channel, result).Inc()
		took.Observe(d.Seconds())
	}
}

// RatingCounter returns the function that counts people's ratings of answers on a channel.
func (m *Metrics) RatingCounter(channel string) func(good bool) {
	good, bad := m.ratings.WithLabelValues(channel, "good"), m.ratings.WithLabelValues(channel, "bad")
	return func(verdict bool) {
		if verdict {
			good.Inc()
			return
		}
		bad.Inc()
	}
}

// Turn counts a turn that ended with that result and took d.
func (m *Metrics) Turn(result string, d time.Duration) {
	m.turns.WithLabelValues(result).Inc()
	m.turnSeconds.WithLabelValues(result).Observe(d.Seconds())
}

// Step counts a step: a model call together with the tool calls that it asked for.
func (m *Metrics) Step() { m.steps.Inc() }

// Model counts one request to a model.
func (m *Metrics) Model(try failover.Try) {
	model, use := try.Model, try.Usage
	m.calls.WithLabelValues(model, try.Result).Inc()
	m.modelSeconds.WithLabelValues(model).Observe(try.Took.Seconds())
	if try.First > 0 {
		m.firstToken.WithLabelValues(model).Observe(try.First.Seconds())
	}
	if use.Priced {
		m.cost.WithLabelValues(model).Add(float64(max(0, use.Cost)) / 1e6)
	}
	for kind, n := range map[string]int64{"input": use.Input - use.Cached, "cached": use.Cached, "output": use.Output} {
		m.tokens.WithLabelValues(model, kind).Add(float64(max(0, n)))
	}
}

// Compaction counts an attempt to shorten the past of a conversation, by its result.
func (m *Metrics) Compaction(result string) { m.compactions.WithLabelValues(result).Inc() }

// Failover counts that the model to was asked because the model from did not answer.
func (m *Metrics) Failover(from, to string) { m.failovers.WithLabelValues(from, to).Inc() }
