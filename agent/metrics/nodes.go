package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// nodeMetrics are the metrics of calls to nodes.
type nodeMetrics struct {
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

func newNodeMetrics() nodeMetrics {
	return nodeMetrics{
		calls:   newCounter("node_calls_total", "Calls for a node, by result: ok, error, unknown (nobody knows what the call did), not_run or away.", "node", "result"),
		seconds: newHistogram("node_call_seconds", "How long calls for a node took, until the outcome was there.", prometheus.ExponentialBuckets(0.01, 4, 10), "node"),
	}
}

// NodeCall counts a call to a node whose outcome was awaited. Only nodes that an owner has accepted get calls.
func (m *Metrics) NodeCall(node, result string, took time.Duration) {
	for _, one := range []string{"ok", "error", "unknown", "not_run", "away"} {
		m.nodes.calls.WithLabelValues(node, one)
	}
	m.nodes.calls.WithLabelValues(node, result).Inc()
	m.nodes.seconds.WithLabelValues(node).Observe(took.Seconds())
}
