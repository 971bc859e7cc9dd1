package metrics_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"parley/agent"
	"parley/agent/failover"
	"parley/agent/llm"
	"parley/agent/metrics"
	"parley/bus"
	"parley/bus/sqlitebus"
)

// bookWithUnknownSends is a book with that many unknown sends of each channel.
type bookWithUnknownSends map[string]int

func (u bookWithUnknownSends) OpenAskCount(context.Context) (int, error) { return len(u), nil }

func (u bookWithUnknownSends) UnknownSends(context.Context) (map[string]int, error) {
	if u == nil {
		return nil, errors.New("the book is closed")
	}
	return u, nil
}

func openBus(t *testing.T) *sqlitebus.Bus {
	t.Helper()
	b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(t.TempDir(), "bus.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// subscriptions returns two programs to which events are posted: one that refuses them, and one without events.
func subscriptions(context.Context) ([]metrics.Subscription, error) {
	return []metrics.Subscription{{Name: "tracker", Waiting: 7, Oldest: 90 * time.Second, Failing: time.Minute, Dropped: 1005}, {Name: "quiet"}}, nil
}

// newUsedMetrics returns the metrics of a process in which events of each kind have happened.
func newUsedMetrics(t *testing.T, fleet metrics.Fleet) *metrics.Metrics {
	t.Helper()
	m := metrics.New(metrics.Config{Build: metrics.Build{Version: "v1", Revision: "abc", Go: "go1.26"}, Log: slog.New(slog.DiscardHandler)})
	m.LookUp(metrics.Sources{
		Fleet:      fleet,
		Channels:   func() []string { return []string{"slack", "telegram"} },
		Dropped:    func() uint64 { return 3 },
		LostWrites: func() uint64 { return 7 },
	})
	m.Add(metrics.Gauge{Name: "channel_up", Help: "Whether the channel is connected.", Label: "channel", Values: func() map[string]float64 {
		return metrics.UpValues(map[string]bool{"slack": true, "telegram": false})
	}}, metrics.Gauge{Name: "node_up", Help: "Whether the node has a link.", Label: "node", Values: func() map[string]float64 {
		return map[string]float64{"pi": 1}
	}}, metrics.Gauge{Name: "jobs_running", Help: "Commands.", Values: func() map[string]float64 { return map[string]float64{"": 2} }})
	slack := m.Send("slack")
	slack("sent", 20*time.Millisecond)
	slack("sent", time.Second)
	slack("unknown", time.Minute)
	m.Send("telegram")
	m.Posted("tracker", true)
	m.Posted("tracker", true)
	m.Posted("dead", false)
	m.Turn(agent.EndedTurn{Result: "done", Took: 3 * time.Second, Answer: 5 * time.Second, Steps: 2, Recovered: 2, Unrecovered: 1})
	m.Turn(agent.EndedTurn{Result: "failed", Took: time.Second}) // refused, without a request to a model
	m.SessionOpened(true)
	m.SessionOpened(true)
	m.SessionOpened(false)
	m.Step()
	m.Step()
	m.Tool("read_file", "ok", 2*time.Millisecond)
	m.Tool("unknown", "not_found", time.Millisecond)
	m.NodeCall("pi", "ok", 2*time.Second)
	m.Batch(3, 2*time.Second)
	m.Batch(2, -time.Second)
	m.Model(failover.Try{Model: "gpt-5-mini", Result: "ok", Usage: llm.Usage{Input: 1000, Cached: 400, Output: 50, Cost: 350, Priced: true}, Took: time.Second, First: time.Millisecond})
	return m
}

func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	server := httptest.NewServer(m.Handler())
	defer server.Close()
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", resp.Status, body)
	}
	return string(body)
}

func mustHave(t *testing.T, page string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(page, "\n"+line+"\n") {
			name, _, _ := strings.Cut(line, "{")
			t.Errorf("there is no %q, but\n%s", line, strings.Join(regexp.MustCompile(`(?m)^`+name+`.*$`).FindAllString(page, -1), "\n"))
		}
	}
}

