package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// toolMetrics are the metrics of tool calls.
type toolMetrics struct {
	calls            *prometheus.CounterVec
	seconds          *prometheus.HistogramVec
	lastError        *prometheus.GaugeVec
	batches          prometheus.Counter
	maxParallel      *maxGauge
	savedSeconds     prometheus.Counter
	kills            *prometheus.CounterVec
	asks             *prometheus.CounterVec
	tasks            *prometheus.CounterVec
	schedules        *prometheus.CounterVec
	lostAuditRecords prometheus.Counter
	// recoveries counts failed calls by whether a later one succeeded.
	recoveries *prometheus.CounterVec
	judged     *prometheus.CounterVec
	readAloud  *prometheus.CounterVec
	counts     *toolCounts // the same counts, for people to read
}

func newToolMetrics() toolMetrics {
	asks := newCounter("asks_total", "Requests to people that have ended, by outcome: approved, session, denied, answered, expired or withdrawn.", "result")
	for _, result := range []string{"approved", "session", "denied", "answered", "expired", "withdrawn"} {
		asks.WithLabelValues(result)
	}
	schedules := newCounter("schedules_fired_total", "Times schedules were due: fired, no_access (the person isn't allowed to talk to the bot) or missed.", "result")
	for _, result := range []string{"fired", "no_access", "missed"} {
		schedules.WithLabelValues(result)
	}
	tasks := newCounter("tasks_total", "Sub-agent tasks that have ended, by outcome: done, failed, cancelled, or lost with their session.", "result")
	for _, result := range []string{"done", "failed", "cancelled", "lost"} {
		tasks.WithLabelValues(result)
	}
	judged := newCounter("guard_judgements_total", "Tool calls that a model was asked about, by verdict: allow, ask or deny, or why there was none: timeout, failed, unreadable, over_budget, too_long or no_model.", "verdict")
	for _, verdict := range []string{"allow", "ask", "deny", "timeout", "failed", "unreadable", "over_budget", "too_long", "no_model"} {
		judged.WithLabelValues(verdict)
	}
	recoveries := newCounter("tool_recoveries_total", "Calls of tools that failed, in turns that have ended: recovered (another call of the same tool succeeded in a later step of the turn) or failed (none did). Calls that a rule, a rate or a person refused don't count.", "result")
	for _, result := range []string{"recovered", "failed"} {
		recoveries.WithLabelValues(result)
	}
	aloud := newCounter("answers_read_aloud_total", "Answers that were to be read aloud, by result: ok, or why they weren't: failed, refused, timeout, over_budget, no_room, given_up or stopped.", "result")
	for _, result := range []string{"ok", "failed", "refused", "timeout", "over_budget", "no_room", "given_up", "stopped"} {
		aloud.WithLabelValues(result)
	}
	return toolMetrics{
		readAloud: aloud, recoveries: recoveries,
		asks: asks, schedules: schedules, tasks: tasks, judged: judged,
		calls:   newCounter("tool_calls_total", "Calls to a tool, by result: ok or the error code.", "tool", "result"),
		seconds: newHistogram("tool_seconds", "How long calls to a tool took.", prometheus.ExponentialBuckets(0.001, 4, 10), "tool"),
		lastError: prometheus.NewGaugeVec(prometheus.GaugeOpts(
			counterOptions("tool_last_error_timestamp_seconds", "When a call to a tool last failed.")), []string{"tool"}),
		batches:          prometheus.NewCounter(counterOptions("tool_batches_total", "Groups of calls that ran side by side.")),
		maxParallel:      newMaxGauge("tool_batch_concurrency_max", "The most calls that ran side by side since the start."),
		savedSeconds:     prometheus.NewCounter(counterOptions("tool_batch_saved_seconds_total", "Time saved by running calls side by side instead of one after another.")),
		kills:            newCounter("sandbox_kills_total", "Commands that were killed before they finished, by the limit they hit.", "reason"),
		counts:           &toolCounts{tool: map[string]ToolCount{}},
		lostAuditRecords: prometheus.NewCounter(counterOptions("audit_lost_total", "Actions that couldn't be recorded in the audit log.")),
	}
}

func (t toolMetrics) register(r prometheus.Registerer) {
	r.MustRegister(t.calls, t.seconds, t.lastError, t.batches, t.maxParallel, t.savedSeconds, t.kills, t.asks, t.schedules, t.tasks, t.lostAuditRecords, t.judged, t.recoveries, t.readAloud)
}

// Tool counts a call of a tool.
func (m *Metrics) Tool(tool, result string, d time.Duration) {
	m.tools.calls.WithLabelValues(tool, result).Inc()
	m.tools.seconds.WithLabelValues(tool).Observe(d.Seconds())
	m.tools.counts.add(tool, result, d)
	if result != "ok" {
		m.tools.lastError.WithLabelValues(tool).SetToCurrentTime()
	}
}

// AskEnded counts an approval or a question that has ended, by how it ended.
func (m *Metrics) AskEnded(result string) { m.tools.asks.WithLabelValues(result).Inc() }

// TaskEnded counts a task of a sub-agent that has ended, by how it ended.
func (m *Metrics) TaskEnded(result string) { m.tools.tasks.WithLabelValues(result).Inc() }

// ScheduleFired counts n slots of schedules that were due, by what happened to them.
func (m *Metrics) ScheduleFired(result string, n int) {
	m.tools.schedules.WithLabelValues(result).Add(float64(n))
}

// AuditLost counts an action whose record the audit could not store.
func (m *Metrics) AuditLost() { m.tools.lostAuditRecords.Inc() }

// Judged counts a tool call that a model was asked about.
func (m *Metrics) Judged(verdict string) { m.tools.judged.WithLabelValues(verdict).Inc() }

// ReadAloud counts an answer that was to be read aloud, by the result.
func (m *Metrics) ReadAloud(result string) { m.tools.readAloud.WithLabelValues(result).Inc() }

// Batch counts a group of tool calls that ran in parallel: how many ran at once, and how much time that saved.
func (m *Metrics) Batch(concurrency int, saved time.Duration) {
	m.tools.batches.Inc()
	m.tools.maxParallel.raise(float64(concurrency))
	m.tools.savedSeconds.Add(max(0, saved.Seconds()))
}

// A maxGauge is a gauge that keeps the highest value it was given.
type maxGauge struct {
	prometheus.Gauge
	mu      sync.Mutex
	highest float64
}

func newMaxGauge(name, help string) *maxGauge {
	return &maxGauge{Gauge: prometheus.NewGauge(prometheus.GaugeOpts(counterOptions(name, help)))}
}

func (h *maxGauge) raise(to float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if to > h.highest {
		h.highest = to
		h.Set(to)
	}
}

// SandboxKill counts a command that the sandbox has ended, by the reason.
func (m *Metrics) SandboxKill(reason string) { m.tools.kills.WithLabelValues(reason).Inc() }
