package metrics

import "github.com/prometheus/client_golang/prometheus"

// A Gauge is a figure that is looked up at each scrape, or one figure for each value of a label.
type Gauge struct {
	Name  string // without the prefix that all metrics have
	Help  string
	Label string // "" if there is one figure alone
	// Values returns the figures by the value of the label; the one figure alone by "".
	Values func() map[string]float64
}

// Up returns 1 for what is up, and 0 for what is not, as the figures of a Gauge.
func Up(states map[string]bool) map[string]float64 {
	values := make(map[string]float64, len(states))
	for name, up := range states {
		values[name] = 0
		if up {
			values[name] = 1
		}
	}
	return values
}

// Add has each scrape look up these gauges, too.
func (m *Metrics) Add(gauges ...Gauge) {
	for _, g := range gauges {
		m.registry.MustRegister(lookUp{g, g.describe()})
	}
}

func (g Gauge) describe() *prometheus.Desc {
	var labels []string
	if g.Label != "" {
		labels = []string{g.Label}
	}
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", g.Name), g.Help, labels, nil)
}

// A lookUp is the collector of a Gauge.
type lookUp struct {
	Gauge
	desc *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (l lookUp) Describe(out chan<- *prometheus.Desc) { out <- l.desc }

// Collect implements prometheus.Collector: it looks up the figures and sends them.
func (l lookUp) Collect(out chan<- prometheus.Metric) {
	for value, figure := range l.Values() {
		var labels []string
		if l.Label != "" {
			labels = []string{value}
		}
		out <- prometheus.MustNewConstMetric(l.desc, prometheus.GaugeValue, figure, labels...)
	}
}
