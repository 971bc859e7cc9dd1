package metrics

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley/bus"
)

// Sources hold the figures that Metrics doesn't count itself. Any function may be nil; then its metrics are
// missing.
type Sources struct {
	Fleet Fleet
	// Channels returns the channels of this process. Their queues and sends are exported even if there are none
	// yet.
	Channels func() []string
	// Dropped returns how many events for watchers were lost since the start.
	Dropped func() uint64
	// LostWrites returns how many writes that nobody waited for were lost since the start.
	LostWrites func() uint64
}

// LookUp has each scrape look up the figures of these sources. It is called once, before the first scrape.
func (m *Metrics) LookUp(s Sources) {
	m.registry.MustRegister(&statusCollector{Sources: s, log: m.log, descriptions: describe()})
	if s.Dropped != nil {
		m.registry.MustRegister(prometheus.NewCounterFunc(
			counterOptions("events_dropped_total", "Events dropped because a watcher was too slow."), func() float64 { return float64(s.Dropped()) }))
	}
	if s.LostWrites != nil {
		m.registry.MustRegister(prometheus.NewCounterFunc(
			counterOptions("writes_lost_total", "Background writes that the disk or the database didn't accept."), func() float64 { return float64(s.LostWrites()) }))
	}
}

// Fleet holds the bus and the book, which all processes share. Only one process exports their figures, so that sums
// over the fleet are right.
type Fleet struct {
	// Holder reports whether this process is the one that exports; nil means that it always is.
	Holder func() bool
	Bus    bus.Inspector
	Book   Book
	// Reserved returns how much is reserved for model calls in progress, in micro-dollars.
	Reserved func(ctx context.Context) (int64, error)
	// Subscriptions returns the state of each program to which events are posted.
	Subscriptions func(ctx context.Context) ([]Subscription, error)
}

// A Subscription is the state of a program to which events are posted.
type Subscription struct {
	Name    string
	Waiting int           // events
	Oldest  time.Duration // age of the first of them
	Failing time.Duration // for how long it has accepted nothing although events wait
	Dropped int64         // events, so far
}

// A Book counts the messages that may or may not have been sent, and the approvals and questions that are
// waiting for people.
type Book interface {
	// UnknownSends returns how many messages of each channel may or may not have been
	// sent. Channels without any may be missing.
	UnknownSends(ctx context.Context) (map[string]int, error)
	// OpenAskCount returns the number of asks that people have not answered yet.
	OpenAskCount(ctx context.Context) (int, error)
}

// lookUpTimeout is how long a scrape waits for the bus and the book.
const lookUpTimeout = 5 * time.Second

// statusCollector is a collector that looks up the Fleet's figures at each scrape: how full the queues are, how many
// sends have an unknown outcome, how many asks are open, and how much money is reserved.
type statusCollector struct {
	Sources
	log *slog.Logger
	descriptions
}

// descriptions are the metrics that statusCollector exports.
type descriptions struct {
	waiting, oldest, leased, dead *prometheus.Desc
	unknown, asks                 *prometheus.Desc
	reserved                      *prometheus.Desc
	queued, queuedOldest          *prometheus.Desc
	failing, lost                 *prometheus.Desc
}

func describe() descriptions {
	of := func(name, help, label string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, []string{label}, nil)
	}
	return descriptions{
		waiting: of("bus_waiting", "Messages that no worker has started on yet, due or not.", "topic"),
		oldest:  of("bus_oldest_seconds", "Age of the oldest message that's waiting or being worked on.", "topic"),
		leased:  of("bus_leased", "Mailboxes that are being worked on.", "topic"),
		dead:    of("bus_dead", "Dead letters.", "topic"),
		unknown: of("sends_unknown", "Messages that may or may not have been sent.", "channel"),
		asks: prometheus.NewDesc(prometheus.BuildFQName(namespace, "", "asks_open"),
			"Requests that people haven't answered yet.", nil, nil),
		reserved: prometheus.NewDesc(prometheus.BuildFQName(namespace, "", "reserved_dollars"),
			"Money set aside for model calls in progress, and not yet spent.", nil, nil),
		queued:       of("subscription_waiting", "Events that a subscription hasn't accepted yet.", "subscription"),
		queuedOldest: of("subscription_oldest_seconds", "Age of the oldest event that a subscription hasn't accepted yet.", "subscription"),
		failing:      of("subscription_failing_seconds", "How long a subscription has refused everything; 0 if it accepts events.", "subscription"),
		lost:         of("subscription_dropped_total", "Events dropped because a subscription didn't accept them.", "subscription"),
	}
}

