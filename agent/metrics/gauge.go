package metrics

import "github.com/prometheus/client_golang/prometheus"

// A Gauge is a metric whose value is looked up at each scrape, or one value for each value of a label.
type Gauge struct {
	Name  string // without the prefix that all metrics have
	Help  string
	Label string // "" if there is only one value
	// Values returns the metric's values by the label's value; if there is no label, the only key is "".
	Values func() map[string]float64
}

// UpValues returns the values of a Gauge: 1 for each name that is up, and 0 for each that isn't.
func UpValues(states map[string]bool) map[string]float64 {
	values := make(map[string]float64, len(states))
	for name, up := range states {
		values[name] = 0
		if up {
			values[name] = 1
		}
	}
	return values
}

// Add makes each scrape look up these gauges, too.
func (m *Metrics) Add(gauges ...Gauge) {
	for _, g := range gauges {
		m.registry.MustRegister(gaugeCollector{g, g.describe()})
	}
}

func (g Gauge) describe() *prometheus.Desc {
	var labels []string
	if g.Label != "" {
		labels = []string{g.Label}
	}
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", g.Name), g.Help, labels, nil)
}

// A gaugeCollector is the collector for a Gauge.
type gaugeCollector struct {
	Gauge
	desc *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (l gaugeCollector) Describe(out chan<- *prometheus.Desc) { out <- l.desc }

// Collect implements prometheus.Collector: it looks up the values and sends them.
func (l gaugeCollector) Collect(out chan<- prometheus.Metric) {
	for value, figure := range l.Values() {
		var labels []string
		if l.Label != "" {
			labels = []string{value}
		}
		out <- prometheus.MustNewConstMetric(l.desc, prometheus.GaugeValue, figure, labels...)
	}
}