func TestEventsAreCounted(t *testing.T) {
	b := openBus(t)
	for _, id := range []string{"1", "2"} {
		if err := b.Publish(t.Context(), bus.OutboundTopic("slack"), bus.Message{ID: id, Key: "slack:C1", Body: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	page := scrape(t, newUsedMetrics(t, metrics.Fleet{Bus: b, Book: bookWithUnknownSends{"slack": 1}, Subscriptions: subscriptions}))
	mustHave(t, page,
		`parley_bus_waiting{topic="outbound/slack"} 2`, `parley_bus_waiting{topic="outbound/telegram"} 0`, `parley_bus_waiting{topic="inbound"} 0`,
		`parley_bus_leased{topic="outbound/slack"} 0`, `parley_bus_dead{topic="outbound/slack"} 0`,
		`parley_channel_up{channel="slack"} 1`, `parley_channel_up{channel="telegram"} 0`, `parley_jobs_running 2`,
		`parley_sends_total{channel="slack",result="sent"} 2`, `parley_sends_total{channel="slack",result="unknown"} 1`,
		`parley_sends_total{channel="slack",result="failed"} 0`, `parley_sends_total{channel="telegram",result="sent"} 0`,
		`parley_sends_unknown{channel="slack"} 1`, `parley_sends_unknown{channel="telegram"} 0`,
		`parley_send_seconds_count{channel="slack"} 3`, `parley_send_seconds_bucket{channel="slack",le="0.02"} 1`,
		`parley_turns_total{result="done"} 1`, `parley_turns_total{result="failed"} 1`, `parley_turn_seconds_count{result="done"} 1`,
		`parley_turn_steps_count 1`, `parley_sessions_opened_total{from="memory"} 2`, `parley_sessions_opened_total{from="log"} 1`, `parley_turn_steps_sum 2`, `parley_answer_seconds_count 1`, `parley_answer_seconds_sum 5`,
		`parley_tool_recoveries_total{result="recovered"} 2`, `parley_tool_recoveries_total{result="failed"} 1`,
		`parley_steps_total 2`, `parley_tool_calls_total{result="ok",tool="read_file"} 1`, `parley_tool_calls_total{result="not_found",tool="unknown"} 1`,
		`parley_tool_seconds_count{tool="read_file"} 1`, `parley_tool_batches_total 2`, `parley_tool_batch_concurrency_max 3`,
		`parley_tool_batch_saved_seconds_total 2`, `parley_model_calls_total{model="gpt-5-mini",result="ok"} 1`,
		`parley_model_tokens_total{kind="input",model="gpt-5-mini"} 600`, `parley_model_tokens_total{kind="cached",model="gpt-5-mini"} 400`,
		`parley_model_tokens_total{kind="output",model="gpt-5-mini"} 50`, `parley_model_cost_dollars_total{model="gpt-5-mini"} 0.00035`, `parley_model_first_token_seconds_count{model="gpt-5-mini"} 1`,
		`parley_node_calls_total{node="pi",result="ok"} 1`, `parley_node_calls_total{node="pi",result="unknown"} 0`, `parley_node_call_seconds_count{node="pi"} 1`,
		`parley_events_dropped_total 3`,
		`parley_subscription_waiting{subscription="tracker"} 7`, `parley_subscription_oldest_seconds{subscription="tracker"} 90`,
		`parley_subscription_failing_seconds{subscription="tracker"} 60`, `parley_subscription_dropped_total{subscription="tracker"} 1005`,
		`parley_subscription_waiting{subscription="quiet"} 0`, `parley_subscription_oldest_seconds{subscription="quiet"} 0`,
		`parley_subscription_failing_seconds{subscription="quiet"} 0`, `parley_subscription_dropped_total{subscription="quiet"} 0`,
		`parley_subscription_posts_total{result="accepted",subscription="tracker"} 2`, `parley_subscription_posts_total{result="refused",subscription="tracker"} 0`,
		`parley_subscription_posts_total{result="refused",subscription="dead"} 1`, `parley_subscription_posts_total{result="accepted",subscription="dead"} 0`,
		`parley_build_info{goversion="go1.26",revision="abc",version="v1"} 1`,
	)
	for _, name := range []string{"parley_tool_last_error_timestamp_seconds{tool=\"unknown\"}", "parley_bus_oldest_seconds{topic=\"outbound/slack\"}", "go_goroutines", "process_cpu_seconds_total"} {
		if !strings.Contains(page, "\n"+name+" ") {
			t.Errorf("there is no %s", name)
		}
	}
}

// One process exports the figures of the fleet, and a value that cannot be looked up doesn't affect the others.
func TestOneProcessExportsForTheFleet(t *testing.T) {
	closed := openBus(t)
	closed.Close()
	for name, fleet := range map[string]metrics.Fleet{
		"another": {Holder: func() bool { return false }, Bus: openBus(t), Book: bookWithUnknownSends{"slack": 1}, Subscriptions: subscriptions},
		"nobody":  {Bus: closed, Book: bookWithUnknownSends(nil), Subscriptions: func(context.Context) ([]metrics.Subscription, error) { return nil, errors.New("no database") }},
		"nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			page := scrape(t, newUsedMetrics(t, fleet))
			if strings.Contains(page, "parley_bus_") || strings.Contains(page, "parley_sends_unknown") || strings.Contains(page, "parley_subscription_waiting") {
				t.Errorf("it tells what it does not know:\n%s", page)
			}
			mustHave(t, page, `parley_channel_up{channel="slack"} 1`, `parley_steps_total 2`)
		})
	}
}

// Names follow Prometheus's conventions, without exceptions.
func TestNames(t *testing.T) {
	page := scrape(t, newUsedMetrics(t, metrics.Fleet{Bus: openBus(t), Book: bookWithUnknownSends{}, Subscriptions: subscriptions}))
	problems, err := promlint.New(strings.NewReader(page)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "parley_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// All metrics that dashboards and rules use exist.
func TestEveryPromisedName(t *testing.T) {
	got := exposedNames(t)
	for name := range strings.FieldsSeq(`
		bus_waiting bus_oldest_seconds bus_leased bus_dead channel_up sends_total sends_unknown send_seconds
		turns_total turn_seconds turn_steps answer_seconds tool_recoveries_total steps_total sessions_opened_total tool_calls_total tool_seconds tool_batches_total tool_batch_concurrency_max
		tool_batch_saved_seconds_total tool_last_error_timestamp_seconds model_calls_total model_tokens_total
		events_dropped_total writes_lost_total audit_lost_total build_info subscription_waiting subscription_oldest_seconds
		subscription_failing_seconds subscription_dropped_total subscription_posts_total node_calls_total node_call_seconds`) {
		if !slices.Contains(got, "parley_"+name) {
			t.Errorf("there is no parley_%s", name)
		}
	}
}

// exposedNames returns the names of all metrics.
func exposedNames(t *testing.T) []string {
	t.Helper()
	var names []string
	page := scrape(t, newUsedMetrics(t, metrics.Fleet{Bus: openBus(t), Book: bookWithUnknownSends{"slack": 1}, Subscriptions: subscriptions}))
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(page, -1) {
		names = append(names, m[1])
	}
	return names
}

// An alerting rule about a metric that does not exist would never fire.
func TestAlertsAreOverNamesThatExist(t *testing.T) {
	file, err := os.ReadFile("../../deploy/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	names, used := exposedNames(t), 0
	for _, expr := range regexp.MustCompile(`(?m)^\s+expr: (.+)$`).FindAllStringSubmatch(string(file), -1) {
		for _, name := range regexp.MustCompile(`\b(parley|process|go)_\w+`).FindAllString(expr[1], -1) {
			used++
			family := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			if !slices.Contains(names, name) && !slices.Contains(names, family) {
				t.Errorf("%s is in no metric; the rule is %s", name, expr[1])
			}
		}
	}
	rules := strings.Count(string(file), "- alert: ")
	if exprs := strings.Count(string(file), "expr: "); rules < 8 || exprs != rules || used < rules {
		t.Errorf("%d alerts with %d expressions over %d names: are they all read?", rules, exprs, used)
	}
	for _, part := range []string{"severity: ", "summary: ", "description: "} {
		if n := strings.Count(string(file), part); n != rules {
			t.Errorf("%d of %d alerts have %q", n, rules, part)
		}
	}
}

func BenchmarkScrape(b *testing.B) {
	m := metrics.New(metrics.Config{Log: slog.New(slog.DiscardHandler)})
	observe := m.Send("slack")
	for b.Loop() {
		observe("sent", time.Millisecond)
	}
}
