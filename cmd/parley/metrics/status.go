package metrics

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley/bus"
)

// Fleet holds the bus and the book, which all processes share. Only one process exports what is
// counted there, so that sums over the fleet are right.
type Fleet struct {
	// Holder reports whether this process is the one that exports; nil means always.
	Holder func() bool
	Bus    bus.Inspector
	Book   Book
}

// A Book counts the messages of which nobody knows whether they were sent, and the approvals and
// questions for which people are awaited.
type Book interface {
	// UnknownSends returns how many messages of each channel may or may not have been
	// sent. Channels without any may be missing.
	UnknownSends(ctx context.Context) (map[string]int, error)
	// OpenAskCount returns the number of requests that people have not answered yet.
	OpenAskCount(ctx context.Context) (int, error)
}

// lookUpTimeout is how long a scrape waits for the bus and the book.
const lookUpTimeout = 5 * time.Second

// status is a collector that looks up, at each scrape, how full the queues are, which
// channels are connected, and how many sends have an unknown outcome.
type status struct {
	Config
	descriptions
}

// descriptions are the metrics that status exports.
type descriptions struct {
	waiting, oldest, leased, dead *prometheus.Desc
	unknown, up, servers, asks    *prometheus.Desc
}

func describe() descriptions {
	of := func(name, help, label string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, []string{label}, nil)
	}
	return descriptions{
		waiting: of("bus_waiting", "Messages that nobody works on, due or not.", "topic"),
		oldest:  of("bus_oldest_seconds", "Age of the oldest message that waits or is worked on.", "topic"),
		leased:  of("bus_leased", "Mailboxes that are worked on.", "topic"),
		dead:    of("bus_dead", "Dead letters.", "topic"),
		unknown: of("sends_unknown", "Messages of which nobody can tell whether they were sent.", "channel"),
		up:      of("channel_up", "Whether the channel is connected.", "channel"),
		servers: of("mcp_up", "Whether the MCP server was reached when that was last tried.", "server"),
		asks: prometheus.NewDesc(prometheus.BuildFQName(namespace, "", "asks_open"),
			"Requests that people have not answered yet.", nil, nil),
	}
}

// Describe implements prometheus.Collector: it sends the descriptions of all metrics of
// status.
func (s *status) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.waiting, s.oldest, s.leased, s.dead, s.unknown, s.up, s.servers, s.asks} {
		out <- d
	}
}

// Collect implements prometheus.Collector: it looks up the values and sends them.
func (s *status) Collect(out chan<- prometheus.Metric) {
	gauge := gauges(func(d *prometheus.Desc, v float64, label string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, label)
	})
	var channels []string
	if s.Channels != nil {
		channels = gauge.states(s.up, s.Channels())
	}
	if s.Servers != nil {
		gauge.states(s.servers, s.Servers())
	}
	if s.Fleet.Holder != nil && !s.Fleet.Holder() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookUpTimeout)
	defer cancel()
	if s.Fleet.Bus != nil {
		s.exportTopics(ctx, channels, gauge)
	}
	if s.Fleet.Book != nil {
		s.exportSends(ctx, channels, gauge)
		if n, err := s.Fleet.Book.OpenAskCount(ctx); err != nil {
			s.Log.Warn("open requests could not be counted for a scrape", slog.Any("error", err))
		} else {
			out <- prometheus.MustNewConstMetric(s.asks, prometheus.GaugeValue, float64(n))
		}
	}
}

// A gauges is a function that exports one value of a metric, with a label if that is not "".
type gauges func(d *prometheus.Desc, v float64, label string)

// states exports for each name 1 if it is up and 0 if it is not, and returns the names.
func (g gauges) states(d *prometheus.Desc, all map[string]bool) (names []string) {
	for name, up := range all {
		names = append(names, name)
		v := 0.0
		if up {
			v = 1
		}
		g(d, v, name)
	}
	return names
}

// exportTopics exports the queues of every topic that exists, and also of those that the
// configured channels will have, because an alert on a series that is missing would never fire.
func (s *status) exportTopics(ctx context.Context, channels []string, gauge gauges) {
	topics, err := s.Fleet.Bus.Topics(ctx)
	if err != nil {
		s.Log.Warn("topics could not be listed for a scrape", slog.Any("error", err))
		return
	}
	topics = append(topics, bus.InboundTopic)
	for _, name := range channels {
		topics = append(topics, bus.OutboundTopic(name))
	}
	slices.Sort(topics)
	for _, topic := range slices.Compact(topics) {
		d, err := s.Fleet.Bus.Depth(ctx, topic)
		if err != nil {
			s.Log.Warn("a topic could not be counted for a scrape", slog.String("topic", string(topic)), slog.Any("error", err))
			continue
		}
		gauge(s.waiting, float64(d.Waiting), string(topic))
		gauge(s.oldest, d.Oldest.Seconds(), string(topic))
		gauge(s.leased, float64(d.Leased), string(topic))
		gauge(s.dead, float64(d.Dead), string(topic))
	}
}

// exportSends exports for each channel how many messages may or may not have been sent, even if
// there are none.
func (s *status) exportSends(ctx context.Context, channels []string, gauge gauges) {
	unknown, err := s.Fleet.Book.UnknownSends(ctx)
	if err != nil {
		s.Log.Warn("unknown sends could not be counted for a scrape", slog.Any("error", err))
		return
	}
	for name := range unknown {
		channels = append(channels, name)
	}
	slices.Sort(channels)
	for _, name := range slices.Compact(channels) {
		gauge(s.unknown, float64(unknown[name]), name)
	}
}