// Describe implements prometheus.Collector: it sends the descriptions of all its metrics.
func (s *statusCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.waiting, s.oldest, s.leased, s.dead, s.unknown, s.asks, s.reserved, s.queued, s.queuedOldest, s.failing, s.lost} {
		out <- d
	}
}

// Collect implements prometheus.Collector: it looks up the values and sends them, if this process is the one that
// exports. It leaves out values that can't be looked up in time.
func (s *statusCollector) Collect(out chan<- prometheus.Metric) {
	gauge := exporter(func(d *prometheus.Desc, v float64, label string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, label)
	})
	var channels []string
	if s.Channels != nil {
		channels = s.Channels()
	}
	if s.Fleet.Holder != nil && !s.Fleet.Holder() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookUpTimeout)
	defer cancel()
	if s.Fleet.Bus != nil {
		s.exportTopics(ctx, channels, gauge)
	}
	if s.Fleet.Reserved != nil {
		if micro, err := s.Fleet.Reserved(ctx); err != nil {
			s.log.Warn("what is set aside could not be read for a scrape", slog.Any("error", err))
		} else {
			out <- prometheus.MustNewConstMetric(s.reserved, prometheus.GaugeValue, float64(micro)/1e6)
		}
	}
	if s.Fleet.Subscriptions != nil {
		s.exportSubscriptions(ctx, out)
	}
	if s.Fleet.Book != nil {
		s.exportSends(ctx, channels, gauge)
		if n, err := s.Fleet.Book.OpenAskCount(ctx); err != nil {
			s.log.Warn("open requests could not be counted for a scrape", slog.Any("error", err))
		} else {
			out <- prometheus.MustNewConstMetric(s.asks, prometheus.GaugeValue, float64(n))
		}
	}
}

// An exporter function exports one value of a metric that has a label.
type exporter func(d *prometheus.Desc, v float64, label string)

// exportTopics exports the queues of every topic that exists, and of those that the configured channels will
// have, because an alert on a missing series would never fire.
func (s *statusCollector) exportTopics(ctx context.Context, channels []string, gauge exporter) {
	topics, err := s.Fleet.Bus.Topics(ctx)
	if err != nil {
		s.log.Warn("topics could not be listed for a scrape", slog.Any("error", err))
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
			s.log.Warn("a topic could not be counted for a scrape", slog.String("topic", string(topic)), slog.Any("error", err))
			continue
		}
		gauge(s.waiting, float64(d.Waiting), string(topic))
		gauge(s.oldest, d.Oldest.Seconds(), string(topic))
		gauge(s.leased, float64(d.Leased), string(topic))
		gauge(s.dead, float64(d.Dead), string(topic))
	}
}

// exportSends exports for each channel how many messages may or may not have been sent, even if there are none.
func (s *statusCollector) exportSends(ctx context.Context, channels []string, gauge exporter) {
	unknown, err := s.Fleet.Book.UnknownSends(ctx)
	if err != nil {
		s.log.Warn("unknown sends could not be counted for a scrape", slog.Any("error", err))
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

// exportSubscriptions exports for each subscription how many events wait, and how long it has refused them.
func (s *statusCollector) exportSubscriptions(ctx context.Context, out chan<- prometheus.Metric) {
	all, err := s.Fleet.Subscriptions(ctx)
	if err != nil {
		s.log.Warn("events for subscriptions could not be counted for a scrape", slog.Any("error", err))
	}
	for _, one := range all {
		out <- prometheus.MustNewConstMetric(s.queued, prometheus.GaugeValue, float64(one.Waiting), one.Name)
		out <- prometheus.MustNewConstMetric(s.queuedOldest, prometheus.GaugeValue, one.Oldest.Seconds(), one.Name)
		out <- prometheus.MustNewConstMetric(s.failing, prometheus.GaugeValue, one.Failing.Seconds(), one.Name)
		out <- prometheus.MustNewConstMetric(s.lost, prometheus.CounterValue, float64(one.Dropped), one.Name)
	}
}
