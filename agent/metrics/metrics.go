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

// The values of the label of sessions_opened_total.
const (
	openedFromMemory = "memory"
	openedFromLog    = "log"
)

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
	posts       *prometheus.CounterVec

	turns          *prometheus.CounterVec
	turnSeconds    *prometheus.HistogramVec
	turnSteps      prometheus.Histogram
	answerSeconds  prometheus.Histogram
	steps          prometheus.Counter
	sessionsOpened *prometheus.CounterVec

	tools  toolMetrics
	nodes  nodeMetrics
	calls  *prometheus.CounterVec
	tokens *prometheus.CounterVec

	modelSeconds *prometheus.HistogramVec
	firstToken   *prometheus.HistogramVec
	cost         *prometheus.CounterVec
	failovers    *prometheus.CounterVec
	compactions  *prometheus.CounterVec
	spans        *prometheus.CounterVec
}

var _ agent.Observer = (*Metrics)(nil)

// New makes the metrics of a process.
func New(c Config) *Metrics {
	m := &Metrics{
		registry: prometheus.NewPedanticRegistry(),
		log:      c.Log,

		sends:          newCounter("sends_total", "Message parts handed to a platform, by outcome: sent, failed or unknown.", "channel", "result"),
		sendSeconds:    newHistogram("send_seconds", "How long a platform took to accept a message part.", prometheus.ExponentialBuckets(0.01, 2, 13), "channel"),
		ratings:        newCounter("ratings_total", "What people think of answers, by verdict: good or bad.", "channel", "verdict"),
		posts:          newCounter("subscription_posts_total", "Events posted to a subscription, by result: accepted or refused.", "subscription", "result"),
		turns:          newCounter("turns_total", "Turns, by how they ended: done, failed or cancelled.", "result"),
		turnSeconds:    newHistogram("turn_seconds", "How long turns took, by how they ended.", prometheus.ExponentialBuckets(0.25, 2, 14), "result"),
		turnSteps:      prometheus.NewHistogram(histogramOptions("turn_steps", "Requests to a model that a turn needed, answered ones only.", []float64{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96})),
		answerSeconds:  prometheus.NewHistogram(histogramOptions("answer_seconds", "How long people waited for an answer, from sending the message, without the time that the turn waited for people.", prometheus.ExponentialBuckets(0.25, 2, 14))),
		steps:          prometheus.NewCounter(counterOptions("steps_total", "Steps: model calls, each with the tool calls it asked for.")),
		sessionsOpened: newCounter("sessions_opened_total", "Times that work on a session began, by where its log was: memory, or log if it had to be read.", "from"),
		tools:          newToolMetrics(),
		nodes:          newNodeMetrics(),
		calls:          newCounter("model_calls_total", "Calls to a model, by result: ok or the fault.", "model", "result"),
		tokens:         newCounter("model_tokens_total", "Tokens used by a model, by kind: input (not cached), cached or output.", "model", "kind"),

		firstToken:   newHistogram("model_first_token_seconds", "How long it took for the first part of a model's answer to arrive.", prometheus.ExponentialBuckets(0.0625, 2, 13), "model"),
		cost:         newCounter("model_cost_dollars_total", "Cost of calls to a model, where known.", "model"),
		modelSeconds: newHistogram("model_seconds", "How long calls to a model took, answered or not.", prometheus.ExponentialBuckets(0.125, 2, 13), "model"),
		compactions:  newCounter("compactions_total", "Times a conversation was compacted for the model.", "result"),
		failovers:    newCounter("failovers_total", "Requests passed on to another model because the previous one didn't answer.", "from", "to"),
	}
	m.spans = newCounter("trace_spans_total", "Spans of traces, by what became of them: sent, dropped or refused by the collector.", "result")
	for _, result := range []string{"done", "failed", "cancelled"} {
		m.turns.WithLabelValues(result)
	}
	for _, from := range []string{openedFromMemory, openedFromLog} {
		m.sessionsOpened.WithLabelValues(from)
	}
	for _, result := range []string{"sent", "dropped", "refused"} {
		m.spans.WithLabelValues(result)
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts(counterOptions("build_info", "Build information; always 1.")), []string{"version", "revision", "goversion"})
	build.WithLabelValues(c.Build.Version, c.Build.Revision, c.Build.Go).Set(1)
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build,
		m.sends, m.sendSeconds, m.ratings, m.posts, m.turns, m.turnSeconds, m.turnSteps, m.answerSeconds, m.steps, m.sessionsOpened, m.calls, m.tokens, m.modelSeconds, m.firstToken, m.cost, m.failovers, m.compactions, m.spans, m.nodes.calls, m.nodes.seconds,
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
	return prometheus.NewHistogramVec(histogramOptions(name, help, buckets), labels)
}

func histogramOptions(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}
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

// Posted counts an event that was posted to a subscription, and whether it was accepted. Both results are exported as
// 0 from the first one on.
func (m *Metrics) Posted(subscription string, accepted bool) {
	taken, refused := m.posts.WithLabelValues(subscription, "accepted"), m.posts.WithLabelValues(subscription, "refused")
	if accepted {
		taken.Inc()
	} else {
		refused.Inc()
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

// Turn counts a turn that has ended.
func (m *Metrics) Turn(t agent.EndedTurn) {
	m.turns.WithLabelValues(t.Result).Inc()
	if t.Steps > 0 {
		m.turnSteps.Observe(float64(t.Steps))
	}
	if t.Answer > 0 {
		m.answerSeconds.Observe(t.Answer.Seconds())
	}
	m.tools.recoveries.WithLabelValues("recovered").Add(float64(t.Recovered))
	m.tools.recoveries.WithLabelValues("failed").Add(float64(t.Unrecovered))
	m.turnSeconds.WithLabelValues(t.Result).Observe(t.Took.Seconds())
}

// Step counts a step: a model call together with the tool calls that it asked for.
func (m *Metrics) Step() { m.steps.Inc() }

// SessionOpened counts a run of a session, by where its log was.
func (m *Metrics) SessionOpened(fromMemory bool) {
	from := openedFromLog
	if fromMemory {
		from = openedFromMemory
	}
	m.sessionsOpened.WithLabelValues(from).Inc()
}

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

// Spans counts spans of traces that were sent or dropped, or that the collector has refused.
func (m *Metrics) Spans(result string, n int) { m.spans.WithLabelValues(result).Add(float64(n)) }

// Failover counts that the model to was asked because the model from did not answer.
func (m *Metrics) Failover(from, to string) { m.failovers.WithLabelValues(from, to).Inc() }
